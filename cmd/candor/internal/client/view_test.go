package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// The replies with which the views are tested.

const credit = messages.Credit

func someShares() []jobmsg.ClassShare {
	return []jobmsg.ClassShare{
		{Class: "map", Now: 0.625, Allocated: 0.5, Received: 0.4375, Over: messages.Duration(95 * time.Second)},
		{Class: "reduce", Now: 0.03, Allocated: 1, Received: 1, Over: messages.Duration(800 * time.Millisecond)},
	}
}

func somePrices() []market.ClassPrice {
	return []market.ClassPrice{
		{Class: "map", Price: 37.123456, Slots: 16, Idle: 4, Pending: 12345, Bidders: 3},
		{Class: "reduce", Price: 0, Slots: 0},
	}
}

func someJobs() jobmsg.JobsReply {
	return jobmsg.JobsReply{More: true, Jobs: []jobmsg.JobSummary{
		{Job: 104, Name: "waits\x1b[2J", Account: "alice", Payer: "climate", Market: "main", State: jobmsg.Waiting, Reason: "WaitingForShare", Budget: 25 * credit, Tasks: 16, Submitted: at(3590)},
		{Job: 103, Name: "a name that is far too long for a table", Account: "alice", Payer: "alice", Market: "main", State: jobmsg.Running, Reason: "Running", Budget: 12_500_000, Tasks: 1000, Running: 8, Done: 640, Submitted: at(0), Started: at(0.25)},
		{Job: 102, Name: "fails", Account: "bob", Payer: "bob", Market: "main", State: jobmsg.Failed, Reason: "TaskFailed", ExitCode: 2, Budget: credit, Charged: 250_000, Tasks: 1, Submitted: at(-90000), Started: at(-89000), Ended: at(-85000)},
		{Job: 7, Name: "sort", Account: "bob", Payer: "bob", Market: "main", State: jobmsg.Completed, Reason: "Completed", Budget: credit, Charged: credit, Tasks: 1, Done: 1, Submitted: at(-100), Started: at(-99), Ended: at(-95.5)},
	}}
}

func someJob() jobmsg.JobDetail {
	return jobmsg.JobDetail{
		JobSummary: jobmsg.JobSummary{Job: 103, Name: "flights", Account: "alice", Payer: "climate", Market: "main", State: jobmsg.Failed, Reason: "TaskFailed",
			Message:  "task total.2 ended with exit code 3 on n2; tried 3 times",
			ExitCode: 3, Budget: 12_500_000, Charged: 8 * credit, Tasks: 20, Done: 17, Submitted: at(0), Started: at(2), Ended: at(185)},
		Spec: jobmsg.JobSpec{Dir: "/data", Utility: &jobmsg.Utility{Form: jobmsg.Log, Minimum: 0.5, Weights: jobmsg.Weights{{Class: "map", Weight: 3}, {Class: "reduce", Weight: 2}}},
			Stages: []jobmsg.Stage{{Name: "count"}, {Name: "total", After: []messages.Name{"count"}}}},
		Stages: []jobmsg.StageStatus{
			{Name: "count", Class: "map", Tasks: 16, Done: 16, Retried: 1, Started: at(2), Ended: at(100), SlotTime: messages.Duration(20 * time.Minute)},
			{Name: "total", Class: "reduce", Tasks: 4, Pending: 2, Running: 1, Done: 1, Started: at(100.5), SlotTime: messages.Duration(40 * time.Second)},
		},
		Shares: someShares(),
	}
}

