package book

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// The function alone returns a stage whose tasks have one attempt and fail independently of one another.
func alone(name messages.Name, tasks int, after ...messages.Name) job.Stage {
	s := mapStage(tasks)
	s.Name, s.After, s.Attempts, s.OnFailure = name, after, 1, job.GoOn
	return s
}

// One of three tasks fails, and the others run to their end. Then the job must end as failed, with the exit code of the
// failed task.
func TestTaskFailsAlone(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", alone("map", 3))
	s.register("n", 1, 2)
	g := s.claim("n", 1, 1, 2, id)
	s.finish("n", 1, 2, agent.Exited, 7, g[0].Attempt)
	if j := s.Job(id); j.State != job.Running || j.Claimable(0) != 1 || len(s.Node("n").Stop) != 0 {
		t.Fatalf("after a failure the job is %v with %d tasks to claim, and %v are stopped", j.State, j.Claimable(0), s.Node("n").Stop)
	}
	g = append(g, s.claim("n", 1, 3, 2, id)...)
	s.finish("n", 1, 4, agent.Exited, 0, g[1].Attempt)
	s.finish("n", 1, 5, agent.TimedOut, 9, g[2].Attempt)
	j := s.Job(id)
	expect.Same(t, "Outcome", j.Outcome, job.Failed, "Reason", j.Reason, "TaskFailed", "ExitCode", j.ExitCode, 7, "Failures", j.Failures(), 2,
		"Done", j.Stages[0].Done, 1)
}

// A stage that an earlier version stored does not say what happens when a task fails. When a task fails, the job must
// then end at once.
func TestStopIsTheDefault(t *testing.T) {
	s := newSite(t)
	stage := alone("map", 3)
	stage.OnFailure = ""
	id := s.submit("k", stage)
	s.register("n", 1, 2)
	g := s.claim("n", 1, 1, 2, id)
	s.finish("n", 1, 2, agent.Exited, 7, g[0].Attempt)
	if j := s.Job(id); j.Outcome != job.Failed || j.Failures() != 1 || !slices.Equal(s.Node("n").Stop, []messages.Attempt{g[1].Attempt}) {
		t.Errorf("the job is %v with %d failures, and %v are stopped", j.Outcome, j.Failures(), s.Node("n").Stop)
	}
}

func TestStagesAfterAFailedStage(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", alone("last", 1, "next"), alone("next", 1, "map"), alone("map", 2), alone("other", 2))
	s.register("n", 1, 4)
	g := s.claim("n", 1, 1, 4, id)
	s.finish("n", 1, 2, agent.Exited, 1, g[0].Attempt)
	s.finish("n", 1, 3, agent.Exited, 0, g[1].Attempt, g[2].Attempt)
	if j := s.Job(id); !j.Active() || j.Claimable(0)+j.Claimable(1) != 0 {
		t.Fatalf("with a stage still running the job is %v, with %d tasks of later stages to claim", j.State, j.Claimable(0)+j.Claimable(1))
	}
	s.finish("n", 1, 4, agent.Exited, 0, g[3].Attempt)
	if j := s.Job(id); j.Outcome != job.Failed || j.Stages[1].Started != 0 {
		t.Errorf("at last the job is %v, and the later stage was started at %v", j.Outcome, j.Stages[1].Started)
	}
}

// Each job must end. A job without a failure must complete. A stage that waits for a stage with failures must never
// begin.
func TestFailuresEndTheJob(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSite(t)
		var stages []job.Stage
		for i := range rapid.IntRange(1, 5).Draw(rt, "stages") {
			stage := alone(string(rune('a'+i)), rapid.IntRange(1, 3).Draw(rt, "tasks"))
			for k := range i {
				if rapid.IntRange(0, 3).Draw(rt, "after") == 0 {
					stage.After = append(stage.After, string(rune('a'+k)))
				}
			}
			if rapid.IntRange(0, 4).Draw(rt, "stop") == 0 {
				stage.OnFailure = job.Stop
			}
			stages = append(stages, stage)
		}
		id := s.submit("k", stages...)
		s.register("n", 1, 100)
		seq, failed := uint64(0), false
		for range 100 {
			if !s.Job(id).Active() {
				break
			}
			seq++
			for _, g := range s.claim("n", 1, seq, 2, id) {
				exit := rapid.IntRange(0, 5).Draw(rt, "exit") / 5
				failed = failed || exit > 0 && s.Job(id).Active()
				seq++
				s.finish("n", 1, seq, agent.Exited, exit, g.Attempt)
			}
		}
		j := s.Job(id)
		if j.Active() || (j.Outcome == job.Failed) != failed || failed != (j.Failures() > 0) {
			rt.Fatalf("the job is %v, %v; a task failed: %v, and %d are counted", j.State, j.Outcome, failed, j.Failures())
		}
		for i := range stages {
			for _, name := range stages[i].After {
				if k := int(name[0] - 'a'); j.Stages[k].Failed > 0 && j.Stages[i].Started != 0 {
					rt.Fatalf("stage %d was started, which waits for stage %d with %d failures", i, k, j.Stages[k].Failed)
				}
			}
		}
	})
}

