package auctioneer

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func (f *fixture) job(account messages.Name, id messages.JobID) job.JobDetail {
	f.t.Helper()
	return must[job.JobDetail](f, account, messages.VerbJob, job.JobRequest{Job: id})
}

// A job on hold has no share in the market, and its status says who put it on hold. After the release it takes part
// again.
func TestHoldAndRelease(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.register("n1", 2)
	one := job.JobRequest{Job: id}
	if r := must[job.HoldReply](f, "alice", job.VerbHold, one); !r.Hold || !r.Changed || r.State != job.Waiting {
		t.Errorf("hold: %+v", r)
	}
	await.Until(t, "the market is without the job", func() bool {
		return must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == 0
	})
	if j := f.job("alice", id); j.Reason != "OnHold" || j.Stages[0].Pending != 0 {
		t.Errorf("on hold the job is %s with %d tasks to claim", j.Reason, j.Stages[0].Pending)
	}
	if w := must[market.WhyReply](f, "alice", messages.VerbWhy, one); w.Reason != "OnHold" || len(w.Change) == 0 {
		t.Errorf("why: %+v", w)
	}
	if g := f.claim("n1", 1, id, 2).Grants; len(g) != 0 {
		t.Errorf("a job on hold was granted %v", g)
	}
	if r := must[job.HoldReply](f, "operator", job.VerbHold, one); !r.Changed {
		t.Errorf("the operator's hold: %+v", r)
	}
	_, err := call[job.HoldReply](f, "alice", job.VerbRelease, one)
	wantKind(t, err, messages.PermissionDenied)
	if r := must[job.HoldReply](f, "operator", job.VerbRelease, one); r.Hold || !r.Changed {
		t.Errorf("release: %+v", r)
	}
	seq := uint64(1)
	await.Until(t, "tasks are granted", func() bool { seq++; return len(f.claim("n1", seq, id, 2).Grants) > 0 })
}

// One of three tasks fails in all its attempts. The job must report this failure, and the other two tasks must still
// run.
func TestArrayGoesOn(t *testing.T) {
	f := start(t)
	spec := oneStage(3)
	spec.Stages[0].Attempts = 1
	id := f.submit("alice", "k1", spec).Job
	if on := f.job("alice", id).Spec.Stages[0].OnFailure; on != job.GoOn {
		t.Errorf("an array is to %q on failure", on)
	}
	f.register("n1", 3)
	g := f.claim("n1", 1, id, 3).Grants
	f.finish("n1", 2, 4, g[0])
	if j := f.job("alice", id); j.State != job.Running || j.Failed != 1 {
		t.Errorf("after a failure the job is %v with %d failed", j.State, j.Failed)
	}
	f.finish("n1", 3, 0, g[1:]...)
	await.Until(t, "the job ends", func() bool { return f.job("alice", id).State == job.Failed })
	w := must[market.WhyReply](f, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if j := f.job("alice", id); j.Done != 2 || j.ExitCode != 4 || w.Reason != "TaskFailed" || !strings.Contains(w.Message, "1 of 3 tasks failed, 2 finished") {
		t.Errorf("the job: %+v; why: %+v", j.JobSummary, w)
	}
}

func TestRequeuedTaskRunsAgain(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	f.register("n1", 2)
	g := f.claim("n1", 1, id, 2).Grants
	r := must[job.RequeueReply](f, "alice", job.VerbRequeue, job.RequeueRequest{Job: id, Task: new(g[1].Attempt.Task.Index)})
	if r.Tasks != 1 {
		t.Errorf("%d tasks were requeued", r.Tasks)
	}
	_, err := call[job.RequeueReply](f, "alice", job.VerbRequeue, job.RequeueRequest{Job: id, Stage: new(7)})
	wantKind(t, err, messages.NotFound)
	await.Until(t, "the stage counts it", func() bool { return f.job("alice", id).Stages[0].Requeued == 1 })
}

// The owner raises the budget of a job. The bank must free the job's hold and make a larger hold. Then the job must
// have the new budget, and the job's charge must be paid from the new hold.
func TestBudgetIsRaised(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(2)).Job
	before := f.job("alice", id).Budget
	raise := job.ChangeRequest{Key: "c1", Job: id, Budget: before + 5*messages.Credit, Name: "other"}
	for range 2 { // the second request changes nothing
		if r := must[job.ChangeReply](f, "alice", job.VerbChange, raise); r.Budget != before+5*messages.Credit || r.Pending != 0 {
			t.Fatalf("change: %+v", r)
		}
	}
	if j := f.job("alice", id); j.Name != "other" || j.Budget != before+5*messages.Credit {
		t.Errorf("the job is %+v", j.JobSummary)
	}
	f.bank.mu.Lock()
	if freed, is := f.bank.resolved["job/west/alice/k1"]; !is || freed != 0 || len(f.bank.holds) != 2 {
		t.Errorf("the first hold: freed %v, %v; holds %v", freed, is, f.bank.holds)
	}
	f.bank.mu.Unlock()
	for name, r := range map[string]job.ChangeRequest{
		"lower":       {Key: "c2", Job: id, Budget: before},
		"no rate":     {Key: "c2", Job: id, Rate: 1},
		"nothing":     {Key: "c2", Job: id},
		"no key":      {Job: id, Name: "x"},
		"a long name": {Key: "c2", Job: id, Name: "a\nb"},
	} {
		_, err := call[job.ChangeReply](f, "alice", job.VerbChange, r)
		if kind := messages.KindOf(err); kind != messages.Invalid && kind != messages.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := call[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: "c3", Job: id, Budget: 5000 * messages.Credit})
	wantKind(t, err, messages.Insufficient)
	must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: id})
	await.Until(t, "the larger hold is freed", func() bool { return f.job("alice", id).State == job.Cancelled })
}

