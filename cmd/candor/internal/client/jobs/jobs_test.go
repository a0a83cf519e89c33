package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func newSite(t *testing.T) *clienttest.Site { return clienttest.New(t, jobs.Commands) }

func someTasks() jobmsg.TasksReply {
	status := func(index uint32, attempt uint32, state string, e jobmsg.Ending) jobmsg.TaskStatus {
		return jobmsg.TaskStatus{Task: messages.TaskRef{Job: 103, Index: index}, Stage: "count", Index: index, Array: int64(index), Attempt: attempt, State: state, Node: e.Node,
			Reason: e.Reason.String(), Message: e.String(), Claimed: clienttest.At(2), Ended: clienttest.At(5), Ran: messages.Duration(3 * time.Second)}
	}
	done := status(0, 1, "Done", jobmsg.Ending{Node: "n1"})
	done.ExitCode, done.CPU, done.MaxRSS, done.Suspended = new(int), messages.Duration(2*time.Second), 64<<20, messages.Duration(time.Second)
	failed := status(2, 1, "Failed", jobmsg.Ending{Reason: jobmsg.EndExitCode, ExitCode: 137, Node: "n2"})
	failed.ExitCode = new(137)
	return jobmsg.TasksReply{Unstarted: 1, Omitted: 2, Tasks: []jobmsg.TaskStatus{done, status(1, 2, "Running", jobmsg.Ending{Node: "n\x1b[2J"}), failed,
		status(3, 1, "Pending", jobmsg.Ending{Reason: jobmsg.EndNodeLost, Node: "n2"}),
		status(4, 1, "Failed", jobmsg.Ending{Reason: jobmsg.EndCannotStart, Detail: "directory /data does not exist", Node: "n2"})}}
}

func someWhatIf() market.WhatIfReply {
	outcome := func(bid messages.Credits, cpu, gpu float64) *market.BidOutcome {
		return &market.BidOutcome{Bid: bid * messages.Credit, Reason: "WaitingForShare", Message: fmt.Sprintf("its share is %.3g%% of the 16 slots of map", 100*cpu),
			Classes: []market.ClassBidOutcome{{Class: "map", Share: cpu, Slots: 16 * cpu, Price: 37.125}, {Class: "reduce", Share: gpu, Slots: 4 * gpu, Price: 1234.5}}}
	}
	return market.WhatIfReply{Job: 104, Term: market.TermBudget, Now: outcome(10, 1./3, 0.0312), Then: outcome(40, 0.5, 0.0587)}
}

// On 80 columns, long names must not displace more important columns. A task keeps its index, and a long value
// continues on the next line.
func TestLongNamesLeaveRoom(t *testing.T) {
	s := newSite(t)
	tasks := someTasks()
	for i := range tasks.Tasks {
		tasks.Tasks[i].Array += 500
		tasks.Tasks[i].Stage, tasks.Tasks[i].Node = "count-the-words-of-every-part", "node3-with-a-long-name-in-rack17"
	}
	job := clienttest.Job()
	job.Name, job.Message = strings.Repeat("long-", 20), strings.Repeat("the node had no memory left; ", 5)
	job.Spec.AfterJobs, job.Spec.AfterOK = []messages.JobID{7}, []messages.JobID{8, 9}
	job.Spec.Stages[0].TimeLimit = messages.Duration(10 * time.Minute)
	clienttest.Gives[jobmsg.TasksRequest](messages.Auctioneer, messages.VerbTasks, tasks)(s)
	clienttest.Gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	s.Width = 80
	clienttest.Golden(t, "tasks_80.txt", s.Run("tasks", "103").Out)
	clienttest.Golden(t, "job_80.txt", s.Run("job", "103").Out)
}

func TestJobViews(t *testing.T) {
	a := messages.Auctioneer
	tasks := func(s *clienttest.Site) {
		clienttest.Gives[jobmsg.JobRequest](a, messages.VerbJob, clienttest.Job())(s)
		clienttest.Gives[jobmsg.TasksRequest](a, messages.VerbTasks, someTasks())(s)
	}
	noTasks := func(s *clienttest.Site) {
		clienttest.Gives[jobmsg.JobRequest](a, messages.VerbJob, clienttest.Job())(s)
		clienttest.Gives[jobmsg.TasksRequest](a, messages.VerbTasks, jobmsg.TasksReply{})(s)
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"jobs":           {Line: "jobs -n 4", Serve: clienttest.Gives[jobmsg.JobsRequest](a, messages.VerbJobs, clienttest.Jobs())},
		"jobs_none":      {Line: "jobs", Serve: clienttest.Gives[jobmsg.JobsRequest](a, messages.VerbJobs, jobmsg.JobsReply{})},
		"job":            {Line: "job 103", Serve: clienttest.Gives[jobmsg.JobRequest](a, messages.VerbJob, clienttest.Job())},
		"tasks":          {Line: "tasks 103 --stage count --attempts", Serve: tasks},
		"tasks_none":     {Line: "tasks 103 --stage count --state failed", Serve: noTasks},
		"why":            {Line: "why 104", Serve: clienttest.Gives[jobmsg.JobRequest](a, messages.VerbWhy, clienttest.Why())},
		"why_bid":        {Line: "why 104 --bid 40", Serve: clienttest.Gives[market.WhatIfRequest](a, market.VerbWhatIf, someWhatIf())},
		"why_bid_sealed": {Line: "why 104 --bid 40", Serve: clienttest.Gives[market.WhatIfRequest](a, market.VerbWhatIf, market.WhatIfReply{Job: 104, Message: "bids in a deadline market are sealed"})},
	})
}

