package state

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// State is the knowledge of a node agent. It is not safe for concurrent use.
type State struct {
	abilities []messages.Name
	offered   []job.ClassSlots

	session session
	slots   slots
	tasks   tasks
	markets markets
	closing bool
	tells   bool // the leader has not been told the present abilities
	paused  bool // no task can be started at the moment
	out     Actions
}

// New returns the state of an agent that offers slots and has not registered yet. All random decisions use rng.
func New(offered []job.ClassSlots, rng *rand.Rand) *State {
	s := &State{offered: offered, session: session{rng: rng}, slots: newSlots(offered)}
	s.markets = markets{rng: rng, slots: s.slots, out: &s.out, decided: func(class int) { s.tasks.giveBack(class, len(s.slots[class].waits)) }}
	s.tasks = tasks{slots: s.slots, out: &s.out, hand: map[messages.Attempt]*task{}, freed: func(class int) {
		if s.Joined() {
			s.markets.freed(class)
		}
	}}
	s.tasks.sharing = s.markets.sharing
	s.tasks.setAhead(AheadWithin)
	s.session.begin()
	return s
}

// SetAbilities sets the abilities of the node. If the node holds a lease, it tells the leader at once, by a
// registration in the same session.
func (s *State) SetAbilities(can []messages.Name) { s.abilities, s.tells = can, true }

// SetFeeds says that the runner accepts tasks that wait for a slot.
func (s *State) SetFeeds() { s.tasks.feeds = true }

// While a node cannot start tasks, Pause(true) stops it from making claims. Pause(false) lets it make claims again.
func (s *State) Pause(paused bool) {
	if s.paused != paused {
		s.paused = paused
		s.tasks.giveBackAll() // when a pause ends, no task waits: nothing happens
		s.markets.pause(paused || s.closing)
	}
}

// Session returns the session's number.
func (s *State) Session() uint64 { return s.session.number }

// Joined reports whether the node holds a lease.
func (s *State) Joined() bool { return s.session.phase == joined }

// Expiry returns when the lease ends.
func (s *State) Expiry() messages.Time { return s.session.expiry() }

// Running returns the number of attempts that have not ended.
func (s *State) Running() int { return s.tasks.alive }

// Close makes the agent claim nothing more, end its tasks with grace, and report them. Actions.Closed tells when this
// is done.
func (s *State) Close() {
	s.closing, s.markets.shut = true, true
	s.tasks.stopAll(false)
}

// Act returns the actions that are due now.
func (s *State) Act(now messages.Time) Actions {
	s.tasks.measure(now)
	s.tasks.expire(now)
	if s.Joined() && now >= s.Expiry() {
		s.lose()
	}
	if s.session.phase == leaving && s.Running() == 0 && !s.closing {
		s.session.begin()
		s.slots.sleep()
	}
	s.send(now)
	s.tasks.follow()
	if s.Joined() && !s.closing {
		s.markets.fetch(now)
	}
	s.out.Closed = s.closed()
	out := s.out
	s.out = Actions{}
	return out
}

// closed reports whether a closing agent is done: all tasks have ended, and their ends were reported if the agent holds
// a lease.
func (s *State) closed() bool {
	reported := s.session.request == nil && len(s.tasks.finished) == 0
	return s.closing && s.Running() == 0 && (!s.Joined() || reported)
}

func (s *State) silent() bool {
	return s.session.waiting || s.session.phase == leaving || s.session.phase == joining && s.closing
}

// The method send makes the next request to the leader if that request is due. If the last request has no answer yet
// and its time to retry has come, send repeats this request.
func (s *State) send(now messages.Time) {
	switch {
	case s.silent():
		return
	case s.session.request != nil:
		if now < s.session.retryAt {
			return
		}
	case s.session.phase == joining:
		if now < s.session.joinAt {
			return
		}
		s.session.put(now, s.registration())
	case s.tells && !s.closing:
		s.session.put(now, s.registration())
	case s.due(now):
		s.session.put(now, s.exchange(now))
	default:
		return
	}
	s.out.Request = s.session.transmit(now)
}

// This method reports whether an exchange must be sent now. There are three causes: the heartbeat, tasks that have
// ended, and claims. A claim for a slot that the end of a task has freed is no cause by itself.
func (s *State) due(now messages.Time) bool {
	claims := !s.closing && (s.slots.awake() > len(s.tasks.finished) || s.markets.low(s.session.trip))
	return now >= s.session.beat || claims || s.tasks.due(now, s.closing, s.session.trip)
}

func (s *State) registration() *Request {
	s.tells = false
	within := messages.Duration(registerWithin)
	if s.Joined() {
		within = s.session.within()
	}
	return &Request{Within: within, Register: &agent.RegisterRequest{
		Session: s.session.number, Slots: s.offered, Running: s.tasks.list(),
		Abilities: append(slices.Clone(s.abilities), agent.AbilitySharedEnv),
		Level:     messages.Level,
	}}
}

// exchange makes an exchange with as many reports of ended tasks as fit. If some reports do not fit, the exchange has
// no claims, and the next exchange follows at once. Only an exchange with the last reports has claims.
func (s *State) exchange(now messages.Time) *Request {
	ends, all := s.tasks.drain()
	e := &agent.Exchange{Finished: ends}
	if all {
		s.tasks.owe(now)
		e.Claims = s.markets.claims(s.session.trip, len(ends))
	}
	return s.session.exchange(e)
}

// lose ends the session. Every task is killed before the node registers again.
func (s *State) lose() {
	if r := s.session.request; r != nil && r.Exchange != nil {
		s.tasks.putBack(r.Exchange.Finished) // the leader accepts a repeated end
	}
	s.tasks.gathers = 0
	s.session.phase = leaving
	s.session.drop()
	s.slots.sleep()
	s.markets.settle(&agent.ExchangeReply{})
	s.tasks.stopAll(true)
}

// Wake returns the time at which the caller must call Act even if nothing happens; 0 means never.
func (s *State) Wake() messages.Time {
	var at messages.Time
	sooner := func(t messages.Time) { at = messages.Earlier(at, t) }
	if s.Joined() {
		sooner(s.Expiry())
		if !s.session.waiting && s.session.request == nil {
			sooner(s.session.beat)
			sooner(s.tasks.gathers)
		}
	}
	switch {
	case s.silent():
	case s.session.request != nil:
		sooner(s.session.retryAt)
	case s.session.phase == joining:
		sooner(s.session.joinAt)
	}
	sooner(s.tasks.expiry())
	for _, m := range s.markets.all {
		if s.Joined() && !s.closing {
			sooner(m.fetchAt)
		}
	}
	return at
}
