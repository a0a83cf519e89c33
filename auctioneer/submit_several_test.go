package auctioneer

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Each job gets the answer that it would get alone. A repeated request gets the same answers.
func TestSeveralJobsInOneRequest(t *testing.T) {
	f := start(t)
	first := f.submit("alice", "k0", oneStage(1))
	broken, dear := oneStage(1), oneStage(1)
	broken.Stages[0].Command = nil
	dear.Budget = 2000 * messages.Credit
	other := oneStage(3)
	other.Name = "other"
	r := jobmsg.SubmitRequest{Jobs: []jobmsg.NewJob{{Key: "k0", Spec: oneStage(1)}, {Key: "k1", Spec: oneStage(2)}, {Key: "k2", Spec: broken},
		{Key: "k3", Spec: dear}, {Key: "k4", Spec: other}, {Key: "k5", Spec: oneStage(1)}}}
	want := []struct {
		kind  messages.Kind
		tasks int
	}{{tasks: 1}, {tasks: 2}, {kind: messages.Invalid}, {kind: messages.Insufficient}, {tasks: 3}, {tasks: 1}}
	var before []jobmsg.SubmitOutcome
	for range 2 {
		reply := must[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, r)
		numbers, last := map[messages.JobID]bool{}, messages.JobID(0)
		for i, o := range reply.Jobs {
			switch {
			case want[i].tasks == 0 && (o.Error == nil || o.Error.Kind != want[i].kind):
				t.Errorf("job %d: %+v, want kind %v", i, o, want[i].kind)
			case want[i].tasks != 0 && (o.Error != nil || o.Tasks != want[i].tasks || o.Held != 10*messages.Credit || o.Market != "main" || numbers[o.Job]):
				t.Errorf("job %d: %+v, want %d tasks", i, o, want[i].tasks)
			case before != nil && o.Job != before[i].Job:
				t.Errorf("job %d is job %v when it is asked for again, was %v", i, o.Job, before[i].Job)
			}
			if numbers[o.Job] = o.Job != 0; o.Job != 0 && o.Job <= last {
				t.Errorf("job %v comes after job %v", o.Job, last)
			}
			last = max(last, o.Job)
		}
		if len(reply.Jobs) != len(want) || reply.Jobs[0].Job != first.Job {
			t.Fatalf("%+v, want the job that was there, %v, first", reply.Jobs, first.Job)
		}
		before = reply.Jobs
	}
	if n := len(f.bank.holds); n != 4 {
		t.Errorf("the bank holds %d budgets, want 4", n)
	}
	if all := must[jobmsg.JobsReply](f, "alice", messages.VerbJobs, jobmsg.JobsRequest{}); len(all.Jobs) != 4 {
		t.Errorf("alice has %d jobs, want 4", len(all.Jobs))
	}
}

func TestARequestOfSeveralJobsIsChecked(t *testing.T) {
	f := start(t)
	job := jobmsg.NewJob{Key: "k", Spec: oneStage(1)}
	for says, r := range map[string]jobmsg.SubmitRequest{
		"above the limit of 1000": {Jobs: make([]jobmsg.NewJob, jobmsg.MaxSubmitted+1)},
		"cannot go together with": {Key: "k", Jobs: []jobmsg.NewJob{job}},
		"run at this site":        {Site: "east", Jobs: []jobmsg.NewJob{job}},
		"key of an earlier job":   {Jobs: []jobmsg.NewJob{job, job}},
	} {
		_, err := call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, r)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	dry := must[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{DryRun: true, Jobs: []jobmsg.NewJob{{Key: "d", Spec: jobmsg.JobSpec{}}}})
	if len(dry.Jobs) != 1 || dry.Jobs[0].Error == nil {
		t.Errorf("%+v, want the fault of the only job", dry)
	}
}

// Submissions arrive while others wait for the bank. When the bank has answered, the leader must send it a single
// request for all submissions that have arrived meanwhile. Each submission must get the answer that it would get alone,
// even if one of them makes the bank refuse the request.
func TestSubmissionsGoTogether(t *testing.T) {
	const jobs, poisoned, dear = 30, 7, 8
	for _, poison := range []string{"", fmt.Sprint("job/west/alice/k", poisoned)} {
		f := start(t)
		f.bank.poison = poison
		f.bank.meet(make(chan chan struct{}))
		var submitting sync.WaitGroup
		replies, errs := make([]jobmsg.SubmitReply, jobs), make([]error, jobs)
		for i := range jobs {
			spec := oneStage(1 + i)
			if i == dear {
				spec.Budget = 2000 * messages.Credit
			}
			submitting.Go(func() {
				replies[i], errs[i] = call[jobmsg.SubmitReply](f, "alice", messages.VerbSubmit, jobmsg.SubmitRequest{Key: fmt.Sprint("k", i), Spec: spec})
			})
		}
		await.Until(t, "all are under way", func() bool {
			f.gate.mu.Lock()
			defer f.gate.mu.Unlock()
			return len(f.gate.entering["alice"]) == jobs
		})
		over, requests := make(chan struct{}), 0
		go func() {
			submitting.Wait()
			close(over)
		}()
		for going := true; going; {
			select {
			case goOn := <-f.bank.arrived:
				requests++
				close(goOn)
			case <-over:
				going = false
			}
		}
		if poison == "" && requests > jobs/2 {
			t.Errorf("%d requests for %d submissions that were there at once", requests, jobs)
		}
		numbers := map[messages.JobID]bool{}
		for i, err := range errs {
			switch {
			case i == dear:
				wantKind(t, err, messages.Insufficient)
			case i == poisoned && poison != "":
				wantKind(t, err, messages.TooLarge)
			case err != nil || replies[i].Tasks != 1+i || numbers[replies[i].Job]:
				t.Errorf("job %d: %+v, %v", i, replies[i], err)
			}
			numbers[replies[i].Job] = true
		}
	}
}
