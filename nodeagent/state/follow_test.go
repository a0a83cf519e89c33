package state_test

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

// followers returns the agent of the function `ahead`. This agent has passed its n waiting tasks to the runner, which
// starts them when slots become free.
func followers(t *testing.T) (a *agent, n int) {
	a, n = ahead(t)
	a.SetFeeds()
	do := a.act()
	if len(do.Follow) != n {
		t.Fatalf("left %d of %d tasks with the runner", len(do.Follow), n)
	}
	for i, s := range do.Follow {
		if s.Grant.Attempt != attempt(2+i) || s.Program == nil {
			t.Fatalf("task %d is %+v", i, s)
		}
	}
	if again := a.act().Follow; len(again) > 0 {
		t.Fatalf("left again: %v", again)
	}
	return a, n
}

// turn plays the runner. It tells the agent that task i ended some time ago, and that the runner then started the task
// with the number `next` on the same slot.
func (a *agent) turn(i, next int, ago messages.Duration) {
	a.t.Helper()
	delete(a.starts, attempt(i))
	a.starts[attempt(next)] = state.Start{}
	a.Turned(a.now.Add(-ago), agentmsg.Finished{Attempt: attempt(i), Outcome: agentmsg.Exited}, attempt(next))
}

// TestRunnerFeedsSlots: the runner gives a free slot to a waiting task by itself, and tells the agent about it only
// later. The leader must get the time of each such change, and no task may start twice.
func TestRunnerFeedsSlots(t *testing.T) {
	a, n := followers(t)
	from := a.now
	a.now = a.now.Add(3 * milli)
	var do state.Actions
	for i := range n {
		a.turn(i, i+2, 3*milli-messages.Duration(i+1)*milli/8)
	}
	if do = a.act(); len(do.Start)+len(do.Stop)+len(do.Withdraw) > 0 || a.Running() != 2 {
		t.Fatalf("%+v, %d in hand", do, a.Running())
	}
	if do.Request == nil {
		t.Fatal("claims nothing though nothing is at hand")
	}
	for i, f := range do.Request.Exchange.Finished {
		if want := (agentmsg.Successor{Attempt: attempt(i + 2), At: from.Add(messages.Duration(i+1) * milli / 8)}); f.Next == nil || *f.Next != want {
			t.Fatalf("the slot of task %d went to %+v, want %+v", i, f.Next, want)
		}
	}
	// The runner reported that each task keeps its slot for only 250 µs. So in 40 ms, a slot can run 160 such tasks,
	// far more than n. If the agent claims only n tasks in advance, it did not use the times of the runner.
	if most := do.Request.Exchange.Claims[0].Ahead; most <= n {
		t.Errorf("wants %d tasks at hand, before %d: measured by when the agent heard", most, n)
	}
}

// TestFollowersAreAskedBack checks what the agent does before it gives a task back to the leader: it asks the runner
// for the task. If the task has already started, the task must keep its slot.
func TestFollowersAreAskedBack(t *testing.T) {
	for name, happens := range map[string]func(a *agent){
		"new weights": func(a *agent) {
			a.take(change(1, 2, 1000, 0, agentmsg.JobWeight{Job: 7, Weight: 1}, agentmsg.JobWeight{Job: 8, Weight: 1}))
		},
		"no executor":          func(a *agent) { a.Pause(true) },
		"the end of the agent": func(a *agent) { a.Close() },
		"a stop": func(a *agent) {
			d := &agentmsg.Directive{Term: 1}
			for at := range a.Running() - 2 {
				d.Stop = append(d.Stop, attempt(2+at))
			}
			a.Directive(a.now, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, n := followers(t)
			happens(a)
			do := a.act()
			sent := do.Request
			if len(do.Withdraw) != n || do.Withdraw[0] != attempt(2) || a.Running() != 2+n {
				t.Fatalf("asked %v back, %d in hand", do.Withdraw, a.Running())
			}
			if happens(a); len(a.act().Withdraw) > 0 {
				t.Error("asked back again")
			}
			a.now = a.now.Add(milli)
			a.turn(0, 2, milli/2) // this task has already started
			for i := 3; i < 2+n; i++ {
				a.Ended(agentmsg.Finished{Attempt: attempt(i), Outcome: agentmsg.Stopped})
			}
			if do = a.act(); do.Request != nil {
				sent = nil
			}
			if len(do.Start) > 0 || a.Running() != 2 {
				t.Fatalf("started %v, %d in hand", do.Start, a.Running())
			}
			if stopped := slices.Contains(do.Stop, state.Stop{Attempt: attempt(2)}); stopped != (name == "a stop" || name == "the end of the agent") {
				t.Errorf("stopped %+v", do.Stop)
			}
			ends := do.Request
			for ends == nil {
				if sent != nil {
					a.Answered(a.now, sent.ID, grants(sent, 0, 0))
					sent = nil
				}
				ends = a.sleep().Request
			}
			for _, f := range ends.Exchange.Finished {
				switch {
				case f.Attempt == attempt(0) && f.Next != nil && f.Next.Attempt == attempt(2):
				case f.Attempt == attempt(0) || f.Outcome != agentmsg.Stopped || f.Next != nil:
					t.Errorf("reported %+v", f)
				}
			}
		})
	}
}

