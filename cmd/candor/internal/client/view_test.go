package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// The replies with which the views are tested.

const credit = messages.Credit

func someShares() []messages.ClassShare {
	return []messages.ClassShare{
		{Class: "map", Now: 0.625, Allocated: 0.5, Received: 0.4375, Over: messages.Duration(95 * time.Second)},
		{Class: "reduce", Now: 0.03, Allocated: 1, Received: 1, Over: messages.Duration(800 * time.Millisecond)},
	}
}

func somePrices() []messages.ClassPrice {
	return []messages.ClassPrice{
		{Class: "map", Price: 37.123456, Slots: 16, Idle: 4, Pending: 12345, Bidders: 3},
		{Class: "reduce", Price: 0, Slots: 0},
	}
}

func someJobs() messages.JobsReply {
	return messages.JobsReply{More: true, Jobs: []messages.JobSummary{
		{Job: 104, Name: "waits\x1b[2J", Account: "alice", Payer: "climate", Market: "main", State: messages.Waiting, Reason: "WaitingForShare", Budget: 25 * credit, Tasks: 16, Submitted: at(3590)},
		{Job: 103, Name: "a name that is far too long for a table", Account: "alice", Payer: "alice", Market: "main", State: messages.Running, Reason: "Running", Budget: 12_500_000, Tasks: 1000, Running: 8, Done: 640, Submitted: at(0), Started: at(0.25)},
		{Job: 102, Name: "fails", Account: "bob", Payer: "bob", Market: "main", State: messages.Failed, Reason: "TaskFailed", ExitCode: 2, Budget: credit, Charged: 250_000, Tasks: 1, Submitted: at(-90000), Started: at(-89000), Ended: at(-85000)},
		{Job: 7, Name: "sort", Account: "bob", Payer: "bob", Market: "main", State: messages.Completed, Reason: "Completed", Budget: credit, Charged: credit, Tasks: 1, Done: 1, Submitted: at(-100), Started: at(-99), Ended: at(-95.5)},
	}}
}

func someJob() messages.JobDetail {
	return messages.JobDetail{
		JobSummary: messages.JobSummary{Job: 103, Name: "flights", Account: "alice", Payer: "climate", Market: "main", State: messages.Failed, Reason: "TaskFailed",
			Message:  "task total.2 ended with exit code 3 on n2; tried 3 times",
			ExitCode: 3, Budget: 12_500_000, Charged: 8 * credit, Tasks: 20, Done: 17, Submitted: at(0), Started: at(2), Ended: at(185)},
		Spec: messages.JobSpec{Dir: "/data", Utility: &messages.Utility{Form: messages.Log, Minimum: 0.5, Weights: messages.Weights{{Class: "map", Weight: 3}, {Class: "reduce", Weight: 2}}},
			Stages: []messages.Stage{{Name: "count"}, {Name: "total", After: []messages.Name{"count"}}}},
		Stages: []messages.StageStatus{
			{Name: "count", Class: "map", Tasks: 16, Done: 16, Retried: 1, Started: at(2), Ended: at(100), SlotTime: messages.Duration(20 * time.Minute)},
			{Name: "total", Class: "reduce", Tasks: 4, Pending: 2, Running: 1, Done: 1, Started: at(100.5), SlotTime: messages.Duration(40 * time.Second)},
		},
		Shares: someShares(),
	}
}

func someTasks() messages.TasksReply {
	status := func(index uint32, attempt uint32, state string, e messages.Ending) messages.TaskStatus {
		return messages.TaskStatus{Task: messages.TaskRef{Job: 103, Index: index}, Stage: "count", Index: index, Array: int64(index), Attempt: attempt, State: state, Node: e.Node,
			Reason: e.Reason.String(), Message: e.String(), Claimed: at(2), Ended: at(5), Ran: messages.Duration(3 * time.Second)}
	}
	done := status(0, 1, "Done", messages.Ending{Node: "n1"})
	done.ExitCode, done.CPU, done.MaxRSS, done.Suspended = new(int), messages.Duration(2*time.Second), 64<<20, messages.Duration(time.Second)
	failed := status(2, 1, "Failed", messages.Ending{Reason: messages.EndExitCode, ExitCode: 137, Node: "n2"})
	failed.ExitCode = new(137)
	return messages.TasksReply{Unstarted: 1, Omitted: 2, Tasks: []messages.TaskStatus{done, status(1, 2, "Running", messages.Ending{Node: "n\x1b[2J"}), failed,
		status(3, 1, "Pending", messages.Ending{Reason: messages.EndNodeLost, Node: "n2"}),
		status(4, 1, "Failed", messages.Ending{Reason: messages.EndCannotStart, Detail: "directory /data does not exist", Node: "n2"})}}
}

