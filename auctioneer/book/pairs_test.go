package book

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// arrayOf returns the stage of an array whose tasks fail independently of one another.
func arrayOf(last int64) jobmsg.Stage {
	stage := mapStage(int(last) + 1)
	stage.Array, stage.OnFailure, stage.Attempts = jobmsg.Array{{First: 0, Last: last, Step: 1}}, jobmsg.GoOn, 1
	return stage
}

// wait submits a job with conditions, and returns its number or the refusal.
func (s *site) wait(key string, stage jobmsg.Stage, change func(*jobmsg.JobSpec)) (messages.JobID, error) {
	spec := &jobmsg.JobSpec{Market: "main", Budget: 100, Stages: []jobmsg.Stage{stage}}
	change(spec)
	switch r := s.apply(Command{Submit: &Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 100, Spec: spec}}).(type) {
	case Receipt:
		return r.Job, nil
	case error:
		return 0, r
	}
	return 0, nil
}

// Each task starts when its counterpart in the other array has completed. If the counterpart did not complete, the task
// must be cancelled.
func TestTasksOfArraysWaitForOneAnother(t *testing.T) {
	s := newSite(t)
	s.register("n1", 1, 9)
	first := s.submit("first", arrayOf(4))
	grants := s.claim("n1", 1, 1, 9, first)
	second, err := s.wait("second", arrayOf(4), func(spec *jobmsg.JobSpec) { spec.AfterEach = first })
	if err != nil || len(grants) != 5 {
		t.Fatal(err, grants)
	}
	j := func() *Job { return s.Job(second) }
	if j().Blocked != 1 || j().Claimable(0) != 0 || len(s.claim("n1", 1, 2, 9, second)) != 0 {
		t.Fatalf("before any task of the first has completed: %d blocked, %d claimable", j().Blocked, j().Claimable(0))
	}
	s.apply(Command{CancelTasks: &CancelTasks{Job: second, Tasks: jobmsg.Array{{First: 1, Last: 1, Step: 1}}, By: "alice"}})
	s.finish("n1", 1, 3, agent.Exited, 0, grants[3].Attempt, grants[1].Attempt)
	copyInto(t, s.Book, s.Book)
	if j().Blocked != 0 || j().Claimable(0) != 1 {
		t.Fatalf("after tasks 3 and 1: %d blocked, %d claimable, want task 3", j().Blocked, j().Claimable(0))
	}
	got := s.claim("n1", 1, 4, 9, second)
	if len(got) != 1 || got[0].Attempt.Task.Index != 3 || got[0].Array != 3 {
		t.Fatalf("claimed %+v, want task 3", got)
	}
	s.finish("n1", 1, 5, agent.Exited, 0, got[0].Attempt)
	s.finish("n1", 1, 6, agent.Exited, 7, grants[0].Attempt)
	s.finish("n1", 1, 7, agent.Exited, 0, grants[2].Attempt)
	got = s.claim("n1", 1, 8, 9, second)
	if !j().Active() || len(got) != 1 || got[0].Attempt.Task.Index != 2 {
		t.Fatalf("claimed %+v, want task 2", got)
	}
	s.finish("n1", 1, 9, agent.Exited, 7, grants[4].Attempt)
	if s.Job(first).Outcome != jobmsg.Failed || !j().Active() || j().CancelledTasks() != 3 {
		t.Fatalf("when the first has ended: %v, the second %v with %d cancelled tasks, want 0, 1 and 4", s.Job(first).Outcome, j().State, j().CancelledTasks())
	}
	s.finish("n1", 1, 10, agent.Exited, 0, got[0].Attempt)
	if j().Outcome != jobmsg.Cancelled || j().Reason != "DependencyFailed" || !strings.Contains(j().Cause, "2 of its tasks were cancelled: their counterparts of job 1") {
		t.Errorf("the second is %v, %s: %s", j().Outcome, j().Reason, j().Cause)
	}
	late, err := s.wait("late", arrayOf(4), func(spec *jobmsg.JobSpec) { spec.AfterEach = first })
	if err != nil || s.Job(late).Claimable(0) != 3 || s.Job(late).CancelledTasks() != 2 {
		t.Errorf("after the end: %v, %d claimable", err, s.Job(late).Claimable(0))
	}
}

func TestArraysThatDoNotMatchAreRefused(t *testing.T) {
	s := newSite(t)
	s.register("n1", 1, 9)
	first, plain := s.submit("first", arrayOf(1)), s.submit("plain", mapStage(2))
	for job, stage := range map[messages.JobID]jobmsg.Stage{first: arrayOf(2), plain: arrayOf(1), 9: arrayOf(1)} {
		if id, err := s.wait("bad", stage, func(spec *jobmsg.JobSpec) { spec.AfterEach = job }); err == nil {
			t.Errorf("job %d waits for job %d", id, job)
		}
	}
	second, _ := s.wait("second", arrayOf(1), func(spec *jobmsg.JobSpec) { spec.AfterEach = first })
	third, _ := s.wait("third", arrayOf(1), func(spec *jobmsg.JobSpec) { spec.AfterEach = second })
	s.apply(Command{Cancel: &Cancel{Job: first, By: "alice"}})
	for _, id := range []messages.JobID{second, third} {
		if j := s.Job(id); j.Outcome != jobmsg.Cancelled || j.Reason != "DependencyFailed" {
			t.Errorf("job %d is %v, %s", id, j.Outcome, j.Reason)
		}
	}
	if _, err := s.wait("late", arrayOf(1), func(spec *jobmsg.JobSpec) { spec.AfterEach = first }); messages.KindOf(err) != messages.Ended {
		t.Errorf("a job that waits for a cancelled array: %v", err)
	}
}