func someTasks() jobmsg.TasksReply {
	status := func(index uint32, attempt uint32, state string, e jobmsg.Ending) jobmsg.TaskStatus {
		return jobmsg.TaskStatus{Task: messages.TaskRef{Job: 103, Index: index}, Stage: "count", Index: index, Array: int64(index), Attempt: attempt, State: state, Node: e.Node,
			Reason: e.Reason.String(), Message: e.String(), Claimed: at(2), Ended: at(5), Ran: messages.Duration(3 * time.Second)}
	}
	done := status(0, 1, "Done", jobmsg.Ending{Node: "n1"})
	done.ExitCode, done.CPU, done.MaxRSS, done.Suspended = new(int), messages.Duration(2*time.Second), 64<<20, messages.Duration(time.Second)
	failed := status(2, 1, "Failed", jobmsg.Ending{Reason: jobmsg.EndExitCode, ExitCode: 137, Node: "n2"})
	failed.ExitCode = new(137)
	return jobmsg.TasksReply{Unstarted: 1, Omitted: 2, Tasks: []jobmsg.TaskStatus{done, status(1, 2, "Running", jobmsg.Ending{Node: "n\x1b[2J"}), failed,
		status(3, 1, "Pending", jobmsg.Ending{Reason: jobmsg.EndNodeLost, Node: "n2"}),
		status(4, 1, "Failed", jobmsg.Ending{Reason: jobmsg.EndCannotStart, Detail: "directory /data does not exist", Node: "n2"})}}
}

func someWhy() market.WhyReply {
	return market.WhyReply{Job: 104, State: jobmsg.Waiting, Reason: "WaitingForShare", Message: "other jobs have a larger share of class map, and no slot has fallen to this one yet",
		Shares: someShares(), Prices: somePrices(), Change: []string{"a larger budget raises its share", "slots that become idle"}}
}

func someWhatIf() market.WhatIfReply {
	outcome := func(bid messages.Credits, cpu, gpu float64) *market.BidOutcome {
		return &market.BidOutcome{Bid: bid * credit, Reason: "WaitingForShare", Message: fmt.Sprintf("its share is %.3g%% of the 16 slots of map", 100*cpu),
			Classes: []market.ClassBidOutcome{{Class: "map", Share: cpu, Slots: 16 * cpu, Price: 37.125}, {Class: "reduce", Share: gpu, Slots: 4 * gpu, Price: 1234.5}}}
	}
	return market.WhatIfReply{Job: 104, Term: market.TermBudget, Now: outcome(10, 1./3, 0.0312), Then: outcome(40, 0.5, 0.0587)}
}

func someNodes() market.NodesReply {
	return market.NodesReply{Nodes: []market.NodeStatus{
		{Node: "n1", State: "Up", Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 4}, {Class: "reduce", Slots: 1}}, Used: []jobmsg.ClassSlots{{Class: "map", Slots: 3}}, Since: at(0), Finished: 123456, Suspended: 3, MostSuspended: 20},
		{Node: "n2", State: "Lost", Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 4}}, Since: at(3000)},
	}}
}

// TestNodesShowWhatIsSold checks that the resources and labels of the nodes are listed below the nodes.
func TestNodesShowWhatIsSold(t *testing.T) {
	s, nodes := newSite(t), someNodes()
	nodes.Nodes[0].Resources, nodes.Nodes[0].Labels = &jobmsg.Resources{CPUs: 8, Memory: 16 << 30, GPUs: 2, GPUType: "a100"}, []messages.Name{"infiniband"}
	nodes.Nodes[0].Sold = &jobmsg.Resources{CPUs: 3, Memory: 6 << 30}
	nodes.Licenses = []jobmsg.LicenseStatus{{Name: "matlab", Total: 4, Used: 3}}
	reply(s, messages.Auctioneer, messages.VerbNodes, nodes)
	s.run("nodes").expect(t, cli.CodeOK, "LICENCE  TOTAL  USED\nmatlab       4     3\n", "")
	s.run("nodes").expect(t, cli.CodeOK, "3 of 8 cpus, 6G of 16G of memory, 0 of 2 gpus (a100)", "")
	s.run("nodes").expect(t, cli.CodeOK, "infiniband", "")
}