// The requeued task must run with a new attempt number. The job must pay for both attempts. The requeued attempt must
// not count as one of the task's permitted tries.
func TestRequeue(t *testing.T) {
	s := newSite(t)
	stage := alone("map", 2)
	id := s.submit("k", stage)
	s.register("n", 1, 2)
	g := s.claim("n", 1, 1, 2, id)
	if n, is := s.apply(Command{Requeue: &Requeue{Job: id, Tasks: []messages.TaskRef{g[0].Attempt.Task}}}).(int); !is || n != 1 {
		t.Fatalf("%d tasks were requeued, not 1", n)
	}
	if stop := s.Node("n").Stop; !slices.Equal(stop, []messages.Attempt{g[0].Attempt}) {
		t.Errorf("the node is to stop %v", stop)
	}
	refusal(t, s.apply(Command{Requeue: &Requeue{Job: id, Tasks: []messages.TaskRef{g[0].Attempt.Task}}}), messages.Conflict)
	refusal(t, s.apply(Command{Requeue: &Requeue{Job: id, Tasks: []messages.TaskRef{{Job: id, Index: 2}}}}), messages.NotFound)
	refusal(t, s.apply(Command{Requeue: &Requeue{Job: 99}}), messages.NotFound)
	_, before := s.Used(s.Job(id), s.Now())
	s.finish("n", 1, 2, agent.Stopped, -1, g[0].Attempt)
	again := s.claim("n", 1, 3, 2, id)
	if len(again) != 1 || again[0].Attempt.Number != 2 || before == 0 {
		t.Fatalf("granted %v after the requeue, with %v paid for before", again, before)
	}
	s.finish("n", 1, 4, agent.Exited, 0, again[0].Attempt, g[1].Attempt)
	j := s.Job(id)
	st := &j.Stages[0]
	expect.Same(t, "Outcome", j.Outcome, job.Completed, "Requeued", st.Requeued, 1, "Retried", st.Retried, 1, "Tries", st.Tasks[0].Tries, 0)
	refusal(t, s.apply(Command{Requeue: &Requeue{Job: id}}), messages.Ended)
}

// Two tasks of a gang are requeued in one command. The whole gang must begin again, once.
func TestRequeueAll(t *testing.T) {
	s := newSite(t)
	gang := mapStage(2)
	gang.Gang = true
	id := s.submit("k", gang)
	s.register("n", 1, 2)
	refusal(t, s.apply(Command{Requeue: &Requeue{Job: id}}), messages.Conflict)
	g := s.claim("n", 1, 1, 2, id)
	if n, is := s.apply(Command{Requeue: &Requeue{Job: id}}).(int); !is || n != 2 {
		t.Errorf("%d tasks were requeued, not the gang of 2", n)
	}
	s.finish("n", 1, 2, agent.Stopped, -1, g[0].Attempt, g[1].Attempt)
	if again := s.claim("n", 1, 3, 2, id); len(again) != 2 {
		t.Errorf("granted %v, not the whole gang", again)
	}
}

// Each task must have the same position as the task that it repeats.
func TestRepeatedTasksKeepTheirPlaces(t *testing.T) {
	s := newSite(t)
	stage := mapStage(0)
	stage.Array = job.Array{{First: 13, Last: 17, Step: 4}}
	stage.Repeats = &job.Repeats{Tasks: 10, Positions: job.Array{{First: 3, Last: 7, Step: 4}}}
	id := s.submit("k", stage)
	s.register("n", 1, 2)
	for k, g := range s.claim("n", 1, 1, 2, id) {
		if g.Place() != uint32(3+4*k) || g.Array != int64(13+4*k) {
			t.Errorf("task %d goes by position %d and index %d", k, g.Place(), g.Array)
		}
	}
	if g := (agent.Grant{Attempt: messages.Attempt{Task: messages.TaskRef{Index: 5}}}); g.Place() != 5 {
		t.Errorf("a task that repeats none goes by position %d", g.Place())
	}
}

// A running job, and a job whose task could not start, must have the exit code null in JSON.
func TestExitCodeOfAJob(t *testing.T) {
	for outcome, want := range map[agent.Outcome]job.Exit{agent.Unstartable: job.NoExit, agent.Exited: 7} {
		s := newSite(t)
		id := s.submit("k", alone("map", 1))
		s.register("n", 1, 1)
		g := s.claim("n", 1, 1, 1, id)
		if code := s.Job(id).Summary().ExitCode; code != job.NoExit {
			t.Errorf("a job that runs has exit code %d", code)
		}
		s.finish("n", 1, 2, outcome, max(0, int(want)), g[0].Attempt)
		got := s.Job(id).Summary()
		data, err := json.Marshal(got)
		if null := strings.Contains(string(data), `"exit_code":null`); err != nil || got.ExitCode != want || null != (want < 0) {
			t.Errorf("%v: exit code %v in %s", outcome, got.ExitCode, data)
		}
		var back job.JobSummary
		if err := json.Unmarshal(data, &back); err != nil || back.ExitCode != want {
			t.Errorf("read again: %v, %v", back.ExitCode, err)
		}
	}
}
