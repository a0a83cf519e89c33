package book

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// cancelTasks cancels tasks of the first stage of a job; tasks is an array such as "0-3".
func (s *site) cancelTasks(id messages.JobID, tasks string) any {
	s.t.Helper()
	array, _, err := job.ParseArray(tasks)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.apply(Command{CancelTasks: &CancelTasks{Job: id, Tasks: array, By: "alice", Window: 1e9}})
}

// Of five tasks, one is done, one runs, and three have not begun. The first four tasks are cancelled: the done one,
// the running one and two others. The job must run the fifth task and end as cancelled.
func TestTasksAreCancelledAlone(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(5))
	s.register("n", 1, 2)
	g := s.claim("n", 1, 1, 2, id)
	s.finish("n", 1, 2, agent.Exited, 0, g[0].Attempt)
	if n := s.cancelTasks(id, "0-3"); n != 3 {
		t.Fatalf("cancelled %v, not 3 tasks", n)
	}
	refusal(t, s.cancelTasks(id, "0-3"), messages.Ended)
	refusal(t, s.cancelTasks(id, "4,5"), messages.NotFound)
	if stop := s.Node("n").Stop; !slices.Equal(stop, []messages.Attempt{g[1].Attempt}) {
		t.Errorf("the node is to stop %v", stop)
	}
	last := s.claim("n", 1, 3, 2, id)
	if len(last) != 1 || last[0].Attempt.Task.Index != 4 {
		t.Fatalf("granted %v, not the last task alone", last)
	}
	s.finish("n", 1, 4, agent.Exited, 0, last[0].Attempt)
	if j := s.Job(id); !j.Active() {
		t.Fatalf("the job is %v before the cancelled task has left its node", j.State)
	}
	s.finish("n", 1, 5, agent.Stopped, -1, g[1].Attempt)
	j := s.Job(id)
	expect.Same(t, "Outcome", j.Outcome, job.Cancelled, "Reason", j.Reason, "CancelledByUser", "Done", j.Stages[0].Done, 2,
		"CancelledTasks", j.CancelledTasks(), 3, "Failures", j.Failures(), 0)
}

// A cancelled task must not run again when its node is lost.
func TestCancelledTaskOfALostNode(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	s.register("n", 1, 1)
	s.claim("n", 1, 1, 1, id)
	s.cancelTasks(id, "0")
	s.apply(Command{Lost: &Lost{Node: "n", Session: 1}})
	if j := s.Job(id); j.Outcome != job.Cancelled || j.CancelledTasks() != 1 {
		t.Errorf("the job is %v with %d cancelled tasks", j.State, j.CancelledTasks())
	}
}

// All tasks are cancelled before any began. The job must end, and the site keeps the deposit.
func TestAllTasksCancelled(t *testing.T) {
	s := newSite(t)
	id := s.secured("k", 0).(Receipt).Job
	if n := s.cancelTasks(id, "0"); n != 1 {
		t.Fatalf("cancelled %v", n)
	}
	if j := s.Job(id); j.Outcome != job.Cancelled || j.State != job.Settling || !j.Deposit.Kept {
		t.Errorf("the job is %v, deposit %+v", j.State, j.Deposit)
	}
	gang := alone("gang", 2)
	gang.Gang = true
	refusal(t, s.cancelTasks(s.submit("g", gang), "0"), messages.Conflict)
}

func TestCancelledTasksNeverRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSite(t)
		total := rapid.IntRange(1, 30).Draw(rt, "tasks")
		id := s.submit("k", mapStage(total))
		s.register("n", 1, 4)
		cancelled := map[int64]bool{}
		for seq := uint64(1); s.Job(id).Active(); {
			if first := rapid.Int64Range(0, int64(total)-1).Draw(rt, "first"); rapid.Bool().Draw(rt, "cancel") {
				r := job.Range{First: first, Last: rapid.Int64Range(first, int64(total)-1).Draw(rt, "last"), Step: rapid.Int64Range(1, 3).Draw(rt, "step")}
				s.apply(Command{CancelTasks: &CancelTasks{Job: id, Tasks: job.Array{r}, By: "alice"}})
				for at := range (job.Array{r}).Indices {
					cancelled[at] = true
				}
			}
			for _, g := range s.claim("n", 1, seq, rapid.IntRange(1, 4).Draw(rt, "slots"), id) {
				if cancelled[int64(g.Attempt.Task.Index)] {
					rt.Fatalf("task %d was cancelled and is granted", g.Attempt.Task.Index)
				}
			}
			seq++
			for ref, h := range s.Node("n").Claims {
				outcome := agent.Exited
				if h.Leaving {
					outcome = agent.Stopped
				}
				s.finish("n", 1, seq, outcome, 0, messages.Attempt{Task: ref, Number: h.Attempt})
				seq++
				break
			}
		}
		j := s.Job(id)
		if j.Stages[0].Done+j.CancelledTasks() != total || (j.Outcome == job.Completed) != (j.CancelledTasks() == 0) {
			rt.Fatalf("the job is %v: %d of %d done, %d cancelled", j.Outcome, j.Stages[0].Done, total, j.CancelledTasks())
		}
	})
}
