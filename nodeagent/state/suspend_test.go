package state_test

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

// tell sends a directive, and returns the resulting actions.
func (a *agent) tell(version uint64, held ...int) state.Actions {
	a.t.Helper()
	d := &agentmsg.Directive{Term: 1, Version: version}
	for _, i := range held {
		d.Suspended = append(d.Suspended, attempt(i))
	}
	a.Directive(a.now, d)
	return a.act()
}

func TestHoldAndResume(t *testing.T) {
	a := running(t, 2)
	do := a.tell(1, 0)
	if !slices.Equal(do.Suspend, []messages.Attempt{attempt(0)}) || len(do.Resume)+len(do.Stop) > 0 || a.Idle() != 1 {
		t.Fatalf("%+v, %d slots idle; want task 0 held and its slot free", do, a.Idle())
	}
	if do := a.tell(1, 0); len(do.Suspend) != 0 {
		t.Fatalf("held twice: %+v", do)
	}
	do = a.tell(2, 1)
	if !slices.Equal(do.Suspend, []messages.Attempt{attempt(1)}) || !slices.Equal(do.Resume, []messages.Attempt{attempt(0)}) {
		t.Fatalf("%+v, want the two to change places", do)
	}
	if do := a.tell(1, 0); len(do.Suspend)+len(do.Resume) != 0 {
		t.Fatalf("obeyed what is older: %+v", do)
	}
	if do := a.tell(3); !slices.Equal(do.Resume, []messages.Attempt{attempt(1)}) || a.Idle() != 0 || a.Running() != 2 {
		t.Fatalf("%+v, %d idle, want task 1 to go on", do, a.Idle())
	}
}

func TestHeldFromTheStart(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.join()
	a.vector(1, 1000, 2)
	r := a.request()
	reply := grants(r, 0, 2)
	reply.Suspended, reply.Version = []messages.Attempt{attempt(0), attempt(1)}, 1
	a.Answered(a.now, r.ID, reply)
	if do := a.act(); len(do.Start)+len(do.Suspend) != 0 || a.Running() != 2 {
		t.Fatalf("%+v, want both to wait", do)
	}
	if do := a.tell(2); len(do.Start) != 2 || len(do.Resume) != 0 {
		t.Fatalf("%+v, want both to begin", do)
	}
}

// TestDirectiveBeforeGrant suspends a task by a directive before the task is granted. The task must not start.
func TestDirectiveBeforeGrant(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.join()
	a.vector(1, 1000, 1)
	r := a.request()
	a.tell(7, 0)
	reply := grants(r, 0, 1)
	reply.Suspended, reply.Version = nil, 6
	a.Answered(a.now, r.ID, reply)
	if do := a.act(); len(do.Start) != 0 {
		t.Fatalf("began %+v though newer orders hold it", do.Start)
	}
}

func TestStopWhileHeld(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.join()
	a.vector(1, 1000, 2)
	r := a.request()
	reply := grants(r, 0, 2)
	reply.Suspended, reply.Version = []messages.Attempt{attempt(0)}, 1
	a.Answered(a.now, r.ID, reply)
	a.act()
	a.tell(2, 0, 1)                                                                                                    // task 0 has started, task 1 has not
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Version: 2, Suspended: []messages.Attempt{attempt(0), attempt(1)}, // the same directive again
		Stop: []messages.Attempt{attempt(0), attempt(1)}})
	do := a.act()
	if len(do.Stop) != 1 || do.Stop[0].Attempt != attempt(1) {
		t.Fatalf("%+v, want the task that has begun to be stopped", do)
	}
	if do.Request == nil || len(do.Request.Exchange.Finished) != 1 || do.Request.Exchange.Finished[0].Outcome != agentmsg.Stopped {
		t.Fatalf("%+v, want the other reported as stopped", do.Request)
	}
	a.end(1, agentmsg.Stopped)
	if a.Running() != 0 || a.Idle() != 2 {
		t.Fatalf("%d run, %d slots idle", a.Running(), a.Idle())
	}
}

func TestAdoptedTasksAreReported(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.Adopt(attempt(3), "cpu", 1, false)
	a.Adopt(attempt(4), "cpu", 1, false)
	r := a.request()
	if !slices.Equal(r.Register.Running, []messages.Attempt{attempt(3), attempt(4)}) {
		t.Fatalf("registered with %v", r.Register.Running)
	}
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: lease, Term: 1, Stop: []messages.Attempt{attempt(4)}})
	do := a.act()
	if len(do.Stop) != 1 || do.Stop[0].Attempt != attempt(4) || a.Idle() != 0 {
		t.Fatalf("%+v, %d idle", do, a.Idle())
	}
	a.Ended(agentmsg.Finished{Attempt: attempt(3), Outcome: agentmsg.Exited})
	if e := a.request().Exchange; len(e.Finished) != 1 || e.Finished[0].Attempt != attempt(3) {
		t.Fatalf("%+v", e)
	}
}

// A new agent finds a suspended task of the agent before it. Meanwhile the leader has resumed this task. The first
// answer of the leader must make the agent resume it.
func TestAdoptedSuspendedTaskGoesOn(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.Adopt(attempt(3), "cpu", 1, true)
	a.Adopt(attempt(4), "cpu", 1, true)
	if a.Idle() != 2 || a.Running() != 2 {
		t.Fatalf("%d idle, %d running", a.Idle(), a.Running())
	}
	a.join()
	a.vector(1, 1000, 2)
	r := a.request()
	reply := grants(r, 0, 0)
	reply.Suspended, reply.Version = []messages.Attempt{attempt(4)}, 1
	a.Answered(a.now, r.ID, reply)
	if do := a.act(); !slices.Equal(do.Resume, []messages.Attempt{attempt(3)}) || len(do.Suspend) != 0 || a.Idle() != 1 {
		t.Fatalf("%+v, %d idle; want task 3 to go on", do, a.Idle())
	}
	if do := a.tell(2); !slices.Equal(do.Resume, []messages.Attempt{attempt(4)}) || a.Idle() != 0 {
		t.Fatalf("%+v, %d idle; want task 4 to go on", do, a.Idle())
	}
}

// TestAdoptedSuspendedTaskGoesOnUnderALeaderThatHoldsNothing adopts a suspended task. The leader has never suspended a
// task. Its first answer must resume the task.
func TestAdoptedSuspendedTaskGoesOnUnderALeaderThatHoldsNothing(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.Adopt(attempt(3), "cpu", 1, true)
	a.join()
	a.vector(1, 1000, 2)
	r := a.request()
	a.Answered(a.now, r.ID, grants(r, 0, 0))
	if do := a.act(); !slices.Equal(do.Resume, []messages.Attempt{attempt(3)}) {
		t.Fatalf("%+v", do)
	}
}

// TestPausedNodeClaimsNothing checks that a node claims nothing while it cannot start tasks, and claims the pending
// work afterwards.
func TestPausedNodeClaimsNothing(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.join()
	a.Pause(true)
	a.vector(1, 1000, 2)
	a.silent()
	a.vector(2, 1000, 2)
	a.silent()
	a.Pause(false)
	r := a.request()
	if slotsOf(r.Exchange) != 2 {
		t.Fatalf("claimed %+v", r.Exchange.Claims)
	}
	a.Answered(a.now, r.ID, grants(r, 0, 2))
	a.act()
	a.Pause(true)
	a.end(0, agentmsg.Stopped) // the task's executor ended
	a.end(1, agentmsg.Stopped)
	if r := a.request(); len(r.Exchange.Finished) != 2 || len(r.Exchange.Claims) != 0 {
		t.Fatalf("sent %+v", r.Exchange)
	}
}