// A job waits for one of several jobs. It must start when one of them has ended as required. It must end when none of
// them can.
func TestOneOfSeveralJobsIsEnough(t *testing.T) {
	s := newSite(t)
	s.register("n1", 1, 9)
	var jobs []messages.JobID
	for _, key := range []string{"a", "b", "c"} {
		jobs = append(jobs, s.submit(key, mapStage(1)))
	}
	any := func(key string, change func(*jobmsg.JobSpec)) *Job {
		id, err := s.wait(key, mapStage(1), func(spec *jobmsg.JobSpec) { change(spec); spec.AfterAny = true })
		if err != nil {
			t.Fatal(key, err)
		}
		return s.Job(id)
	}
	ok := any("ok", func(spec *jobmsg.JobSpec) { spec.AfterOK = slices.Clone(jobs) })
	bad := any("bad", func(spec *jobmsg.JobSpec) { spec.AfterOK = slices.Clone(jobs[:2]) })
	starts := any("starts", func(spec *jobmsg.JobSpec) {
		spec.AfterOK, spec.AfterStart = slices.Clone(jobs[:2]), slices.Clone(jobs[2:])
	})
	s.apply(Command{Cancel: &Cancel{Job: jobs[0], By: "alice"}})
	for _, j := range []*Job{ok, bad, starts} {
		if now := s.Job(j.ID); now.Blocked == 0 || !now.Active() {
			t.Errorf("job %d is %v and waits for %d after the first of several failed", j.ID, now.State, now.Blocked)
		}
	}
	grants := s.claim("n1", 1, 1, 9, jobs[2])
	copyInto(t, s.Book, s.Book)
	if now := s.Job(starts.ID); now.Blocked != 0 || s.Job(ok.ID).Blocked == 0 {
		t.Errorf("after a start %d and %d are awaited", now.Blocked, s.Job(ok.ID).Blocked)
	}
	s.apply(Command{Cancel: &Cancel{Job: jobs[1], By: "alice"}})
	if now := s.Job(bad.ID); now.Reason != "DependencyFailed" || !s.Job(starts.ID).Active() {
		t.Errorf("a job of which no condition can hold is %v, %s", now.State, now.Reason)
	}
	s.finish("n1", 1, 2, agent.Exited, 0, grants[0].Attempt)
	if now := s.Job(ok.ID); now.Blocked != 0 || !now.Active() {
		t.Errorf("after a completion: %v, %d blocked", now.State, now.Blocked)
	}
	if late := any("late", func(spec *jobmsg.JobSpec) { spec.AfterOK = slices.Clone(jobs) }); late.Blocked != 0 {
		t.Errorf("a job whose condition holds already waits for %d", late.Blocked)
	}
	if _, err := s.wait("none", mapStage(1), func(spec *jobmsg.JobSpec) { spec.AfterOK, spec.AfterAny = slices.Clone(jobs[:2]), true }); messages.KindOf(err) != messages.Ended {
		t.Errorf("none can hold: %v", err)
	}
}

// The delay must count from the start of the other job. This must be so even if the other job started before the
// waiting job was submitted.
func TestAJobStartsSomeTimeAfterAStart(t *testing.T) {
	s := newSite(t)
	s.register("n1", 1, 9)
	first := s.submit("first", mapStage(1))
	after := func(spec *jobmsg.JobSpec) { spec.AfterStart, spec.StartDelay = []messages.JobID{first}, 100_000 } // 100,000 nanoseconds are 100 units of messages.Time, which counts microseconds
	before, err := s.wait("before", mapStage(1), after)
	if err != nil {
		t.Fatal(err)
	}
	s.claim("n1", 1, 1, 1, first)
	started := s.Job(first).Started
	late, err := s.wait("late", mapStage(1), after)
	if err != nil || s.NextBegin() != started+100 {
		t.Fatal(err, s.NextBegin(), started)
	}
	copyInto(t, s.Book, s.Book)
	for _, id := range []messages.JobID{before, late} {
		if j := s.Job(id); j.Blocked != 1 || j.Spec.Begin != started+100 {
			t.Errorf("job %d waits for %d, until %v", id, j.Blocked, j.Spec.Begin)
		}
	}
	s.at = started + 99
	s.apply(Command{Begin: &Begin{}})
	if s.Job(before).Blocked+s.Job(late).Blocked != 0 || s.NextBegin() != 0 {
		t.Errorf("at their time the jobs wait for %d and %d", s.Job(before).Blocked, s.Job(late).Blocked)
	}
}