func someWhy() messages.WhyReply {
	return messages.WhyReply{Job: 104, State: messages.Waiting, Reason: "WaitingForShare", Message: "other jobs have a larger share of class map, and no slot has fallen to this one yet",
		Shares: someShares(), Prices: somePrices(), Change: []string{"a larger budget raises its share", "slots that become idle"}}
}

func someWhatIf() messages.WhatIfReply {
	outcome := func(bid messages.Credits, cpu, gpu float64) *messages.BidOutcome {
		return &messages.BidOutcome{Bid: bid * credit, Reason: "WaitingForShare", Message: fmt.Sprintf("its share is %.3g%% of the 16 slots of map", 100*cpu),
			Classes: []messages.ClassBidOutcome{{Class: "map", Share: cpu, Slots: 16 * cpu, Price: 37.125}, {Class: "reduce", Share: gpu, Slots: 4 * gpu, Price: 1234.5}}}
	}
	return messages.WhatIfReply{Job: 104, Term: messages.TermBudget, Now: outcome(10, 1./3, 0.0312), Then: outcome(40, 0.5, 0.0587)}
}

func someNodes() messages.NodesReply {
	return messages.NodesReply{Nodes: []messages.NodeStatus{
		{Node: "n1", State: "Up", Slots: []messages.ClassSlots{{Class: "map", Slots: 4}, {Class: "reduce", Slots: 1}}, Used: []messages.ClassSlots{{Class: "map", Slots: 3}}, Since: at(0), Finished: 123456, Suspended: 3, MostSuspended: 20},
		{Node: "n2", State: "Lost", Slots: []messages.ClassSlots{{Class: "map", Slots: 4}}, Since: at(3000)},
	}}
}

// TestNodesShowWhatIsSold checks that the resources and labels of the nodes are listed below the nodes.
func TestNodesShowWhatIsSold(t *testing.T) {
	s, nodes := newSite(t), someNodes()
	nodes.Nodes[0].Resources, nodes.Nodes[0].Labels = &messages.Resources{CPUs: 8, Memory: 16 << 30, GPUs: 2, GPUType: "a100"}, []messages.Name{"infiniband"}
	nodes.Nodes[0].Sold = &messages.Resources{CPUs: 3, Memory: 6 << 30}
	nodes.Licenses = []messages.LicenseStatus{{Name: "matlab", Total: 4, Used: 3}}
	reply(s, messages.Auctioneer, messages.VerbNodes, nodes)
	s.run("nodes").expect(t, cli.CodeOK, "LICENCE  TOTAL  USED\nmatlab       4     3\n", "")
	s.run("nodes").expect(t, cli.CodeOK, "3 of 8 cpus, 6G of 16G of memory, 0 of 2 gpus (a100)", "")
	s.run("nodes").expect(t, cli.CodeOK, "infiniband", "")
}

// TestMarketsSayTheirBounds: of each account, of each project, and of some.
func TestMarketsSayTheirBounds(t *testing.T) {
	s, markets := newSite(t), someMarkets()
	markets.Markets[0].Market.AtOnce = messages.AtOnce{Account: messages.Bound{Slots: 64, GPUs: 1}, Project: messages.Bound{Tasks: 9}, Of: []messages.OwnerBound{{Name: "physics"}}}
	reply(s, messages.Auctioneer, messages.VerbMarkets, markets)
	s.run("markets").expect(t, cli.CodeOK, "each account has at most 64 slots, 1 GPU at once\n  each project has at most 9 tasks at once\n  physics has any number at once\n", "")
}

