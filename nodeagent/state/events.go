package state

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// Registered handles the answer to a registration.
func (s *State) Registered(now messages.Time, id uint64, r *agent.RegisterReply) {
	if !s.session.expects(id) || s.session.request.Register == nil {
		return
	}
	if r.Lease <= 0 {
		s.Failed(now, id, messages.Errorf(messages.Invalid, "lease %v: must be positive", r.Lease))
		return
	}
	if s.Joined() { // the agent is registered already; it only reported new abilities
		s.session.registered(r)
		s.serve(now, r.Markets)
		return // r.Stop is ignored here, because the answer to an exchange says which tasks to stop
	}
	s.session.registered(r)
	s.slots.sleep()
	s.tasks.version = 0
	// The leader may still count an attempt as claimed, and waits for the report of its end. So the end is reported
	// again even if it was reported before.
	for _, a := range r.Stop {
		s.tasks.stop(a, true, "")
	}
	s.markets.set(now, r.Markets)
}

// Answered handles the answer to an exchange.
func (s *State) Answered(now messages.Time, id uint64, r *agent.ExchangeReply) {
	if !s.session.expects(id) || s.session.request.Exchange == nil {
		return
	}
	asked := s.session.request.Exchange
	if r.Seq != asked.Seq {
		s.Failed(now, id, messages.Errorf(messages.Internal, "the answer belongs to exchange %d, not to exchange %d", r.Seq, asked.Seq))
		return
	}
	s.tasks.reported(asked.Finished)
	s.session.took(now)
	s.session.renew()
	s.session.request, s.session.waiting = nil, false
	s.slots.answered()
	s.markets.settle(r)
	s.tasks.obey(r.Version, r.Suspended)
	s.serve(now, r.Markets)
	s.grant(now, r)
	s.markets.dryUp(asked, r)
	s.tasks.stopThese(r.Stop, r.Last)
}

// grant starts the granted tasks. If a task's program did not fit into the answer of the leader, or if the agent is
// closing, the agent reports the task as ended at once.
func (s *State) grant(now messages.Time, r *agent.ExchangeReply) {
	agent.ShareEnv(r.Programs)
	for _, g := range r.Grants {
		if s.tasks.hand[g.Attempt] != nil {
			continue
		}
		program, class := programOf(r, g.Attempt), -1
		if program != nil {
			class = s.slots.index(program.Class)
		}
		switch {
		case program == nil:
			s.tasks.refuse(g.Attempt, agent.Stopped, "the leader's answer did not say what to run")
		case class < 0:
			s.tasks.refuse(g.Attempt, agent.Unstartable, "the node has no slots of class "+program.Class)
		case s.closing:
			s.tasks.refuse(g.Attempt, agent.Stopped, "the node is shutting down")
		default:
			s.tasks.accept(now, class, Start{Grant: g, Program: program})
		}
	}
}

// Failed handles a request that was refused, or not answered in time.
func (s *State) Failed(now messages.Time, id uint64, err error) {
	if !s.session.expects(id) {
		return
	}
	kind := messages.KindOf(err)
	wait := s.session.failed(kind)
	switch {
	case kind == messages.Fenced:
		s.lose()
		s.session.joinAt = now.Add(wait) // wait, so that two agents with one name do not fence each other without pause
	case kind == messages.Invalid && s.withdraw():
	default:
		s.session.retryAt = now.Add(wait)
	}
}

// withdraw removes the claims from the current exchange, because the leader may have refused the exchange because of
// them. The reports of the exchange are sent again under a new number. The slots of the removed claims wait for the
// next vector.
func (s *State) withdraw() bool {
	asked := s.session.request.Exchange
	if asked == nil || len(asked.Claims) == 0 {
		return false
	}
	s.session.request = nil
	s.slots.answered()
	s.markets.settle(&agent.ExchangeReply{})
	s.tasks.putBack(asked.Finished)
	s.markets.dryUp(asked, &agent.ExchangeReply{})
	s.session.beat = 0 // send the next exchange at once, to renew the lease
	return true
}

// Ended handles the end of a task.
func (s *State) Ended(f agent.Finished) { s.tasks.ended(f) }

// Turned handles two events that happened at the same time. A task with a slot has ended; `f` says how. The runner has
// given its slot to the waiting task `next`.
func (s *State) Turned(at messages.Time, f agent.Finished, next messages.Attempt) {
	s.tasks.turned(at, f, next)
}

// Keep is called when the runner refuses a waiting task: it will not start this task when a slot becomes free. So the
// agent must start the task itself.
func (s *State) Keep(a messages.Attempt) {
	if t := s.tasks.hand[a]; t != nil {
		t.left, t.kept = false, true
	}
}

// Directive handles a message that the leader sends between exchanges.
func (s *State) Directive(now messages.Time, d *agent.Directive) {
	if d.Term < max(s.session.term, s.markets.term) {
		return // the message comes from an earlier leader
	}
	s.session.term = d.Term
	s.tasks.obey(d.Version, d.Suspended)
	s.tasks.stopThese(d.Stop, d.Last)
	s.serve(now, d.Markets)
}

// Adopt adds a task that an earlier run of the agent started. `width` is the number of the task's slots, and `held` is
// true if the task is suspended. Call Adopt before the first Act. It returns false if the node no longer has the slots.
// If the leader's first answer does not list a suspended task, the task is resumed.
func (s *State) Adopt(a messages.Attempt, class messages.Name, width int, held bool) bool {
	at := s.slots.index(class)
	return at >= 0 && s.tasks.adopt(a, at, width, held)
}

// serve replaces the markets with the markets that the leader named; nil changes nothing.
func (s *State) serve(now messages.Time, named []agent.NodeMarket) {
	if named != nil && s.Joined() {
		s.markets.set(now, named)
	}
}

// Vector handles a published vector. If it cannot be used, the state requests the complete vector, and the error says
// what was wrong.
func (s *State) Vector(now messages.Time, v *agent.Vector) error {
	return s.markets.receive(now, s.markets.find(v.Market), v)
}

// Heeds reports whether the next vector can lead to an action immediately. There are three such cases: a slot is free,
// a market grants tasks in advance, or the node waits for a complete vector. In all other cases, the caller may collect
// vectors. It then passes them in their order, just before the next event.
func (s *State) Heeds() bool {
	return !s.Joined() || slices.ContainsFunc(s.slots, func(c class) bool { return c.free() > 0 }) ||
		slices.ContainsFunc(s.markets.all, func(m *market) bool {
			return m.ahead || m.term == 0 || m.fetching || m.fetchAt != 0 || len(m.early) > 0
		})
}

// Fetched handles the answer to a request for a complete vector.
func (s *State) Fetched(now messages.Time, v *agent.Vector) error {
	return s.markets.fetched(now, v)
}

// FetchFailed is called when a request for a complete vector has failed.
func (s *State) FetchFailed(now messages.Time, name messages.Name) { s.markets.fetchFailed(now, name) }
