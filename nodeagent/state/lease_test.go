package state_test

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

// expire advances the clock and fails every request, until the agent stops tasks because its lease has ended.
func (a *agent) expire() {
	a.t.Helper()
	for i := 0; len(a.stops) == 0; i++ {
		if i == 1000 {
			a.t.Fatal("the lease does not end")
		}
		if r := a.sleep().Request; r != nil {
			a.Failed(a.now, r.ID, fails(messages.Unavailable))
		}
	}
}

func TestLeaseCountsFromTheFirstSending(t *testing.T) {
	a := running(t, 1)
	var r *state.Request
	for r == nil {
		r = a.sleep().Request
	}
	sent := a.now
	a.Failed(a.now, r.ID, fails(messages.Unavailable))
	r = a.sleep().Request
	a.now = a.now.Add(second)
	a.Answered(a.now, r.ID, grants(r, 0, 0)) // this may be the answer to the first sending, so the lease counts from there
	a.expire()
	if at := sent.Add(lease); a.now != at {
		t.Fatalf("tasks were stopped at %v, the lease ended at %v", a.now, at)
	}
	if !a.stops[0].Kill {
		t.Fatal("a task was given grace beyond the lease")
	}
}

func TestExpiredLeaseBringsNewSession(t *testing.T) {
	a := running(t, 2)
	session := a.Session()
	a.end(0, agentmsg.Exited) // this end comes too late to be reported in this session
	a.expire()
	if r := a.act().Request; r != nil {
		t.Fatalf("sent %+v while a task runs", r)
	}
	a.end(1, agentmsg.Stopped)
	r := a.request()
	if r.Register == nil || r.Register.Session == session || r.Register.Session == 0 {
		t.Fatalf("sent %+v, want a registration under a new session", r)
	}
	if want := []messages.Attempt{attempt(0), attempt(1)}; !slices.Equal(r.Register.Running, want) {
		t.Fatalf("has %v in hand, want %v", r.Register.Running, want)
	}
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: lease, Term: 1, Stop: []messages.Attempt{attempt(1)}})
	e := a.request().Exchange
	if len(e.Finished) != 2 || e.Seq != 1 {
		t.Fatalf("sent %+v, want the finishes of both tasks, as exchange 1", e)
	}
	if f := e.Finished[0]; f.Attempt != attempt(0) || f.Outcome != agentmsg.Exited {
		t.Fatalf("sent %+v, want the exit of task 0 first", f)
	}
}

// TestWhatIsToBeStoppedIsReportedAlsoIfItHasEnded: an agent registers after its task has ended. The leader does not
// know of the end, and asks the agent to stop the task. The agent must report the end again. Otherwise the leader would
// count the task's slot as taken for ever.
func TestWhatIsToBeStoppedIsReportedAlsoIfItHasEnded(t *testing.T) {
	a := running(t, 1)
	a.expire()
	a.end(0, agentmsg.Stopped)
	r := a.request()
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: lease, Term: 1, Stop: []messages.Attempt{attempt(0)}})
	if e := a.request().Exchange; e == nil || len(e.Finished) != 1 || e.Finished[0].Attempt != attempt(0) {
		t.Fatalf("sent %+v, want the finish of task 0", e)
	}
}

func TestFencedStopsEverything(t *testing.T) {
	a := running(t, 2)
	session := a.Session()
	a.end(0, agentmsg.Exited)
	r := a.request()
	a.Failed(a.now, r.ID, fails(messages.Fenced))
	a.act()
	if len(a.stops) != 1 || a.stops[0].Attempt != attempt(1) || !a.stops[0].Kill {
		t.Fatalf("stopped %+v, want task 1 killed", a.stops)
	}
	a.end(1, agentmsg.Stopped)
	a.silent() // nothing is sent before a pause, because there may be another agent with this name
	r = a.sleep().Request
	if r == nil || r.Register == nil || r.Register.Session == session {
		t.Fatalf("sent %+v, want a registration under a new session", r)
	}
	if len(r.Register.Running) != 2 {
		t.Fatalf("sent %+v, want both tasks", r.Register)
	}
}

