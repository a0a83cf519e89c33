package state_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

const milli = messages.Duration(time.Millisecond)

// ahead returns an agent with two slots. A task takes one millisecond, and an exchange takes two milliseconds. Tasks 0
// and 1 run. Tasks 2 to 1+n were granted before there were free slots for them.
func ahead(t *testing.T) (a *agent, n int) {
	a = newAgent(t, 2, 1)
	a.join()
	a.vector(1, 1000, 0)
	r := a.request()
	a.now = a.now.Add(2 * milli)
	a.Answered(a.now, r.ID, grants(r, 100, 2))
	a.act()
	a.now = a.now.Add(milli)
	a.end(100, agentmsg.Exited)
	a.end(101, agentmsg.Exited)
	r = a.request()
	n = slotsOf(r.Exchange) - 2
	if most := r.Exchange.Claims[0].Ahead; n < 2 || most != n || n > 2*int(state.AheadWithin/time.Millisecond) {
		t.Fatalf("claimed %d tasks beyond the slots, %d in all", n, most)
	}
	a.now = a.now.Add(2 * milli)
	a.Answered(a.now, r.ID, aheadGrants(r, 0, 2, n))
	if a.act(); len(a.starts) != 2 || a.Running() != 2+n {
		t.Fatalf("%d tasks run, %d are in hand", len(a.starts), a.Running())
	}
	return a, n
}

// aheadGrants returns an answer to an exchange. The answer grants tasks with slots, and then more tasks in advance,
// which have no slot yet.
func aheadGrants(r *state.Request, first, slots, more int) *agentmsg.ExchangeReply {
	reply := grants(r, first, slots+more)
	for i := slots; i < slots+more; i++ {
		reply.Grants[i].Ahead = true
	}
	return reply
}

// TestSlotIsFedAtOnce ends a task. The next task must start before the leader has heard anything. Then the leader must
// hear of the end and of the start in one exchange.
func TestSlotIsFedAtOnce(t *testing.T) {
	a, n := ahead(t)
	for i := range n {
		a.now = a.now.Add(milli / 2)
		a.end(i, agentmsg.Exited)
		do := a.act()
		if len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(i+2) {
			t.Fatalf("after task %d: started %v", i, do.Start)
		}
		if do.Request == nil {
			continue
		}
		e := do.Request.Exchange
		if len(e.Finished) != i+1 || slotsOf(e) == 0 || e.Sent != a.now {
			t.Fatalf("sent %d ends and %d claims at %v", len(e.Finished), slotsOf(e), e.Sent)
		}
		for k, f := range e.Finished {
			if want := (agentmsg.Successor{Attempt: attempt(k + 2), At: a.now.Add(-milli / 2 * messages.Duration(i-k))}); f.Next == nil || *f.Next != want {
				t.Fatalf("the slot of task %d went to %+v, want %+v", k, f.Next, want)
			}
		}
		if left := n - 1 - i; left == 0 {
			t.Error("claimed only when nothing was at hand")
		}
		return
	}
	t.Fatal("claimed nothing though tasks run out")
}

// TestAheadIsGivenBack checks that tasks which wait for a slot are given back to the leader: after a decision, and when
// they have waited too long. Running tasks must continue.
func TestAheadIsGivenBack(t *testing.T) {
	for name, happens := range map[string]func(a *agent) *state.Request{
		"new weights": func(a *agent) *state.Request {
			a.take(change(1, 2, 1000, 0, agentmsg.JobWeight{Job: 7, Weight: 1}, agentmsg.JobWeight{Job: 8, Weight: 1}))
			return nil
		},
		"a word to suspend": func(a *agent) *state.Request {
			a.Directive(a.now, &agentmsg.Directive{Term: 1, Version: 1, Suspended: []messages.Attempt{attempt(0)}})
			return nil
		},
		"no executor": func(a *agent) *state.Request { a.Pause(true); return nil },
		"time": func(a *agent) (r *state.Request) {
			from := a.now
			r = a.tooLong()
			if waited := a.now.Sub(from); waited > messages.Duration(state.AheadWithin) {
				t.Errorf("tasks waited %v for a slot", waited)
			}
			return r
		},
		"the end of the agent": func(a *agent) *state.Request { a.Close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			a, n := ahead(t)
			r := happens(a)
			if a.Running() != 2 || len(a.starts) != 2 {
				t.Fatalf("%d of 2 tasks are in hand, %d run", a.Running(), len(a.starts))
			}
			if r == nil {
				r = a.request()
			}
			e := r.Exchange
			if len(e.Finished) != n {
				t.Fatalf("gave %d of %d tasks back", len(e.Finished), n)
			}
			for i, f := range e.Finished {
				if f.Attempt != attempt(2+i) || f.Outcome != agentmsg.Stopped {
					t.Fatalf("gave back %+v", f)
				}
			}
		})
	}
}