func TestWhyBidForAnHour(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Auctioneer, market.VerbWhatIf, func(r market.WhatIfRequest) (market.WhatIfReply, error) {
		return market.WhatIfReply{Job: r.Job, Message: "a bid of " + r.Bid.Words()}, nil
	})
	s.Run("why", "104", "--bid", "36/h").Expect(t, cli.CodeOK, "a bid of 0.01 credits", "")
	s.Run("why", "104", "--bid", "much").Expect(t, cli.CodeUsage, "", "as in 36/h")

	r := someWhatIf()
	// bids are rates, and the price of reduce is the price of a slot-second for every job
	r.Term, r.Then.Classes[0].PerSecond = market.TermRate, true
	s = newSite(t)
	clienttest.Gives[market.WhatIfRequest](messages.Auctioneer, market.VerbWhatIf, r)(s)
	for _, words := range []string{"rate were 144000 credits an hour", " 133650/h ", " 1,234 "} {
		s.Run("why", "104", "--bid", "40").Expect(t, cli.CodeOK, words, "")
	}
}

// TestWhyBidAsJSON asks the same question as the test with the golden file why_bid.txt, and checks the answer as JSON.
// The console's tests read this JSON, and must show the same words as why_bid.txt.
func TestWhyBidAsJSON(t *testing.T) {
	s := newSite(t)
	clienttest.Gives[market.WhatIfRequest](messages.Auctioneer, market.VerbWhatIf, someWhatIf())(s)
	clienttest.Golden(t, "why_bid.json", s.Run("why", "104", "--bid", "40", "--json").Out)
}

// Some tasks of a running job are suspended. The commands must not count them as running tasks. The reason of the job
// is only the word Running, so no reason must be shown.
func TestWhatDoesNotRunIsNotShownAsRunning(t *testing.T) {
	s := newSite(t)
	job := clienttest.Job()
	job.State, job.Reason, job.Ended, job.Running, job.Suspended = jobmsg.Running, "Running", 0, 5, 3
	job.Stages[1].Running, job.Stages[1].Suspended = 5, 3
	clienttest.Gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	clienttest.Gives[jobmsg.JobsRequest](messages.Auctioneer, messages.VerbJobs, jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{job.JobSummary}})(s)
	clienttest.Gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbWhy, market.WhyReply{Job: 103, State: jobmsg.Running, Reason: "Running"})(s)
	s.Run("job", "103", "--columns", "stage,running,suspended").Expect(t, 0, "total        2          3", "")
	s.Run("jobs", "-n", "1", "--columns", "running,suspended,reason").Expect(t, 0, "      2          3\n", "")
	s.Run("why", "103").Expect(t, 0, "Job 103 is running\n", "")
}

// awayJob returns a job that runs at site east. Its state was last reported ten seconds ago.
func awayJob() jobmsg.JobDetail {
	away := &jobmsg.Away{Site: "east", Phase: "There", Known: clienttest.At(3590), Trouble: "the link is cut", Chosen: "it was the earliest"}
	return jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 17, Name: "flights", Account: "alice", Payer: "alice", Market: "main",
		State: jobmsg.Running, Budget: 5 * messages.Credit, Tasks: 2, Running: 1, Submitted: clienttest.At(3000), Started: clienttest.At(3100), Away: away},
		Stages: []jobmsg.StageStatus{{Name: "main", Class: "cpu", Tasks: 2, Running: 1}}}
}

// A visiting job runs an earlier job again. Jobs of other sites have other numbers here. So the output must name the
// other site together with the earlier job's number at that site.
func TestRerunOfAVisitor(t *testing.T) {
	s := newSite(t)
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 4, Account: "bob@north", Visit: &jobmsg.Visit{Home: "north", Job: 9}},
		Spec: jobmsg.JobSpec{RerunOf: 3}})
	s.Run("job", "4").Expect(t, cli.CodeOK, "job 3 of site north", "")
}

