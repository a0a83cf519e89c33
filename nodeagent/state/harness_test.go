package state_test

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/state"
)

const (
	second = messages.Duration(1e9)
	lease  = 8 * second
)

// agent is a state that a test changes step by step. The test also sets its clock.
type agent struct {
	*state.State
	t     testing.TB
	now   messages.Time
	stops []state.Stop
	// starts are the tasks that were started and have not ended.
	starts map[messages.Attempt]state.Start
}

func newAgent(t testing.TB, slots int, seed uint64) *agent {
	offer := []job.ClassSlots{{Class: "cpu", Slots: slots}}
	return &agent{
		State: state.New(offer, rand.New(rand.NewPCG(seed, 1))), t: t, now: 1_000_000,
		starts: map[messages.Attempt]state.Start{},
	}
}

// act asks the state for its actions, and carries them out, except requests and fetches. It returns all actions.
func (a *agent) act() state.Actions {
	a.t.Helper()
	do := a.Act(a.now)
	for _, s := range do.Start {
		if _, twice := a.starts[s.Grant.Attempt]; twice {
			a.t.Fatalf("attempt %v was started twice", s.Grant.Attempt)
		}
		a.starts[s.Grant.Attempt] = s
	}
	a.stops = append(a.stops, do.Stop...)
	return do
}

// sleep moves the clock to the time at which the state wants to be called again, and calls act.
func (a *agent) sleep() state.Actions {
	a.t.Helper()
	at := a.Wake()
	if at == 0 {
		a.t.Fatal("the state wants to sleep for ever")
	}
	a.now = max(a.now, at)
	return a.act()
}

func (a *agent) request() *state.Request {
	a.t.Helper()
	r := a.act().Request
	if r == nil {
		a.t.Fatal("no request")
	}
	return r
}

func (a *agent) silent() {
	a.t.Helper()
	if r := a.act().Request; r != nil {
		a.t.Fatalf("sent %+v %+v, want silence", r.Register, r.Exchange)
	}
}

func (a *agent) join() {
	a.t.Helper()
	r := a.request()
	if r.Register == nil {
		a.t.Fatalf("sent %+v, want a registration", r)
	}
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{
		Lease: lease, Markets: []agentmsg.NodeMarket{{Name: "main", Classes: []messages.Name{"cpu"}}}, Term: 1,
	})
	a.act()
}

// vector publishes a complete vector with one job.
func (a *agent) vector(seq uint64, pending, idle int) {
	a.t.Helper()
	a.take(whole(1, seq, pending, idle, agentmsg.JobWeight{Job: 7, Weight: 1}))
}

func (a *agent) take(v *agentmsg.Vector) {
	a.t.Helper()
	if err := a.Vector(a.now, v); err != nil {
		a.t.Fatal(err)
	}
}

func whole(term, seq uint64, pending, idle int, jobs ...agentmsg.JobWeight) *agentmsg.Vector {
	return &agentmsg.Vector{Market: "main", Term: term, Seq: seq, Classes: []agentmsg.ClassVector{
		{Class: "cpu", Pending: pending, Idle: idle, Jobs: jobs}}}
}

func change(term, seq uint64, pending, idle int, jobs ...agentmsg.JobWeight) *agentmsg.Vector {
	v := whole(term, seq, pending, idle, jobs...)
	v.Base = seq - 1
	return v
}

// grants answers an exchange with n tasks of a job. The numbers of the tasks begin with the argument `first`.
func grants(r *state.Request, first, n int) *agentmsg.ExchangeReply {
	reply := &agentmsg.ExchangeReply{Seq: r.Exchange.Seq}
	for i := range n {
		reply.Grants = append(reply.Grants, agentmsg.Grant{Attempt: attempt(first + i)})
	}
	if n > 0 {
		reply.Programs = []agentmsg.Program{{Job: 7, Class: "cpu", Command: []string{"true"}}}
	}
	return reply
}

func attempt(i int) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: 7, Index: uint32(i)}, Number: 1}
}

func (a *agent) end(i int, outcome agentmsg.Outcome) {
	a.t.Helper()
	if _, ok := a.starts[attempt(i)]; !ok {
		a.t.Fatalf("task %d does not run", i)
	}
	delete(a.starts, attempt(i))
	a.Ended(agentmsg.Finished{Attempt: attempt(i), Outcome: outcome})
}

func slotsOf(e *agentmsg.Exchange) (n int) {
	for _, c := range e.Claims {
		n += c.Slots
	}
	return n
}

func fails(kind messages.Kind) error { return messages.Errorf(kind, "the leader says no") }