func someMarkets() messages.MarketsReply {
	return messages.MarketsReply{Markets: []messages.MarketStatus{
		{Market: messages.Market{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map", "reduce"}}, Prices: somePrices(), Waiting: 2, Running: 1,
			Top: []messages.JobShare{
				{Job: 103, Name: "flights", Account: "alice", Budget: 12_500_000, Shares: someShares(), Pending: 352, Running: 8},
				{Job: 104, Name: "sort", Account: "bob", Budget: credit, Pending: 1, Shares: []messages.ClassShare{{Class: "map", Now: 0.375}}},
			}},
		{Market: messages.Market{Name: "night", Mechanism: "fifo", Classes: []messages.Name{"gpu"}}},
	}}
}

func someAccount() messages.AccountReply {
	return messages.AccountReply{Account: "climate", Balance: 92 * credit, Reserved: 12_500_000, Available: 79_500_000, Granted: 100 * credit, Spent: 8 * credit, Members: []messages.Name{"alice", "bob"}}
}

func someStatement() messages.StatementReply {
	return messages.StatementReply{Account: "alice", More: true, Entries: []messages.Entry{
		{Number: 1, At: at(0), Kind: messages.Posted, Other: messages.IssuerAccount, Change: 100 * credit, Balance: 100 * credit, Reason: "grant: spring allocation"},
		{Number: 2, At: at(10), Kind: messages.Hold, Hold: 12_500_000, Balance: 100 * credit, Reserved: 12_500_000, Job: 103, Reason: "budget of job 103"},
		{Number: 9, At: at(200), Kind: messages.Post, Other: messages.SiteAccount, Change: -8 * credit, Hold: -12_500_000, Balance: 92 * credit, Job: 103, Reason: "job 103 failed"},
	}}
}

// view is a command line, and a site that answers it.
type view struct {
	line  string
	serve func(*fakeSite)
}

// gives returns a function that makes a site answer every request of one kind with the same reply.
func gives[Req, Rep any](actor, verb string, r Rep) func(*fakeSite) {
	return func(s *fakeSite) { answer(s, actor, verb, func(Req) (Rep, error) { return r, nil }) }
}

// checkViews compares the output of commands with golden files that have the names of the views.
func checkViews(t *testing.T, views map[string]view) {
	t.Helper()
	for name, v := range views {
		s := newSite(t)
		s.further = prepareSite
		v.serve(s)
		got := s.run(strings.Fields(strings.ReplaceAll(v.line, "$DIR", s.dir))...)
		if got.err != "" {
			t.Errorf("%s: %s", v.line, got.err)
		}
		golden(t, name+".txt", got.out)
		checkFits(t, s, strings.Fields(strings.ReplaceAll(v.line, "$DIR", s.dir)), got)
	}
}

// checkFits checks the output on terminals of 80 and 200 columns: no line may be wider. Nothing may be cut or left
// out if there is room, if there is no terminal, or if the user asks for everything.
func checkFits(t *testing.T, s *fakeSite, line []string, full result) {
	t.Helper()
	for _, s.width = range []int{80, 200} {
		got := s.run(line...).out
		if widest(full.out) <= s.width && got != full.out {
			t.Errorf("%v: a terminal of %d columns has room for all: %s", line, s.width, difference(got, full.out))
		}
		for text := range strings.SplitSeq(got, "\n") {
			if n := terminal.Width(text); n > s.width && strings.Contains(strings.TrimSpace(text), " ") {
				t.Errorf("%v: %d columns on a terminal of %d: %s", line, n, s.width, text)
			}
		}
	}
	if got := s.run(append(line, "-o", "wide")...); got.code == full.code && got.out != full.out {
		t.Errorf("%v -o wide: %s", line, difference(got.out, full.out))
	}
	s.width = 0
}

func widest(text string) (columns int) {
	for line := range strings.SplitSeq(text, "\n") {
		columns = max(columns, terminal.Width(line))
	}
	return columns
}

// TestLongNamesLeaveRoom shows long names on a terminal of 80 columns. They must not displace more important columns,
// and a task keeps its index. A long value of a field continues on the next line.
func TestLongNamesLeaveRoom(t *testing.T) {
	s := newSite(t)
	s.further = prepareSite
	tasks := someTasks()
	for i := range tasks.Tasks {
		tasks.Tasks[i].Array += 500
		tasks.Tasks[i].Stage, tasks.Tasks[i].Node = "count-the-words-of-every-part", "node3-with-a-long-name-in-rack17"
	}
	job := someJob()
	job.Name, job.Message = strings.Repeat("long-", 20), strings.Repeat("the node had no memory left; ", 5)
	job.Spec.AfterJobs, job.Spec.AfterOK = []messages.JobID{7}, []messages.JobID{8, 9}
	job.Spec.Stages[0].TimeLimit = messages.Duration(10 * time.Minute)
	gives[messages.TasksRequest](messages.Auctioneer, messages.VerbTasks, tasks)(s)
	gives[messages.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	s.width = 80
	golden(t, "tasks_80.txt", s.run("tasks", "103").out)
	golden(t, "job_80.txt", s.run("job", "103").out)
}

func TestViews(t *testing.T) {
	a, b := messages.Auctioneer, messages.Bank
	books := messages.BooksReply{Issued: 300 * credit, Balances: 300 * credit, Held: 12_500_000, Holds: 1, Accounts: 5, Transfers: 1234, Balanced: true}
	two := messages.AccountsReply{Accounts: []messages.AccountReply{someAccount(), {Account: "alice"}}}
	top := func(s *fakeSite) {
		gives[messages.Empty](a, messages.VerbMarkets, someMarkets())(s)
		gives[messages.Empty](a, messages.VerbNodes, someNodes())(s)
		gives[messages.AccountRequest](b, messages.VerbAccount, someAccount())(s)
	}
	statement := func(s *fakeSite) {
		gives[messages.StatementRequest](b, messages.VerbStatement, someStatement())(s)
		gives[messages.JobsRequest](a, messages.VerbJobs, messages.JobsReply{Jobs: []messages.JobSummary{someJob().JobSummary}})(s)
		gives[messages.Empty](a, messages.VerbMarkets, someMarkets())(s)
	}
	tasks := func(s *fakeSite) {
		gives[messages.JobRequest](a, messages.VerbJob, someJob())(s)
		gives[messages.TasksRequest](a, messages.VerbTasks, someTasks())(s)
	}
	noTasks := func(s *fakeSite) {
		gives[messages.JobRequest](a, messages.VerbJob, someJob())(s)
		gives[messages.TasksRequest](a, messages.VerbTasks, messages.TasksReply{})(s)
	}
	checkViews(t, map[string]view{
		"jobs":            {"jobs -n 4", gives[messages.JobsRequest](a, messages.VerbJobs, someJobs())},
		"jobs_none":       {"jobs", gives[messages.JobsRequest](a, messages.VerbJobs, messages.JobsReply{})},
		"job":             {"job 103", gives[messages.JobRequest](a, messages.VerbJob, someJob())},
		"tasks":           {"tasks 103 --stage count --attempts", tasks},
		"tasks_none":      {"tasks 103 --stage count --state failed", noTasks},
		"why":             {"why 104", gives[messages.JobRequest](a, messages.VerbWhy, someWhy())},
		"why_bid":         {"why 104 --bid 40", gives[messages.WhatIfRequest](a, messages.VerbWhatIf, someWhatIf())},
		"why_bid_sealed":  {"why 104 --bid 40", gives[messages.WhatIfRequest](a, messages.VerbWhatIf, messages.WhatIfReply{Job: 104, Message: "bids in a deadline market are sealed"})},
		"nodes":           {"nodes", gives[messages.Empty](a, messages.VerbNodes, someNodes())},
		"nodes_none":      {"nodes", gives[messages.Empty](a, messages.VerbNodes, messages.NodesReply{})},
		"markets":         {"markets", gives[messages.Empty](a, messages.VerbMarkets, someMarkets())},
		"top":             {"top", top},
		"account":         {"account", gives[messages.AccountRequest](b, messages.VerbAccount, someAccount())},
		"accounts":        {"account --all", gives[messages.AccountsRequest](b, messages.VerbAccounts, two)},
		"statement":       {"statement --limit 3", statement},
		"statement_empty": {"statement", gives[messages.StatementRequest](b, messages.VerbStatement, messages.StatementReply{Account: "carol", Opening: credit})},
		"books":           {"books", gives[messages.BooksRequest](b, messages.VerbBooks, books)},
		"books_broken":    {"books", gives[messages.BooksRequest](b, messages.VerbBooks, messages.BooksReply{Issued: 300 * credit, Balances: 299 * credit, Message: "1 credit is missing"})},
	})
}

// TestTopAsJSON writes the states of top.txt and why_bid.txt as JSON. The console's tests read them, and must show
// the same words.
func TestTopAsJSON(t *testing.T) {
	s := newSite(t)
	gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, someMarkets())(s)
	gives[messages.Empty](messages.Auctioneer, messages.VerbNodes, someNodes())(s)
	gives[messages.AccountRequest](messages.Bank, messages.VerbAccount, someAccount())(s)
	golden(t, "top.json", s.run("top", "--json").out)
	gives[messages.WhatIfRequest](messages.Auctioneer, messages.VerbWhatIf, someWhatIf())(s)
	golden(t, "why_bid.json", s.run("why", "104", "--bid", "40", "--json").out)
}

// TestWhatDoesNotRunIsNotShownAsRunning checks three cases: suspended tasks, a stage of an ended job, and a state
// that has no further reason.
func TestWhatDoesNotRunIsNotShownAsRunning(t *testing.T) {
	s := newSite(t)
	job := someJob()
	job.State, job.Reason, job.Ended, job.Running, job.Suspended = messages.Running, "Running", 0, 5, 3
	job.Stages[1].Running, job.Stages[1].Suspended = 5, 3
	gives[messages.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	gives[messages.JobsRequest](messages.Auctioneer, messages.VerbJobs, messages.JobsReply{Jobs: []messages.JobSummary{job.JobSummary}})(s)
	gives[messages.JobRequest](messages.Auctioneer, messages.VerbWhy, messages.WhyReply{Job: 103, State: messages.Running, Reason: "Running"})(s)
	s.run("job", "103", "--columns", "stage,running,suspended").expect(t, 0, "total        2          3", "")
	s.run("jobs", "-n", "1", "--columns", "running,suspended,reason").expect(t, 0, "      2          3\n", "")
	s.run("why", "103").expect(t, 0, "Job 103 is running\n", "")
}