func TestJobsOfAndAtOtherSites(t *testing.T) {
	s := newSite(t)
	job := awayJob()
	visit := jobmsg.JobSummary{Job: 4, Name: "guest", Account: "bob@north", Payer: "bob@north", Market: "main", Visit: &jobmsg.Visit{Home: "north", Job: 9}}
	clienttest.Reply(s, messages.Auctioneer, messages.VerbJob, job)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbCancel, func(jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		return jobmsg.CancelReply{Job: 17, State: jobmsg.Running, Away: job.Away}, nil
	})
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		return jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{job.JobSummary, visit}}, nil
	})
	list := s.Run("jobs")
	list.Expect(t, cli.CodeOK, "east/main", "")
	if !strings.Contains(list.Out, "bob@north/9  ") {
		t.Errorf("no number at home in\n%s", list.Out)
	}
	one := s.Run("job", "17")
	one.Expect(t, cli.CodeOK, "east, and that site does not answer (the link is cut); last heard of 10s ago", "")
	if !strings.Contains(one.Out, "it was the earliest") {
		t.Errorf("no reason in\n%s", one.Out)
	}
	s.Run("cancel", "17").Expect(t, cli.CodeOK, "will be cancelled when site east answers. The site does not answer now: the link is cut", "")
}

// An operator without jobs must learn that others have jobs. Users who may not see the jobs must not learn this.
func TestOperatorIsToldOfTheJobsOfOthers(t *testing.T) {
	const none = "No jobs. Submit a job with candor submit.\n"
	s := newSite(t)
	var all []jobmsg.JobSummary
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(r jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		switch {
		case !r.All:
			return jobmsg.JobsReply{}, nil
		case s.Callers[len(s.Callers)-1] != "operator":
			return jobmsg.JobsReply{}, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of other accounts")
		}
		return jobmsg.JobsReply{Jobs: all}, nil
	})
	s.Run("jobs", "--account", "operator").Expect(t, cli.CodeOK, none, "")
	all = []jobmsg.JobSummary{{Job: 1, Account: "alice@west", Payer: "alice@west", Market: "main", Visit: &jobmsg.Visit{Home: "west", Job: 17}}}
	s.Run("jobs", "--account", "operator").Expect(t, cli.CodeOK, "No jobs of operator; --all-accounts lists the jobs of all accounts.\n", "")
	s.Run("jobs", "--account", "operator", "--all-accounts").Expect(t, cli.CodeOK, "alice@west/17", "")
	s.Run("jobs", "--account", "operator", "--owner", "bob").Expect(t, cli.CodeOK, none, "")
	s.Run("jobs").Expect(t, cli.CodeOK, none, "")
}

// A narrow terminal gets a table without its least important columns. Columns that the user names are always shown.
func TestTablesAreWhatUsersAskFor(t *testing.T) {
	s := newSite(t)
	clienttest.Gives[jobmsg.JobsRequest](messages.Auctioneer, messages.VerbJobs, clienttest.Jobs())(s)
	for _, c := range []struct {
		line    string
		width   int
		code    int
		out     string
		further string
	}{
		{"jobs -n 4 -o name", 80, 0, "104\n103\n102\n7\n", ""},
		{"jobs -n 4 --columns job,state", 0, 0, "JOB  STATE\n104  Waiting\n103  Running\n102  Failed\n  7  Completed\n", ""},
		{"jobs -n 4 --columns STATE,Job", 80, 0, "STATE      JOB\nWaiting    104\nRunning    103\nFailed     102\nCompleted    7\n", ""},
		{"jobs -n 4 --columns job,speed", 80, 2, "", "there is no column \"speed\": the columns are JOB, NAME,"},
		{"jobs -o yaml", 80, 2, "", "use wide, name or json"},
	} {
		s.Width = c.width
		got := s.Run(strings.Fields(c.line)...)
		if got.Code != c.code || got.Out != c.out || !strings.Contains(got.Err, c.further) {
			t.Errorf("%s: exit code %d, %s\n%s", c.line, got.Code, clienttest.Difference(got.Out, c.out), got.Err)
		}
	}
	s.Width = 80
	narrow := s.Run("jobs", "-n", "4")
	clienttest.Golden(t, "jobs_80.txt", narrow.Out)
	if got := s.Run("jobs", "-n", "4", "-o", "json"); !strings.HasPrefix(got.Out, `{"jobs"`) {
		t.Errorf("-o json: %s", got.Out)
	}
}

// If the list is empty, standard output must be empty too, so that scripts can read it. The note to the user goes to
// standard error.
func TestAnEmptyListOfNamesIsEmpty(t *testing.T) {
	s := newSite(t)
	clienttest.Gives[jobmsg.JobsRequest](messages.Auctioneer, messages.VerbJobs, jobmsg.JobsReply{})(s)
	s.Run("jobs", "-o", "name").Expect(t, 0, "", "No jobs.")
	if got := s.Run("jobs", "-o", "name"); got.Out != "" {
		t.Errorf("standard output: %q", got.Out)
	}
}