// TestFollowerWithoutASlotIsKilled suspends two tasks: a running task, and a task that the runner has already started
// although it still waits for its slot. Then the second task gets a slot. It must be killed, and the leader must not
// hear that it got the slot.
func TestFollowerWithoutASlotIsKilled(t *testing.T) {
	a, n := followers(t)
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Version: 1, Suspended: []messages.Attempt{attempt(0), attempt(2)}})
	if do := a.act(); len(do.Withdraw) != n || !slices.Equal(do.Suspend, []messages.Attempt{attempt(0)}) {
		t.Fatalf("%+v", do)
	}
	a.turn(0, 2, 0) // the task had ended before the agent suspended it
	do := a.act()
	if !slices.Equal(do.Stop, []state.Stop{{Attempt: attempt(2), Kill: true}}) {
		t.Fatalf("stopped %v", do.Stop)
	}
	a.end(2, agentmsg.Stopped)
	for r := a.act().Request; ; r = a.sleep().Request {
		if r == nil {
			continue
		}
		for _, f := range r.Exchange.Finished {
			if f.Next != nil {
				t.Errorf("the leader hears that %+v", f)
			}
		}
		return
	}
}

// The executor reports that a task has started on the slot of another task. The agent does not know the started task,
// so this task must be killed.
func TestUnknownBeginIsKilled(t *testing.T) {
	a, n := followers(t)
	a.Turned(a.now, agentmsg.Finished{}, attempt(3))
	do := a.act()
	if !slices.Equal(do.Stop, []state.Stop{{Attempt: attempt(3), Kill: true}}) || len(do.Withdraw) != n-1 || slices.Contains(do.Withdraw, attempt(3)) {
		t.Fatalf("%+v", do)
	}
}

// TestKeptTaskIsNotOvertaken has a task that the runner does not start by itself. The agent must start it before later
// tasks.
func TestKeptTaskIsNotOvertaken(t *testing.T) {
	a, n := ahead(t)
	a.SetFeeds()
	for _, s := range a.act().Follow {
		a.Keep(s.Grant.Attempt)
	}
	for i := range n {
		a.end(i, agentmsg.Exited)
		if do := a.act(); len(do.Follow) > 0 || len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(i+2) {
			t.Fatalf("after task %d: %+v", i, do)
		}
	}
}

// TestFollowerBeginsByWord: a slot becomes free before the runner has received the list of waiting tasks. The agent
// itself must start the next waiting task.
func TestFollowerBeginsByWord(t *testing.T) {
	a, _ := followers(t)
	a.end(0, agentmsg.Exited)
	if do := a.act(); len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(2) {
		t.Fatalf("started %v", do.Start)
	}
	// The runner has started the same task on the slot of task 1 at the same time. So the agent's slot is still free.
	a.Turned(a.now, agentmsg.Finished{Attempt: attempt(1), Outcome: agentmsg.Exited}, attempt(2))
	if do := a.act(); len(do.Start) != 1 || do.Start[0].Grant.Attempt != attempt(3) || len(do.Stop) > 0 {
		t.Fatalf("%+v", do)
	}
}