// TestMarketsSayTheirBounds checks that the command markets shows how much each account, each project and a named
// project can have at once.
func TestMarketsSayTheirBounds(t *testing.T) {
	s, markets := newSite(t), someMarkets()
	markets.Markets[0].Market.AtOnce = market.AtOnce{Account: market.Bound{Slots: 64, GPUs: 1}, Project: market.Bound{Tasks: 9}, Of: []market.OwnerBound{{Name: "physics"}}}
	reply(s, messages.Auctioneer, messages.VerbMarkets, markets)
	s.run("markets").expect(t, cli.CodeOK, "each account has at most 64 slots, 1 GPU at once\n  each project has at most 9 tasks at once\n  physics has any number at once\n", "")
}

func someMarkets() market.MarketsReply {
	return market.MarketsReply{Markets: []market.MarketStatus{
		{Market: market.Market{Name: "main", Mechanism: "proportional", Classes: []messages.Name{"map", "reduce"}}, Prices: somePrices(), Waiting: 2, Running: 1,
			Top: []market.JobShare{
				{Job: 103, Name: "flights", Account: "alice", Budget: 12_500_000, Shares: someShares(), Pending: 352, Running: 8},
				{Job: 104, Name: "sort", Account: "bob", Budget: credit, Pending: 1, Shares: []jobmsg.ClassShare{{Class: "map", Now: 0.375}}},
			}},
		{Market: market.Market{Name: "night", Mechanism: "fifo", Classes: []messages.Name{"gpu"}}},
	}}
}

func someAccount() money.AccountReply {
	return money.AccountReply{Account: "climate", Balance: 92 * credit, Reserved: 12_500_000, Available: 79_500_000, Granted: 100 * credit, Spent: 8 * credit, Members: []messages.Name{"alice", "bob"}}
}

