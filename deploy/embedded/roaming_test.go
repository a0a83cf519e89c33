package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

func (u user) submitTo(key string, site messages.Name, spec jobmsg.JobSpec) jobmsg.SubmitReply {
	u.Helper()
	return request[jobmsg.SubmitReply](u, messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: key, Spec: spec, Site: site})
}

// output reads the output of a task at another site through the user's own site.
func (u user) output(id messages.JobID, task uint32) string {
	u.Helper()
	tasks := request[jobmsg.TasksReply](u, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: id, From: task, Limit: 1}).Tasks
	if len(tasks) != 1 {
		u.Fatalf("task %d of job %d: %+v", task, id, tasks)
	}
	q := agentmsg.LogsRequest{Attempt: messages.Attempt{Task: tasks[0].Task, Number: tasks[0].Attempt}}
	var text strings.Builder
	for {
		piece := request[agentmsg.LogsReply](u, messages.Auctioneer, clearing.VerbOutput, clearing.OutputRequest{Node: tasks[0].Node, Logs: q})
		text.Write(piece.Data)
		if q.Offset = piece.Next; piece.End {
			return text.String()
		}
	}
}

// TestJobsRunAtLinkedSites lets a user of west run real processes at east. The user must read the output and pay. A
// user of east with the same name must neither see nor change these jobs.
func TestJobsRunAtLinkedSites(t *testing.T) {
	t.Parallel()
	sites := startSites(t, firstLook(t, "west", "east", "north"))
	west, east := connect(t, sites[0], "alice"), connect(t, sites[1], "alice")
	spec := jobmsg.JobSpec{Name: "where", Budget: 20 * messages.Credit, Stages: []jobmsg.Stage{
		{Name: "main", Class: "map", Tasks: 3, Script: "echo task $CANDOR_TASK of $CANDOR_HOME_JOB ran at $CANDOR_SITE"}}}
	offers := request[clearing.OffersReply](west, messages.Auctioneer, clearing.VerbOffers, clearing.OffersRequest{Spec: spec})
	if len(offers.Offers) != 3 || len(offers.Silent) != 0 {
		t.Errorf("offers %+v, silent %+v", offers.Offers, offers.Silent)
	}
	receipt := west.submitTo("k", "east", spec)
	if receipt.Job != 1 || receipt.Site != "east" {
		t.Fatalf("answered %+v", receipt)
	}
	job := west.final(receipt.Job)
	if job.State != jobmsg.Completed || job.Charged != 20*messages.Credit || job.Away == nil || job.Away.Site != "east" {
		t.Errorf("it ended as %+v, %+v", job.JobSummary, job.Away)
	}
	if got := west.output(receipt.Job, 2); got != "task 2 of west/1 ran at east\n" {
		t.Errorf("its last task wrote %q", got)
	}
	if mine := request[jobmsg.JobsReply](east, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}).Jobs; len(mine) != 0 {
		t.Errorf("alice of east has %+v", mine)
	}
	all := request[jobmsg.JobsReply](connect(t, sites[1], "operator"), messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs
	if len(all) != 1 || all[0].Account != "alice@west" || all[0].Visit == nil || all[0].Visit.String() != "west/1" {
		t.Errorf("east ran %+v", all)
	}
	for _, s := range sites[:2] {
		await.Until(t, "the banks settle", connect(t, s, "operator").settled)
		if b := request[money.BooksReply](connect(t, s, "operator"), messages.Bank, messages.VerbBooks, messages.Empty{}); !b.Balanced {
			t.Errorf("the books of %s: %+v", s.config.Site, b)
		}
	}
	if a := west.account(); a.Balance != 980*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice of west has %+v", a)
	}
	if a := east.account(); a.Balance != 1000*messages.Credit {
		t.Errorf("alice of east has %+v", a)
	}
	auto := west.submitTo("auto", clearing.AnySite, spec)
	if auto.Chosen == "" {
		t.Errorf("answered %+v", auto)
	}
	if job := west.final(auto.Job); job.State != jobmsg.Completed {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	long := spec
	long.Stages = []jobmsg.Stage{{Name: "main", Class: "map", Command: []string{"sleep", "600"}}}
	id := west.submitTo("long", "north", long).Job
	west.running(id)
	request[jobmsg.CancelReply](west, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
	if job := west.final(id); job.State != jobmsg.Cancelled || job.Charged != job.Budget {
		t.Errorf("it ended as %+v; its one task ran until its owner ended it, and is complete for prices", job.JobSummary)
	}
}

// TestAJobGoesOnBehindACut cuts the connection to the site that runs a job. The processes must continue, end and be
// charged. The user must see the last known state and, after the cut, the end and the output.
func TestAJobGoesOnBehindACut(t *testing.T) {
	t.Parallel()
	west, east, between := overRoad(t)
	alice, atWest, atEast := connect(t, west, "alice"), connect(t, west, "operator"), connect(t, east, "operator")
	await.Until(t, "the sites are linked", func() bool { return atWest.linked() && atEast.linked() })
	goOn := filepath.Join(t.TempDir(), "go")
	id := alice.submitTo("k", "east", jobmsg.JobSpec{Name: "long", Budget: 20 * messages.Credit, Stages: []jobmsg.Stage{
		{Name: "main", Class: "map", Script: "while [ ! -e " + goOn + " ]; do sleep 0.05; done; echo went on"}}}).Job
	alice.running(id)
	between.cut()
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "it has ended at east", func() bool {
		return request[jobmsg.JobsReply](atEast, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs[0].State == jobmsg.Completed
	})
	if job := alice.job(id); job.State != jobmsg.Running || job.Away.Trouble == "" {
		t.Errorf("behind the cut: %+v, %+v", job.JobSummary, job.Away)
	}
	if w := alice.why(id); w.Reason != "SiteSilent" {
		t.Errorf("behind the cut: %+v", w)
	}
	between.mend()
	if job := alice.final(id); job.State != jobmsg.Completed || job.Charged != 20*messages.Credit {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	if got := alice.output(id, 0); got != "went on\n" {
		t.Errorf("it wrote %q", got)
	}
	await.Until(t, "the banks settle", func() bool { return atWest.settled() && atEast.settled() })
	if a := alice.account(); a.Balance != 980*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice has %+v", a)
	}
}

// TestFilesTravelToASiteAndBack runs jobs with input files at another site. A task that needs its input during a cut
// must wait, and run after the cut. The task's files must come back to the job's owner.
func TestFilesTravelToASiteAndBack(t *testing.T) {
	t.Parallel()
	west, east, between := overRoad(t)
	alice, atWest, atEast := connect(t, west, "alice"), connect(t, west, "operator"), connect(t, east, "operator")
	await.Until(t, "the sites are linked", func() bool { return atWest.linked() && atEast.linked() })
	input := strings.Repeat("a line of the input\n", 60_000) // long enough for several pieces
	f, _ := alice.send("data.txt", []byte(input))
	const script = "wc -l < data.txt > lines.$CANDOR_TASK; tail -n 1 data.txt > last"
	job := alice.final(alice.submitTo("first", "east", withFiles(2, script, []string{"lines.*", "last"}, f)).Job)
	if job.State != jobmsg.Completed {
		t.Fatalf("it ended as %+v", job.JobSummary)
	}
	for task, files := range alice.left(job.Job) {
		lines := fmt.Sprint("lines.", task)
		if len(files) != 2 || strings.TrimSpace(files[lines]) != "60000" || files["last"] != "a line of the input\n" {
			t.Errorf("task %d left %q", task, files)
		}
	}

	goOn := filepath.Join(t.TempDir(), "go")
	g, _ := alice.send("data.txt", []byte(input+"and one more\n"))
	late := withFiles(1, script, []string{"last"}, g)
	late.Stages = append([]jobmsg.Stage{{Name: "before", Class: "map", Script: "while [ ! -e " + goOn + " ]; do sleep 0.05; done"}}, late.Stages...)
	late.Stages[1].After = []messages.Name{"before"}
	id := alice.submitTo("late", "east", late).Job
	alice.running(id)
	between.cut()
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the task waits for its input", func() bool {
		jobs := request[jobmsg.JobsReply](atEast, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs
		there := request[jobmsg.JobDetail](atEast, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: jobs[0].Job})
		return there.Stages[0].Done == 1 && there.Running == 1
	})
	between.mend()
	if job := alice.final(id); job.State != jobmsg.Completed {
		t.Errorf("it ended as %+v", job.JobSummary)
	}
	reply := request[jobmsg.OutputsReply](alice, messages.Depot, jobmsg.VerbOutputs, jobmsg.OutputsRequest{Job: id, Stage: 1})
	if len(reply.Tasks) != 1 || len(reply.Tasks[0].Files) != 1 {
		t.Fatalf("it left %+v", reply)
	}
	if last, err := alice.receiveLeft(reply.Tasks[0].Files[0], reply.Tasks[0].Attempt); last != "and one more\n" || err != nil {
		t.Errorf("its last line is %q, %v", last, err)
	}
}

