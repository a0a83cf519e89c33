package auctioneer

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// job asks for a job as an account.
func (f *fixture) job(account messages.Name, id messages.JobID) messages.JobDetail {
	f.t.Helper()
	return must[messages.JobDetail](f, account, messages.VerbJob, messages.JobRequest{Job: id})
}

// TestHoldAndRelease puts a job on hold: no share of the market is for it, it says who
// holds it, and its release brings it back.
func TestHoldAndRelease(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.register("n1", 2)
	one := messages.JobRequest{Job: id}
	if r := must[messages.HoldReply](f, "alice", messages.VerbHold, one); !r.Hold || !r.Changed || r.State != messages.Waiting {
		t.Errorf("hold: %+v", r)
	}
	await.Until(t, "the market is without the job", func() bool {
		return must[messages.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == 0
	})
	if j := f.job("alice", id); j.Reason != "OnHold" || j.Stages[0].Pending != 0 {
		t.Errorf("on hold the job is %s with %d tasks to claim", j.Reason, j.Stages[0].Pending)
	}
	if w := must[messages.WhyReply](f, "alice", messages.VerbWhy, one); w.Reason != "OnHold" || len(w.Change) == 0 {
		t.Errorf("why: %+v", w)
	}
	if g := f.claim("n1", 1, id, 2).Grants; len(g) != 0 {
		t.Errorf("a job on hold was granted %v", g)
	}
	if r := must[messages.HoldReply](f, "operator", messages.VerbHold, one); !r.Changed {
		t.Errorf("the operator's hold: %+v", r)
	}
	_, err := call[messages.HoldReply](f, "alice", messages.VerbRelease, one)
	wantKind(t, err, messages.PermissionDenied)
	if r := must[messages.HoldReply](f, "operator", messages.VerbRelease, one); r.Hold || !r.Changed {
		t.Errorf("release: %+v", r)
	}
	seq := uint64(1)
	await.Until(t, "tasks are granted", func() bool { seq++; return len(f.claim("n1", seq, id, 2).Grants) > 0 })
}

// TestArrayGoesOn fails one of three tasks for good: the job says so, and the others run.
func TestArrayGoesOn(t *testing.T) {
	f := start(t)
	spec := oneStage(3)
	spec.Stages[0].Attempts = 1
	id := f.submit("alice", "k1", spec).Job
	if on := f.job("alice", id).Spec.Stages[0].OnFailure; on != messages.GoOn {
		t.Errorf("an array is to %q on failure", on)
	}
	f.register("n1", 3)
	g := f.claim("n1", 1, id, 3).Grants
	f.finish("n1", 2, 4, g[0])
	if j := f.job("alice", id); j.State != messages.Running || j.Failed != 1 {
		t.Errorf("after a failure the job is %v with %d failed", j.State, j.Failed)
	}
	f.finish("n1", 3, 0, g[1:]...)
	await.Until(t, "the job ends", func() bool { return f.job("alice", id).State == messages.Failed })
	w := must[messages.WhyReply](f, "alice", messages.VerbWhy, messages.JobRequest{Job: id})
	if j := f.job("alice", id); j.Done != 2 || j.ExitCode != 4 || w.Reason != "TaskFailed" || !strings.Contains(w.Message, "1 of 3 tasks failed, 2 finished") {
		t.Errorf("the job: %+v; why: %+v", j.JobSummary, w)
	}
}

// TestRequeuedTaskRunsAgain requeues one of two tasks.
func TestRequeuedTaskRunsAgain(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.register("n1", 2)
	g := f.claim("n1", 1, id, 2).Grants
	r := must[messages.RequeueReply](f, "alice", messages.VerbRequeue, messages.RequeueRequest{Job: id, Task: new(g[1].Attempt.Task.Index)})
	if r.Tasks != 1 {
		t.Errorf("%d tasks were requeued", r.Tasks)
	}
	_, err := call[messages.RequeueReply](f, "alice", messages.VerbRequeue, messages.RequeueRequest{Job: id, Stage: new(7)})
	wantKind(t, err, messages.NotFound)
	await.Until(t, "the stage counts it", func() bool { return f.job("alice", id).Stages[0].Requeued == 1 })
}