func someStatement() money.StatementReply {
	return money.StatementReply{Account: "alice", More: true, Entries: []money.Entry{
		{Number: 1, At: at(0), Kind: money.Posted, Other: money.IssuerAccount, Change: 100 * credit, Balance: 100 * credit, Reason: "grant: spring allocation"},
		{Number: 2, At: at(10), Kind: money.Hold, Hold: 12_500_000, Balance: 100 * credit, Reserved: 12_500_000, Job: 103, Reason: "budget of job 103"},
		{Number: 9, At: at(200), Kind: money.Post, Other: money.SiteAccount, Change: -8 * credit, Hold: -12_500_000, Balance: 92 * credit, Job: 103, Reason: "job 103 failed"},
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
	gives[jobmsg.TasksRequest](messages.Auctioneer, messages.VerbTasks, tasks)(s)
	gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	s.width = 80
	golden(t, "tasks_80.txt", s.run("tasks", "103").out)
	golden(t, "job_80.txt", s.run("job", "103").out)
}

func TestViews(t *testing.T) {
	a, b := messages.Auctioneer, messages.Bank
	books := money.BooksReply{Issued: 300 * credit, Balances: 300 * credit, Held: 12_500_000, Holds: 1, Accounts: 5, Transfers: 1234, Balanced: true}
	two := money.AccountsReply{Accounts: []money.AccountReply{someAccount(), {Account: "alice"}}}
	top := func(s *fakeSite) {
		gives[messages.Empty](a, messages.VerbMarkets, someMarkets())(s)
		gives[messages.Empty](a, messages.VerbNodes, someNodes())(s)
		gives[money.AccountRequest](b, messages.VerbAccount, someAccount())(s)
	}
	statement := func(s *fakeSite) {
		gives[money.StatementRequest](b, messages.VerbStatement, someStatement())(s)
		gives[jobmsg.JobsRequest](a, messages.VerbJobs, jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{someJob().JobSummary}})(s)
		gives[messages.Empty](a, messages.VerbMarkets, someMarkets())(s)
	}
	tasks := func(s *fakeSite) {
		gives[jobmsg.JobRequest](a, messages.VerbJob, someJob())(s)
		gives[jobmsg.TasksRequest](a, messages.VerbTasks, someTasks())(s)
	}
	noTasks := func(s *fakeSite) {
		gives[jobmsg.JobRequest](a, messages.VerbJob, someJob())(s)
		gives[jobmsg.TasksRequest](a, messages.VerbTasks, jobmsg.TasksReply{})(s)
	}
	checkViews(t, map[string]view{
		"jobs":            {"jobs -n 4", gives[jobmsg.JobsRequest](a, messages.VerbJobs, someJobs())},
		"jobs_none":       {"jobs", gives[jobmsg.JobsRequest](a, messages.VerbJobs, jobmsg.JobsReply{})},
		"job":             {"job 103", gives[jobmsg.JobRequest](a, messages.VerbJob, someJob())},
		"tasks":           {"tasks 103 --stage count --attempts", tasks},
		"tasks_none":      {"tasks 103 --stage count --state failed", noTasks},
		"why":             {"why 104", gives[jobmsg.JobRequest](a, messages.VerbWhy, someWhy())},
		"why_bid":         {"why 104 --bid 40", gives[market.WhatIfRequest](a, market.VerbWhatIf, someWhatIf())},
		"why_bid_sealed":  {"why 104 --bid 40", gives[market.WhatIfRequest](a, market.VerbWhatIf, market.WhatIfReply{Job: 104, Message: "bids in a deadline market are sealed"})},
		"nodes":           {"nodes", gives[messages.Empty](a, messages.VerbNodes, someNodes())},
		"nodes_none":      {"nodes", gives[messages.Empty](a, messages.VerbNodes, market.NodesReply{})},
		"markets":         {"markets", gives[messages.Empty](a, messages.VerbMarkets, someMarkets())},
		"top":             {"top", top},
		"account":         {"account", gives[money.AccountRequest](b, messages.VerbAccount, someAccount())},
		"accounts":        {"account --all", gives[money.AccountsRequest](b, messages.VerbAccounts, two)},
		"statement":       {"statement --limit 3", statement},
		"statement_empty": {"statement", gives[money.StatementRequest](b, messages.VerbStatement, money.StatementReply{Account: "carol", Opening: credit})},
		"books":           {"books", gives[money.BooksRequest](b, messages.VerbBooks, books)},
		"books_broken":    {"books", gives[money.BooksRequest](b, messages.VerbBooks, money.BooksReply{Issued: 300 * credit, Balances: 299 * credit, Message: "1 credit is missing"})},
	})
}

// TestTopAsJSON writes the states of top.txt and why_bid.txt as JSON. The console's tests read them, and must show
// the same words.
func TestTopAsJSON(t *testing.T) {
	s := newSite(t)
	gives[messages.Empty](messages.Auctioneer, messages.VerbMarkets, someMarkets())(s)
	gives[messages.Empty](messages.Auctioneer, messages.VerbNodes, someNodes())(s)
	gives[money.AccountRequest](messages.Bank, messages.VerbAccount, someAccount())(s)
	golden(t, "top.json", s.run("top", "--json").out)
	gives[market.WhatIfRequest](messages.Auctioneer, market.VerbWhatIf, someWhatIf())(s)
	golden(t, "why_bid.json", s.run("why", "104", "--bid", "40", "--json").out)
}

// TestWhatDoesNotRunIsNotShownAsRunning checks three cases: suspended tasks, a stage of an ended job, and a state
// that has no further reason.
func TestWhatDoesNotRunIsNotShownAsRunning(t *testing.T) {
	s := newSite(t)
	job := someJob()
	job.State, job.Reason, job.Ended, job.Running, job.Suspended = jobmsg.Running, "Running", 0, 5, 3
	job.Stages[1].Running, job.Stages[1].Suspended = 5, 3
	gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbJob, job)(s)
	gives[jobmsg.JobsRequest](messages.Auctioneer, messages.VerbJobs, jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{job.JobSummary}})(s)
	gives[jobmsg.JobRequest](messages.Auctioneer, messages.VerbWhy, market.WhyReply{Job: 103, State: jobmsg.Running, Reason: "Running"})(s)
	s.run("job", "103", "--columns", "stage,running,suspended").expect(t, 0, "total        2          3", "")
	s.run("jobs", "-n", "1", "--columns", "running,suspended,reason").expect(t, 0, "      2          3\n", "")
	s.run("why", "103").expect(t, 0, "Job 103 is running\n", "")
}