// A contract of another site must be kept if it is accepted while the sites are cut off from each other.
func TestAContractOutlastsACut(t *testing.T) {
	t.Parallel()
	west, east, between := overRoad(t, func(c *Config) {
		c.Markets = []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"reduce"}}, {Name: "sold", Mechanism: market.ContractMenu, Classes: []messages.Name{"map"}}}
	})
	alice, atWest, atEast := connect(t, west, "alice"), connect(t, west, "operator"), connect(t, east, "operator")
	await.Until(t, "the sites are linked", func() bool { return atWest.linked() && atEast.linked() })
	spec := jobmsg.JobSpec{Name: "sold", Market: "sold", Budget: 50 * messages.Credit, Length: messages.Duration(time.Hour), Stages: []jobmsg.Stage{{Name: "main", Class: "map", Script: "echo sold"}},
		Valuation: &jobmsg.Valuation{Class: jobmsg.Hard, Max: 20, Deadline: 7200}}
	offers := request[clearing.OffersReply](alice, messages.Auctioneer, clearing.VerbOffers, clearing.OffersRequest{Spec: spec, Sites: []messages.Name{"east"}}).Offers
	if len(offers) == 0 || !strings.HasPrefix(offers[0].Contract, "east/") {
		t.Fatalf("the offers are %+v", offers)
	}
	taken := offers[len(offers)-1]
	spec.Contract, spec.Budget = taken.Contract, taken.Budget
	between.cut()
	id := alice.submitTo("sold", "east", spec).Job
	if j := alice.job(id); j.Away == nil || j.Away.Phase != "Sending" || j.State.Final() {
		t.Errorf("behind the cut: %+v, %+v", j.JobSummary, j.Away)
	}
	between.mend()
	if j := alice.final(id); j.State != jobmsg.Completed || j.Charged > taken.Price {
		t.Errorf("of a price of %v it was charged %v: %+v; %s", taken.Price, j.Charged, j.JobSummary, alice.why(id).Message)
	}
	jobs := request[jobmsg.JobsReply](atEast, messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{All: true}).Jobs
	if len(jobs) != 1 {
		t.Fatalf("east ran %+v", jobs)
	}
	if there := request[jobmsg.JobDetail](atEast, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: jobs[0].Job}); "east/"+there.Spec.Contract != taken.Contract {
		t.Errorf("east ran it by contract %q", there.Spec.Contract)
	}
}