func TestStageIsChanged(t *testing.T) {
	f := start(t)
	first, id := f.submit("alice", "k0", oneStage(1)).Job, f.submit("alice", "k1", oneStage(3)).Job
	must[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: "c", Job: id, TimeLimit: 60 * second, MaxRunning: new(1)})
	if s := f.job("alice", id).Spec.Stages[0]; s.TimeLimit != 60*second || s.MaxRunning != 1 {
		t.Errorf("the stage is %+v", s)
	}
	f.register("n1", 3)
	f.claim("n1", 1, id, 3) // the other slots are for the first job
	if j := f.job("alice", id); j.Running != 1 {
		t.Errorf("%d tasks run, where 1 may run at once", j.Running)
	}
	_, err := call[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: "d", Job: id, TimeLimit: second})
	wantKind(t, err, messages.Conflict)
	_, err = call[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: "e", Job: id, Waits: &job.Conditions{AfterOK: []messages.JobID{first}}})
	wantKind(t, err, messages.Conflict)
}

// The rate of a waiting job rises above the rate of another waiting job. Then the job with the raised rate must be the
// next to get a slot.
func TestRateIsRaised(t *testing.T) {
	f := startWith(t, func(c *Config) {
		c.Markets = []market.Market{{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"map"}}}
	})
	bids := func(rate messages.Credits) job.JobSpec {
		spec := oneStage(1)
		spec.Rate = rate
		return spec
	}
	low, high := f.submit("alice", "k", bids(1*messages.Credit)).Job, f.submit("bob", "k", bids(2*messages.Credit)).Job
	next := func() (id messages.JobID) {
		if n := must[market.MarketsReply](f, "operator", messages.VerbMarkets, messages.Empty{}).Markets[0].Next; len(n) > 0 {
			id = n[0].Job
		}
		return id
	}
	await.Until(t, "the higher bid is next", func() bool { return next() == high })
	raise := job.ChangeRequest{Key: "a", Job: low, Rate: 3 * messages.Credit, Budget: 20 * messages.Credit}
	must[job.ChangeReply](f, "alice", job.VerbChange, raise)
	await.Until(t, "the raised bid is next", func() bool { return next() == low })
	_, err := call[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: "b", Job: low, Rate: 1})
	wantKind(t, err, messages.Invalid)
}

