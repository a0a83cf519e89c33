package book

import (
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// exchange claims slots for a job, and asks for up to `ahead` tasks that wait for a slot.
func (s *site) exchange(seq uint64, job messages.JobID, slots, ahead int, finished ...agent.Finished) []agent.Grant {
	s.t.Helper()
	g, ok := s.apply(Command{Exchange: &Exchange{Node: "n1", Session: 7, Seq: seq, Sent: s.at, Finished: finished,
		Claims: []Claim{{Class: "map", Slots: slots, Jobs: []messages.JobID{job}, Ahead: ahead}}}}).([]agent.Grant)
	if !ok {
		s.t.Fatal("exchange refused")
	}
	return g
}

// passed returns a report: the attempt of grant `g` ended `ago` microseconds before now, and its slot went to the
// attempt of grant `next`.
func (s *site) passed(g, next agent.Grant, ago messages.Time) agent.Finished {
	return agent.Finished{Attempt: g.Attempt, Next: &agent.Successor{Attempt: next.Attempt, At: s.at - ago}}
}

func TestAheadNeitherRunsNorCosts(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 1)
	id, other := s.submit("a", job.Stage{Class: "map", Tasks: 1}), s.submit("b", job.Stage{Class: "map", Tasks: 6})
	first := s.exchange(1, id, 1, 0)
	from := s.at
	g := s.exchange(2, other, 5, 3)
	expect.Same(t, "len(g)", len(g), 3)
	expect.Same(t, "Ahead", g[0].Ahead, true, "Ahead", g[2].Ahead, true, "Ahead", first[0].Ahead, false)
	j := s.Job(other)
	_, running, _ := j.Count()
	expect.Same(t, "running", running, 0, "State", j.State, job.Waiting, "Began", j.Began(), 0, "Pending", j.StageStatuses()[0].Pending, 6)
	if again := s.exchange(3, other, 5, 3); len(again) != 0 {
		t.Fatalf("granted %v beyond the bound", again)
	}
	s.at += 1000
	since := s.at + 1 - 500
	s.exchange(4, other, 0, 0, s.passed(first[0], g[0], 500), s.passed(g[0], g[1], 200))
	if _, had := s.Used(s.Job(id), s.at); had != since.Sub(from) {
		t.Errorf("the first task had its slot for %v, want %v", had, since.Sub(from))
	}
	s.exchange(5, other, 0, 0, agent.Finished{Attempt: g[2].Attempt, Outcome: agent.Stopped})
	if _, had := s.Used(j, s.at); had != s.at.Sub(since) {
		t.Errorf("the job had slots for %v, want %v", had, s.at.Sub(since))
	}
	st := &j.Stages[0]
	_, running, done := j.Count()
	for what, n := range map[string][2]int{"run": {running, 1}, "done": {done, 1}, "retried": {st.Retried, 0}, "omitted": {int(j.Omitted), 0}, "again": {len(st.Again), 1}, "began": {j.Began(), 2}} {
		if n[0] != n[1] {
			t.Fatalf("%s: %d tasks, not %d; a task that was given back counts as never claimed", what, n[0], n[1])
		}
	}
	if j.State != job.Running {
		t.Fatalf("the job is %v", j.State)
	}
	if g = s.exchange(6, other, 1, 1); len(g) != 1 || g[0].Attempt.Number != 2 || j.Omitted != 0 {
		t.Fatalf("granted %v anew, %d omitted", g, j.Omitted)
	}
}

func TestAheadIsUndoneWithItsNode(t *testing.T) {
	for name, end := range map[string]func(s *site, id messages.JobID){
		"lost":    func(s *site, _ messages.JobID) { s.apply(Command{Lost: &Lost{Node: "n1", Session: 7}}) },
		"session": func(s *site, _ messages.JobID) { s.register("n1", 8, 1) },
		"cancelled": func(s *site, id messages.JobID) {
			s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.register("n1", 7, 1)
			id := s.submit("a", job.Stage{Class: "map", Tasks: 3})
			s.exchange(1, id, 3, 2)
			end(s, id)
			j := s.Job(id)
			if st := &j.Stages[0]; name != "cancelled" && (st.Running != 0 || st.Retried != 1 || len(st.Again) != 3 || s.Node("n1").waiting(0) != 0) {
				t.Errorf("%s: %d claimed, %d retried, %d again, %d waiting on n1", name, st.Running, st.Retried, len(st.Again), s.Node("n1").waiting(0))
			}
			if n := j.Began(); n > 1 {
				t.Errorf("%d tasks began, of which one ran", n)
			}
		})
	}
}

func TestDrainedNodeClaimsNothingAhead(t *testing.T) {
	s := newSite(t)
	s.register("n1", 7, 1)
	id := s.submit("a", job.Stage{Class: "map", Tasks: 3})
	gang := s.submit("b", job.Stage{Class: "map", Tasks: 2, Gang: true})
	s.exchange(1, id, 1, 0)
	if g := s.exchange(2, gang, 2, 2); len(g) != 0 {
		t.Errorf("a gang has %v ahead", g)
	}
	s.apply(Command{Drain: &Drain{Node: "n1", Until: s.at + 100}})
	if g := s.exchange(3, id, 2, 2); len(g) != 0 {
		t.Errorf("a node that drains has %v ahead", g)
	}
}

// An agent gives a free slot to a task that was claimed in advance. Before the leader learns of this, it gives the same
// slot to another task. The task that was claimed in advance must be ended and owe nothing.
func TestAheadOnASlotThatIsTaken(t *testing.T) {
	for _, how := range []string{"taken", "free", "leaving"} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			s.register("n1", 7, 1)
			id, other := s.submit("a", mapStage(3)), s.submit("b", mapStage(3))
			first := s.exchange(1, id, 1, 0)[0]
			next := s.exchange(2, other, 1, 1)[0]
			s.at += 1000
			seq := uint64(3)
			switch d := (&Decide{Market: "main", Suspend: []messages.Attempt{first.Attempt}}); how {
			case "leaving":
				s.apply(Command{Decide: &Decide{Market: "main", Requeue: []messages.Attempt{first.Attempt}}})
			case "taken":
				s.apply(Command{Decide: d})
				s.exchange(seq, id, 1, 0)
				seq++
			default:
				s.apply(Command{Decide: d})
			}
			s.at += 1000
			s.exchange(seq, other, 0, 0, s.passed(first, next, 900))
			n, st := s.Node("n1"), &s.Job(other).Stages[0]
			if stops := slices.Contains(n.Stop, next.Attempt); stops != (how == "taken") || n.Used[0] != 1 {
				t.Fatalf("it is to end: %v, %d slots have tasks", stops, n.Used[0])
			}
			s.at += 1000
			s.exchange(seq+1, other, 0, 0, agent.Finished{Attempt: next.Attempt, Outcome: agent.Stopped})
			if _, had := s.Used(s.Job(other), s.at); had != 0 || st.Running != 0 || len(st.Again) != 1 {
				t.Errorf("it owes for %v, %d run, %d again", had, st.Running, len(st.Again))
			}
		})
	}
}