// TestVisitorsBidInAQueue lets another site's jobs bid in a batch queue. The charge of each job must include what it
// owes by the decisions of the queue, even if it is discarded or cancelled. The books of both sites must agree.
func TestVisitorsBidInAQueue(t *testing.T) {
	t.Parallel()
	configs := firstLook(t, "west", "east")
	configs[1].Nodes = []Node{{Name: "node1", Slots: []jobmsg.ClassSlots{{Class: "batch", Slots: 1}}}}
	configs[1].Markets = []market.Market{{Name: "batch", Mechanism: market.BatchQueue, Classes: []messages.Name{"batch"},
		PriorJobs: []market.QueuedType{{Value: 90 * messages.Credit, Delay: messages.Credit / 2, Length: 100e9}}}}
	sites := startSites(t, configs)
	alice, bob, dir := connect(t, sites[0], "alice"), connect(t, sites[1], "bob"), t.TempDir()
	queued := func(file string, value, delay messages.Credits) jobmsg.JobSpec {
		return job("batch", 1, untilFile(filepath.Join(dir, file)), func(s *jobmsg.JobSpec) {
			s.Value, s.Delay, s.Length = value*messages.Credit, delay*messages.Credit/10, messages.Duration(100*time.Second)
		})
	}
	first := bob.submit("first", queued("go", 50, 1))
	bob.running(first)
	poor := alice.submitTo("poor", "east", queued("go", 80, 1)).Job
	alice.await("it waits", func() bool { return alice.why(poor).Reason == "WaitingForSlots" })
	dear := alice.submitTo("dear", "east", queued("never", 90, 50)).Job
	alice.await("it waits", func() bool { return alice.why(dear).Reason == "WaitingForTurn" })
	touch(t, filepath.Join(dir, "go"))
	// The job `poor` is in front. The queue believes that a job in front is worth 90, and that the other jobs together
	// lose 50 if it runs. But `poor` is worth less than the job `dear` loses by waiting. So `poor` must not run.
	if j := alice.final(poor); j.State != jobmsg.Discarded || j.Charged != 50*messages.Credit {
		t.Errorf("%+v", j.JobSummary)
	}
	alice.running(dear)
	request[jobmsg.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: dear})
	if j := alice.final(dear); j.State != jobmsg.Cancelled || j.Charged != 90*messages.Credit {
		t.Errorf("%+v", j.JobSummary)
	}
	for _, s := range sites {
		operator := connect(t, s, "operator")
		await.Until(t, "the banks settle", operator.settled)
		if b := request[money.BooksReply](operator, messages.Bank, messages.VerbBooks, messages.Empty{}); !b.Balanced {
			t.Errorf("the books of %s: %+v", s.config.Site, b)
		}
	}
	if a := alice.account(); a.Balance != 860*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice has %+v", a)
	}
	if b := bob.account(); b.Balance != 1000*messages.Credit || b.Reserved != 0 {
		t.Errorf("bob has %+v", b)
	}
}
