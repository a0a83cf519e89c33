package nodeagent_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// patience bounds every wait of a test that would otherwise wait for ever.
const patience = await.Patience

// leader is an auctioneer as an agent sees it. It has one market with one class, and a list of programs to run.
type leader struct {
	t     testing.TB
	bus   bus.Bus
	lease messages.Duration

	mu        sync.Mutex
	term, seq uint64
	programs  []agent.Program
	given     []int // by program: number of its tasks that were given out
	pending   int
	sessions  map[messages.Name]*session
	finished  map[messages.TaskRef]agent.Finished
	claims    int
	silent    bool // the leader does not answer requests
	fence     bool // the leader answers the next exchange with the error Fenced
	level     int  // level of the leader's release
	registers int  // number of registrations
	changed   chan struct{}
}

type session struct {
	number uint64
	seq    uint64
	reply  agent.ExchangeReply
	slots  int
	used   int
	can    []messages.Name
}

func newLeader(t testing.TB, network *bus.Network, lease time.Duration) *leader {
	l := &leader{
		t: t, bus: network.Connect("$auctioneer"), lease: messages.Duration(lease), term: 1,
		sessions: map[messages.Name]*session{}, finished: map[messages.TaskRef]agent.Finished{}, changed: make(chan struct{}),
	}
	subject := func(verb string) string { return messages.Subject("home", messages.Auctioneer, verb, "*") }
	_, err := l.bus.Serve(bus.Service{Name: "candor-auctioneer", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "register", Subject: subject(messages.VerbRegister), Handle: bus.Handle("register", l.register)},
		{Name: "exchange", Subject: subject(messages.VerbExchange), Handle: bus.Handle("exchange", l.exchange)},
		{Name: "vector", Subject: subject(messages.VerbVector), Handle: bus.Handle("vector", l.whole)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go l.republish(stop)
	return l
}

// republish publishes the vector again and again while there is unclaimed work.
func (l *leader) republish(stop chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last := 0; ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		if l.pending > 0 && l.pending == last {
			l.publish()
		}
		last = l.pending
		l.mu.Unlock()
	}
}

// note wakes all goroutines that wait in the method `until`. The caller holds l.mu.
func (l *leader) note() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leader) until(what string, ok func() bool) {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		done, changed := ok(), l.changed
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			l.t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (l *leader) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.note()
}

func (l *leader) register(_ context.Context, node messages.Name, r agent.RegisterRequest) (agent.RegisterReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent {
		return agent.RegisterReply{}, messages.Errorf(messages.Unavailable, "not now")
	}
	l.registers++
	stop := r.Running
	if s := l.sessions[node]; s != nil && s.number == r.Session {
		s.can, stop = r.Abilities, nil
	} else {
		l.sessions[node] = &session{number: r.Session, slots: r.Slots[0].Slots, can: r.Abilities}
	}
	l.note()
	return agent.RegisterReply{
		Lease: l.lease, Term: l.term, Stop: stop, Level: l.level,
		Markets: []agent.NodeMarket{{Name: "main", Classes: []messages.Name{"cpu"}}},
	}, nil
}

func (l *leader) told(ability messages.Name) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		if !slices.Contains(s.can, ability) {
			return false
		}
	}
	return len(l.sessions) > 0
}

func (l *leader) exchange(_ context.Context, node messages.Name, e agent.Exchange) (agent.ExchangeReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.note()
	s := l.sessions[node]
	switch {
	case l.silent:
		return agent.ExchangeReply{}, messages.Errorf(messages.Unavailable, "not now")
	case s == nil || s.number != e.Session || l.fence:
		l.fence = false
		return agent.ExchangeReply{}, messages.Errorf(messages.Fenced, "another session")
	case s.seq == e.Seq:
		return s.reply, nil
	}
	for _, f := range e.Finished {
		l.finished[f.Attempt.Task] = f
		s.used--
	}
	s.seq, s.reply = e.Seq, agent.ExchangeReply{Seq: e.Seq}
	for _, c := range e.Claims {
		l.claims += c.Slots
		l.grant(&s.reply, c)
	}
	s.used += len(s.reply.Grants)
	return s.reply, nil
}

func (l *leader) grant(reply *agent.ExchangeReply, c agent.Claim) {
	for range c.Slots {
		for i := range l.programs {
			p := &l.programs[(int(c.Job)-1+i)%len(l.programs)]
			at := int(p.Job) - 1
			if l.given[at] == p.Tasks {
				continue
			}
			ref := messages.TaskRef{Job: p.Job, Index: uint32(l.given[at])}
			l.given[at]++
			l.pending--
			reply.Grants = append(reply.Grants, agent.Grant{Attempt: messages.Attempt{Task: ref, Number: 1}})
			reply.Programs = append(reply.Programs, *p)
			break
		}
	}
}

func (l *leader) whole(context.Context, messages.Name, agent.VectorRequest) (agent.Vector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vector(), nil
}

func (l *leader) vector() agent.Vector {
	v := agent.Vector{Market: "main", Term: l.term, Seq: l.seq, Classes: []agent.ClassVector{{Class: "cpu", Pending: l.pending}}}
	for _, s := range l.sessions {
		v.Classes[0].Idle += s.slots - s.used
	}
	for i, p := range l.programs {
		if l.given[i] < p.Tasks {
			v.Classes[0].Jobs = append(v.Classes[0].Jobs, agent.JobWeight{Job: p.Job, Weight: 1})
		}
	}
	return v
}

func (l *leader) submit(p agent.Program) messages.JobID {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Job, p.Class, p.Account = messages.JobID(len(l.programs)+1), "cpu", "ann"
	l.programs, l.given, l.pending = append(l.programs, p), append(l.given, 0), l.pending+p.Tasks
	l.publish()
	return p.Job
}

// publish publishes the vector. The caller holds l.mu.
func (l *leader) publish() {
	l.seq++
	l.send(messages.VectorSubject("home", "main"), l.vector())
}

func (l *leader) send(subject string, message any) {
	payload, err := wire.Marshal(message, wire.Msgpack)
	if err == nil {
		err = l.bus.Publish(subject, payload)
	}
	if err != nil {
		l.t.Error(err)
	}
}

// clock is an agent's clock. It shows the real time plus a duration that a test sets.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() messages.Time {
	return messages.Time((boottime.Now() + time.Duration(c.ahead.Load())) / time.Microsecond)
}

// pass advances an agent's clock, and publishes a vector so that the agent reads the clock. In tests a lease is too
// long to end in real time, so the clock must be moved past its end.
func (l *leader) pass(c *clock, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.ahead.Add(int64(d))
	l.publish()
}

func (l *leader) session() uint64 {
	return get(l, func() uint64 { return l.sessions["n1"].number })
}

func get[T any](l *leader, read func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return read()
}

func first(job messages.JobID) messages.TaskRef { return messages.TaskRef{Job: job} }