// The job with the highest bid first waits for the other job, and then for nothing. The market must follow each change.
func TestWhatAJobWaitsForIsChanged(t *testing.T) {
	f := startWith(t, func(c *Config) {
		c.Markets = []market.Market{{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"map"}}}
	})
	submit := func(rate messages.Credits) messages.JobID {
		spec := oneStage(1)
		spec.Rate = rate
		return f.submit("alice", rate.String(), spec).Job
	}
	low, high := submit(1*messages.Credit), submit(2*messages.Credit)
	next := func(want messages.JobID) {
		t.Helper()
		await.Until(t, "the right job is next", func() bool {
			n := must[market.MarketsReply](f, "operator", messages.VerbMarkets, messages.Empty{}).Markets[0].Next
			return len(n) > 0 && n[0].Job == want
		})
	}
	change := func(id messages.JobID, w job.Conditions) error {
		_, err := call[job.ChangeReply](f, "alice", job.VerbChange, job.ChangeRequest{Key: rand.Text(), Job: id, Waits: &w, Comment: new("changed")})
		return err
	}
	next(high)
	if err := change(high, job.Conditions{AfterOK: []messages.JobID{low}}); err != nil {
		t.Fatal(err)
	}
	next(low)
	if j := f.job("alice", high); j.Reason != "WaitingForJobs" || j.Spec.Comment != "changed" {
		t.Errorf("the job is %+v", j)
	}
	if err := change(high, job.Conditions{}); err != nil {
		t.Fatal(err)
	}
	next(high)
	other := f.submit("bob", "k", func() job.JobSpec { s := oneStage(1); s.Rate = 1e3; return s }()).Job
	third := submit(3 * messages.Credit)
	for _, one := range []struct {
		job  messages.JobID
		w    job.Conditions
		want messages.Kind
	}{
		{low, job.Conditions{AfterOK: []messages.JobID{high}}, messages.Invalid}, // jobs could wait for each other in a circle
		{low, job.Conditions{AfterJobs: []messages.JobID{low}}, messages.Invalid},
		{third, job.Conditions{AfterStart: []messages.JobID{other}}, messages.NotFound}, // the job belongs to another account
		{high, job.Conditions{AfterOK: []messages.JobID{low, low}}, messages.Invalid},
		{high, job.Conditions{StartDelay: 60 * second}, messages.Invalid},
	} {
		wantKind(t, change(one.job, one.w), one.want)
	}
	must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: low})
	wantKind(t, change(high, job.Conditions{AfterOK: []messages.JobID{low}}), messages.Ended) // job `low` was cancelled, so it can never complete
}

func TestTasksAreCancelled(t *testing.T) {
	f := start(t)
	id := f.submit("alice", "k1", oneStage(3)).Job
	f.register("n1", 3)
	one := job.CancelRequest{Job: id, Tasks: job.Array{{First: 2, Last: 2, Step: 1}}}
	_, err := call[job.CancelReply](f, "bob", messages.VerbCancel, one)
	wantKind(t, err, messages.NotFound)
	if r := must[job.CancelReply](f, "alice", messages.VerbCancel, one); r.Tasks != 1 {
		t.Fatalf("cancelled %+v", r)
	}
	_, err = call[job.CancelReply](f, "alice", messages.VerbCancel, one)
	wantKind(t, err, messages.Ended)
	one.Tasks[0].Last = 1 << 40
	_, err = call[job.CancelReply](f, "alice", messages.VerbCancel, one)
	wantKind(t, err, messages.TooLarge)
	f.finish("n1", 2, 0, f.claim("n1", 1, id, 3).Grants...)
	await.Until(t, "the job ends", func() bool { return f.job("alice", id).State == job.Cancelled })
	tasks := must[job.TasksReply](f, "alice", messages.VerbTasks, job.TasksRequest{Job: id, States: []string{"Cancelled"}}).Tasks
	w := must[market.WhyReply](f, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if len(tasks) != 1 || tasks[0].Index != 2 || tasks[0].Reason != "TaskCancelled" || tasks[0].Node != "" || !strings.Contains(w.Message, "2 of 3 tasks finished, 1 cancelled") {
		t.Errorf("tasks: %+v; why: %+v", tasks, w)
	}
}