func TestNothingIsClaimedWithoutLease(t *testing.T) {
	a := running(t, 1)
	a.expire()
	a.vector(2, 1000, 1)
	a.end(0, agentmsg.Stopped)
	if r := a.request(); r.Register == nil {
		t.Fatalf("sent %+v", r.Exchange)
	}
}

func TestRegistrationIsRepeatedUnderItsSession(t *testing.T) {
	a := newAgent(t, 1, 1)
	r := a.request()
	session := r.Register.Session
	for range 20 {
		from := a.now
		a.Failed(a.now, r.ID, fails(messages.NotLeader))
		if r = a.sleep().Request; r.Register.Session != session {
			t.Fatal("the session changed")
		}
		if waited := a.now.Sub(from); waited <= 0 || waited > 2*second {
			t.Fatalf("waited %v", waited)
		}
	}
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: 0})
	if a.Joined() {
		t.Fatal("took a lease of nothing")
	}
}

func TestCloseEndsAndReports(t *testing.T) {
	a := running(t, 2)
	a.end(0, agentmsg.Exited)
	r := a.request() // this exchange also has a claim
	a.Close()
	if a.act().Closed {
		t.Fatal("closed while a task runs")
	}
	if len(a.stops) != 1 || a.stops[0].Attempt != attempt(1) || a.stops[0].Kill {
		t.Fatalf("stopped %+v", a.stops)
	}
	a.Answered(a.now, r.ID, grants(r, 5, 1))
	r = a.request()
	if e := r.Exchange; len(e.Finished) != 1 || e.Finished[0].Attempt != attempt(5) || e.Finished[0].Outcome != agentmsg.Stopped {
		t.Fatalf("sent %+v, want the task granted too late as Stopped", e)
	}
	a.end(1, agentmsg.Stopped)
	a.Answered(a.now, r.ID, grants(r, 0, 0))
	r = a.request()
	if e := r.Exchange; len(e.Finished) != 1 || len(e.Claims) != 0 {
		t.Fatalf("sent %+v, want the last finish and no claim", e)
	}
	a.Answered(a.now, r.ID, grants(r, 0, 0))
	if !a.act().Closed {
		t.Fatal("not closed when everything was reported")
	}
}

func TestCloseWithoutLeaseEndsAtOnce(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.request()
	a.Close()
	if !a.act().Closed {
		t.Fatal("waits for a session that it does not need")
	}
}

// TestAbilitiesAreToldWhileTasksRun changes the abilities while tasks run. The agent must report the latest abilities
// under the same session, and lose no task. Registrations and exchanges must wait for each other's answers.
func TestAbilitiesAreToldWhileTasksRun(t *testing.T) {
	a := newAgent(t, 2, 1)
	a.SetAbilities([]messages.Name{"one"})
	a.join()
	session := a.Session()
	a.vector(1, 1, 2)
	r := a.request()
	a.SetAbilities([]messages.Name{"two"})
	a.silent()
	a.Answered(a.now, r.ID, grants(r, 0, 1))
	tells := a.request()
	if g := tells.Register; g == nil || g.Session != session {
		t.Fatalf("sent %+v, want a registration under the same session", tells)
	} else if !slices.Contains(g.Abilities, "two") || len(g.Running) != 1 {
		t.Fatalf("registered %+v, want ability two and one task", g)
	}
	a.SetAbilities([]messages.Name{"three"})
	a.end(0, agentmsg.Exited)
	a.silent()
	a.Failed(a.now, tells.ID, fails(messages.Unavailable))
	if tells = a.sleep().Request; tells == nil || tells.Register == nil {
		t.Fatalf("%+v", tells)
	}
	a.Registered(a.now, tells.ID, &agentmsg.RegisterReply{Lease: lease, Markets: []agentmsg.NodeMarket{{Name: "main", Classes: []messages.Name{"cpu"}}}, Term: 1})
	tells = a.request()
	if g := tells.Register; g == nil || !slices.Contains(g.Abilities, "three") {
		t.Fatalf("%+v", tells)
	}
	a.Registered(a.now, tells.ID, &agentmsg.RegisterReply{Lease: lease, Term: 1})
	if e := a.request().Exchange; e == nil || len(e.Finished) != 1 || e.Session != session {
		t.Errorf("sent %+v, want one end under the same session", e)
	}
	if len(a.stops) > 0 {
		t.Errorf("stopped %v", a.stops)
	}
}