// A job leaves, or comes back with its old weight. The vectors say that the other weights are the same. Then the agent
// must not give waiting tasks back to the leader. After a missed vector, the agent does not know which weights the next
// vector calls the same. So it must give the waiting tasks back.
func TestSameWeightsTakeNothingBack(t *testing.T) {
	a, n := ahead(t)
	same := func(v *agentmsg.Vector) {
		v.Classes[0].SetSame()
		a.take(v)
	}
	same(change(1, 2, 1000, 0, agentmsg.JobWeight{Job: 8, Weight: 1}))
	same(whole(1, 3, 1000, 0, agentmsg.JobWeight{Job: 7, Weight: 1}))
	if a.act(); a.Running() != 2+n {
		t.Fatalf("%d of %d tasks are in hand", a.Running(), 2+n)
	}
	same(whole(1, 5, 1000, 0, agentmsg.JobWeight{Job: 7, Weight: 1}))
	if a.act(); a.Running() != 2 {
		t.Fatalf("%d of 2 tasks are in hand", a.Running())
	}
}

// TestLongTasksAreNotClaimedAhead checks that no task is claimed in advance while tasks are long, or after tasks waited
// too long.
func TestLongTasksAreNotClaimedAhead(t *testing.T) {
	a := running(t, 2)
	a.now = a.now.Add(second)
	a.end(0, agentmsg.Exited)
	a.end(1, agentmsg.Exited)
	if e := a.request().Exchange; slotsOf(e) != 2 || e.Claims[0].Ahead != 0 {
		t.Fatalf("sent %+v", e.Claims)
	}
	a, _ = ahead(t)
	if e := a.tooLong().Exchange; slotsOf(e) != 0 {
		t.Fatalf("claims %+v, though the slots do not become free in time", e.Claims)
	}
}

// tooLong lets time pass until the agent has given back all tasks that wait for a slot. It returns the agent's last
// request.
func (a *agent) tooLong() (r *state.Request) {
	for a.Running() > 2 {
		r = a.sleep().Request
	}
	return r
}

// TestOtherMarketsGrantNothingAhead checks that the agent asks for no task in advance if the market does not grant
// tasks in advance.
func TestOtherMarketsGrantNothingAhead(t *testing.T) {
	a, _ := ahead(t)
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Version: 1, Markets: []agentmsg.NodeMarket{{Name: "main", Ordered: true, Classes: []messages.Name{"cpu"}}}})
	a.take(change(1, 2, 1000, 0, agentmsg.JobWeight{Job: 7, Weight: 2})) // gives the waiting tasks back
	a.end(0, agentmsg.Exited)
	a.end(1, agentmsg.Exited)
	if e := a.request().Exchange; slotsOf(e) != 2 || e.Claims[0].Ahead != 0 {
		t.Fatalf("claims %+v", e.Claims)
	}
}

// TestStoppedAheadNeverStarts makes the leader end a task that was claimed in advance and has no slot yet. The task
// must not start.
func TestStoppedAheadNeverStarts(t *testing.T) {
	a, n := ahead(t)
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Stop: []messages.Attempt{attempt(2)}})
	a.end(0, agentmsg.Exited)
	if do := a.act(); len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(3) || a.Running() != n {
		t.Fatalf("started %v, %d in hand", do.Start, a.Running())
	}
}

// The leader grants two tasks in advance. Before the grant arrives at the agent, a slot becomes free, and the leader
// does not know this yet. One of the granted tasks must start on this slot at once. No granted task may take a slot
// that the leader already counts as free.
func TestGrantAheadTakesASlotThatIsFreeSince(t *testing.T) {
	a := running(t, 2)
	a.end(0, agentmsg.Exited)
	r := a.request()
	a.end(1, agentmsg.Exited)
	a.now = a.now.Add(milli)
	a.Answered(a.now, r.ID, aheadGrants(r, 10, 0, 2))
	do := a.act()
	if len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(10) {
		t.Fatalf("started %v, want the first granted", do.Start)
	}
	if do.Request == nil {
		do.Request = a.request()
	}
	want := agentmsg.Successor{Attempt: attempt(10), At: a.now}
	if f := do.Request.Exchange.Finished; len(f) != 1 || f[0].Attempt != attempt(1) {
		t.Fatalf("sent %+v, want the end of task 1", f)
	} else if next := f[0].Next; next == nil || *next != want {
		t.Fatalf("sent %+v, want %+v", next, want)
	}
}

// TestSlowerTasksLeaveFewerAhead makes tasks slower than expected. An agent claims tasks before it has a free slot for
// them. It must then claim fewer such tasks.
func TestSlowerTasksLeaveFewerAhead(t *testing.T) {
	a, n := ahead(t)
	var last *state.Request
	for i, until := 0, a.now.Add(messages.Duration(state.AheadWithin)); a.now < until; i++ {
		a.now = a.now.Add(8 * milli)
		a.end(i, agentmsg.Exited)
		if do := a.act(); do.Request != nil {
			last = do.Request
		}
	}
	if a.Running() != 2 {
		t.Fatalf("%d of 2 tasks are in hand", a.Running())
	}
	a.Answered(a.now, last.ID, aheadGrants(last, 100, 0, slotsOf(last.Exchange)))
	most := -1
	for _, c := range a.request().Exchange.Claims {
		most = c.Ahead
	}
	if most < 1 || most >= n {
		t.Errorf("%d tasks ahead before, %d after", n, most)
	}
}
