package state

import (
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Registered is the answer to a registration.
func (s *State) Registered(now messages.Time, id uint64, r *messages.RegisterReply) {
	if !s.expects(id) || s.request.Register == nil {
		return
	}
	if r.Lease <= 0 {
		s.Failed(now, id, messages.Errorf(messages.Invalid, "lease %v: must be positive", r.Lease))
		return
	}
	s.phase, s.lease, s.failures, s.version = joined, r.Lease, 0, 0
	s.term = max(s.term, r.Term)
	s.renew(s.firstSent)
	s.drop()
	// The leader may still count an attempt as claimed that it wants ended, and
	// waits for its end: that of one that has ended before is reported too.
	for _, a := range r.Stop {
		s.stop(a, true)
	}
	s.setMarkets(now, r.Markets)
}

// forget lets go of a task that has ended.
func (s *State) forget(a messages.Attempt) {
	delete(s.hand, a)
	s.out.Reported = append(s.out.Reported, a)
}

// Answered is the answer to an exchange.
func (s *State) Answered(now messages.Time, id uint64, r *messages.ExchangeReply) {
	if !s.expects(id) || s.request.Exchange == nil {
		return
	}
	if r.Seq != s.request.Exchange.Seq {
		s.Failed(now, id, messages.Errorf(messages.Internal, "the answer is to exchange %d, not %d", r.Seq, s.request.Exchange.Seq))
		return
	}
	asked := s.request.Exchange
	for _, f := range asked.Finished {
		s.forget(f.Attempt)
	}
	s.failures = 0
	s.renew(s.firstSent)
	for i := range s.classes {
		s.classes[i].claiming = 0
	}
	s.request, s.waiting = nil, false
	s.obey(r.Version, r.Held)
	s.Serve(now, r.Markets)
	s.grant(r)
	s.dryUp(asked, r)
	for _, a := range r.Stop {
		s.stop(a, false)
	}
}

// grant starts what was granted. A grant that comes with no program, as the answer
// had no room for it, or while the agent closes, is reported as ended at once.
func (s *State) grant(r *messages.ExchangeReply) {
	messages.ShareEnv(r.Programs)
	for _, g := range r.Grants {
		if s.hand[g.Attempt] != nil {
			continue
		}
		program, class := programOf(r, g.Attempt), -1
		if program != nil {
			class = s.classOf(program.Class)
		}
		switch {
		case program == nil:
			s.refuse(g.Attempt, messages.Stopped, "the leader's answer did not say what to run")
		case class < 0:
			s.refuse(g.Attempt, messages.Unstartable, "the node has no slots of class "+program.Class)
		case s.closing:
			s.refuse(g.Attempt, messages.Stopped, "the node is shutting down")
		default:
			s.take(class, Start{Grant: g, Program: program})
		}
	}
}

// refuse reports a granted attempt as ended though it never began.
func (s *State) refuse(a messages.Attempt, why messages.Outcome, detail string) {
	s.hand[a] = &task{ended: true}
	s.report(messages.Finished{Attempt: a, Outcome: why, Detail: detail})
}

// maxDetail bounds the sentence about the end of an attempt, in bytes. It may
// repeat what a user wrote, of any length and in any encoding, and must not be
// what makes an exchange unfit to be sent.
const maxDetail = 1024

// report puts the end of an attempt into the next exchange.
func (s *State) report(f messages.Finished) {
	f.Detail = strings.ToValidUTF8(f.Detail[:min(len(f.Detail), maxDetail)], "?")
	s.finished = append(s.finished, f)
}

func programOf(r *messages.ExchangeReply, a messages.Attempt) *messages.Program {
	for i := range r.Programs {
		if p := &r.Programs[i]; p.Job == a.Task.Job && p.Stage == a.Task.Stage {
			return p
		}
	}
	return nil
}

// Failed says that a request was refused, or not answered within its time.
func (s *State) Failed(now messages.Time, id uint64, err error) {
	if !s.expects(id) {
		return
	}
	s.waiting = false
	s.failures++
	wait := s.backoff(messages.KindOf(err))
	if messages.KindOf(err) == messages.Fenced {
		s.lose()
		s.joinAt = now.Add(wait) // two agents of one name must not fence each other without pause
		return
	}
	if messages.KindOf(err) == messages.Invalid && s.withdraw() {
		return
	}
	s.retryAt = now.Add(wait)
}

// withdraw gives the claims of the exchange under way up, as they may be why it was
// refused for good: what it reports goes on under a new number. The slots wait for
// the next vector.
func (s *State) withdraw() bool {
	if s.request.Exchange == nil || len(s.request.Exchange.Claims) == 0 {
		return false
	}
	asked := s.request.Exchange
	s.request = nil
	for i := range s.classes {
		s.classes[i].claiming = 0
	}
	s.finished = append(asked.Finished, s.finished...)
	s.dryUp(asked, &messages.ExchangeReply{})
	s.beat = 0 // the lease is still to be renewed
	return true
}

func (s *State) expects(id uint64) bool { return s.request != nil && s.waiting && s.request.ID == id }

// Ended says that a task has ended.
func (s *State) Ended(f messages.Finished) {
	t := s.hand[f.Attempt]
	if t == nil || t.ended {
		return
	}
	t.ended = true
	s.alive--
	s.report(f)
	if t.held {
		return
	}
	c := &s.classes[t.class]
	c.tasks--
	if s.left(t.class) && c.awake < c.free() {
		c.awake++
	}
}

// Directive is a word of the leader between exchanges.
func (s *State) Directive(d *messages.Directive) {
	if d.Term < s.term {
		return // of a leader that was replaced
	}
	s.term = d.Term
	s.obey(d.Version, d.Held)
	for _, a := range d.Stop {
		s.stop(a, false)
	}
}

// lose gives the session up: every task is killed before the node joins anew.
func (s *State) lose() {
	if s.request != nil && s.request.Exchange != nil {
		// The leader may have got these; if so, it lets them pass.
		s.finished = append(s.request.Exchange.Finished, s.finished...)
	}
	s.gathers = 0
	s.phase = leaving
	s.drop()
	s.stopAll(true)
}
