package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/backoff"
)

// repeats bounds the time between a request and its repetition.
var repeats = backoff.Backoff{First: 20 * time.Millisecond, Last: time.Second}

// Further bounds of that time, and of the wait for one answer.
const (
	// refusedBackoff is the least wait after an answer that says no more than
	// no: asking soon again will hardly help.
	refusedBackoff = time.Second
	registerWithin = 5 * time.Second
	leastWithin    = 100 * time.Millisecond
)

// Act returns what is to be done at an instant.
func (s *State) Act(now messages.Time) Actions {
	if s.phase == joined && now >= s.Expiry() {
		s.lose()
	}
	if s.phase == leaving && s.Running() == 0 && !s.closing {
		s.newSession()
	}
	s.send(now)
	s.fetch(now)
	s.out.Closed = s.closed()
	out := s.out
	s.out = Actions{}
	return out
}

// closed reports whether a closing agent is done: everything has ended, and
// was reported if it holds a lease; it takes none only to give it back.
func (s *State) closed() bool {
	reported := s.request == nil && len(s.finished) == 0
	return s.closing && s.Running() == 0 && (s.phase != joined || reported)
}

// send makes or repeats the request to the leader, if there is reason to.
func (s *State) send(now messages.Time) {
	switch {
	case s.waiting || s.phase == leaving || s.phase == joining && s.closing:
		return
	case s.request != nil:
		if now < s.retryAt {
			return
		}
	case s.phase == joining:
		if now < s.joinAt {
			return
		}
		s.request, s.firstSent = s.registration(), now
	case s.due(now):
		s.request, s.firstSent = s.exchange(), now
	default:
		return
	}
	s.ids++
	s.waiting = true
	again := *s.request
	again.ID = s.ids
	s.request, s.out.Request = &again, &again
}

// due reports whether there is anything to say to the leader.
func (s *State) due(now messages.Time) bool {
	awake := 0
	for i := range s.classes {
		if !s.closing {
			awake += s.classes[i].awake
		}
	}
	switch ended := len(s.finished); {
	case now >= s.beat || awake > ended: // there are slots to be claimed for that no end has freed
		return true
	case ended == 0:
		return false
	case s.closing || ended > s.alive/gatherPart:
		return true
	case s.gathers == 0:
		s.gathers = now.Add(messages.Duration(gatherWithin))
	}
	return now >= s.gathers
}

// An exchange costs the site much the same whatever is in it. Where many tasks
// run, those that have ended wait until they are a part of the ones that run, but
// not for long.
const (
	gatherPart   = 4
	gatherWithin = 6 * time.Millisecond
)

func (s *State) registration() *Request {
	return &Request{Within: messages.Duration(registerWithin), Register: &messages.RegisterRequest{
		Session: s.session, Slots: s.slots, Running: s.inHand(), Abilities: append(slices.Clone(s.can), messages.AbilitySharedEnv),
	}}
}

// inHand lists the attempts whose end was not reported yet, in order.
func (s *State) inHand() []messages.Attempt {
	list := make([]messages.Attempt, 0, len(s.hand))
	for a := range s.hand {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b messages.Attempt) int {
		return cmp.Or(cmp.Compare(a.Task.Job, b.Task.Job), cmp.Compare(a.Task.Stage, b.Task.Stage),
			cmp.Compare(a.Task.Index, b.Task.Index), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// mostFinished bounds the ends of tasks in one exchange, each of which may explain
// itself in maxDetail bytes: all of them must fit a message.
const mostFinished = 4096

// exchange says everything there is to say, or as much of it as fits; then the rest
// follows at once, with the claims.
func (s *State) exchange() *Request {
	s.seq++
	n := min(len(s.finished), mostFinished)
	e := &messages.Exchange{Session: s.session, Seq: s.seq, Finished: s.finished[:n:n]}
	if s.finished = s.finished[n:]; len(s.finished) == 0 {
		s.finished, e.Claims = nil, s.claims()
	}
	s.gathers = 0
	within := messages.Duration(max(leastWithin, min(s.lease.Std()/4, registerWithin)))
	return &Request{Within: within, Exchange: e}
}

// Expiry is when the lease ends.
func (s *State) Expiry() messages.Time { return s.renewed.Add(s.lease) }

// renew starts the lease at an instant, and sets the next heartbeat to a
// random moment shortly before a quarter of it has passed.
func (s *State) renew(from messages.Time) {
	s.renewed = from
	s.beat = from.Add(messages.Duration(float64(s.lease) / 4 * (0.8 + 0.2*s.rng.Float64())))
}

// backoff is how long to wait before a request is repeated: doubling with
// each failure, by chance half as long or half as long again.
func (s *State) backoff(k messages.Kind) messages.Duration {
	wait := repeats.Bound(s.failures)
	if !k.Retriable() {
		wait = refusedBackoff
	}
	if s.phase == joined {
		wait = min(wait, s.lease.Std()/8)
	}
	return messages.Duration(backoff.Spread(wait, s.rng.Float64()))
}

// Wake returns when Act is to be called though nothing happened; 0: never.
func (s *State) Wake() messages.Time {
	var at messages.Time
	sooner := func(t messages.Time) {
		if at == 0 || t < at {
			at = t
		}
	}
	if s.phase == joined {
		sooner(s.Expiry())
		if !s.waiting && s.request == nil {
			sooner(s.beat)
			if s.gathers != 0 {
				sooner(s.gathers)
			}
		}
	}
	switch {
	case s.waiting || s.phase == leaving || s.phase == joining && s.closing:
	case s.request != nil:
		sooner(s.retryAt)
	case s.phase == joining:
		sooner(s.joinAt)
	}
	for _, m := range s.markets {
		if m.fetchAt != 0 && s.phase == joined && !s.closing {
			sooner(m.fetchAt)
		}
	}
	return at
}
