package clienttest

import (
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// Shares returns sample shares of a job, in the classes map and reduce.
func Shares() []jobmsg.ClassShare {
	return []jobmsg.ClassShare{
		{Class: "map", Now: 0.625, Allocated: 0.5, Received: 0.4375, Over: messages.Duration(95 * time.Second)},
		{Class: "reduce", Now: 0.03, Allocated: 1, Received: 1, Over: messages.Duration(800 * time.Millisecond)},
	}
}

// Prices returns the prices of two classes, one without slots.
func Prices() []market.ClassPrice {
	return []market.ClassPrice{
		{Class: "map", Price: 37.123456, Slots: 16, Idle: 4, Pending: 12345, Bidders: 3},
		{Class: "reduce", Price: 0, Slots: 0},
	}
}

// Jobs returns four jobs in different states.
func Jobs() jobmsg.JobsReply {
	return jobmsg.JobsReply{More: true, Jobs: []jobmsg.JobSummary{
		{Job: 104, Name: "waits\x1b[2J", Account: "alice", Payer: "climate", Market: "main", State: jobmsg.Waiting, Reason: "WaitingForShare", Budget: 25 * messages.Credit, Tasks: 16, Submitted: At(3590)},
		{Job: 103, Name: "a name that is far too long for a table", Account: "alice", Payer: "alice", Market: "main", State: jobmsg.Running, Reason: "Running", Budget: 12_500_000, Tasks: 1000, Running: 8, Done: 640, Submitted: At(0), Started: At(0.25)},
		{Job: 102, Name: "fails", Account: "bob", Payer: "bob", Market: "main", State: jobmsg.Failed, Reason: "TaskFailed", ExitCode: 2, Budget: messages.Credit, Charged: 250_000, Tasks: 1, Submitted: At(-90000), Started: At(-89000), Ended: At(-85000)},
		{Job: 7, Name: "sort", Account: "bob", Payer: "bob", Market: "main", State: jobmsg.Completed, Reason: "Completed", Budget: messages.Credit, Charged: messages.Credit, Tasks: 1, Done: 1, Submitted: At(-100), Started: At(-99), Ended: At(-95.5)},
	}}
}

// Job returns a job that failed in its second stage.
func Job() jobmsg.JobDetail {
	return jobmsg.JobDetail{
		JobSummary: jobmsg.JobSummary{Job: 103, Name: "flights", Account: "alice", Payer: "climate", Market: "main", State: jobmsg.Failed, Reason: "TaskFailed",
			Message:  "task total.2 ended with exit code 3 on n2; tried 3 times",
			ExitCode: 3, Budget: 12_500_000, Charged: 8 * messages.Credit, Tasks: 20, Done: 17, Submitted: At(0), Started: At(2), Ended: At(185)},
		Spec: jobmsg.JobSpec{Dir: "/data", Utility: &jobmsg.Utility{Form: jobmsg.Log, Minimum: 0.5, Weights: jobmsg.Weights{{Class: "map", Weight: 3}, {Class: "reduce", Weight: 2}}},
			Stages: []jobmsg.Stage{{Name: "count"}, {Name: "total", After: []messages.Name{"count"}}}},
		Stages: []jobmsg.StageStatus{
			{Name: "count", Class: "map", Tasks: 16, Done: 16, Retried: 1, Started: At(2), Ended: At(100), SlotTime: messages.Duration(20 * time.Minute)},
			{Name: "total", Class: "reduce", Tasks: 4, Pending: 2, Running: 1, Done: 1, Started: At(100.5), SlotTime: messages.Duration(40 * time.Second)},
		},
		Shares: Shares(),
	}
}

// Why returns the explanation of a job that waits for a share.
func Why() market.WhyReply {
	return market.WhyReply{Job: 104, State: jobmsg.Waiting, Reason: "WaitingForShare", Message: "other jobs have a larger share of class map, and no slot has fallen to this one yet",
		Shares: Shares(), Prices: Prices(), Change: []string{"a larger budget raises its share", "slots that become idle"}}
}

// Nodes returns a node that is up and a node that is lost.
func Nodes() market.NodesReply {
	return market.NodesReply{Nodes: []market.NodeStatus{
		{Node: "n1", State: "Up", Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 4}, {Class: "reduce", Slots: 1}}, Used: []jobmsg.ClassSlots{{Class: "map", Slots: 3}}, Since: At(0), Finished: 123456, Suspended: 3, MostSuspended: 20},
		{Node: "n2", State: "Lost", Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 4}}, Since: At(3000)},
	}}
}

// Markets returns a market with jobs and one without.
func Markets() market.MarketsReply {
	return market.MarketsReply{Markets: []market.MarketStatus{
		{Market: market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map", "reduce"}}, Prices: Prices(), Waiting: 2, Running: 1,
			Top: []market.JobShare{
				{Job: 103, Name: "flights", Account: "alice", Budget: 12_500_000, Shares: Shares(), Pending: 352, Running: 8},
				{Job: 104, Name: "sort", Account: "bob", Budget: messages.Credit, Pending: 1, Shares: []jobmsg.ClassShare{{Class: "map", Now: 0.375}}},
			}},
		{Market: market.Market{Name: "night", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}}},
	}}
}

// Account returns an account that two users share.
func Account() money.AccountReply {
	return money.AccountReply{Account: "climate", Balance: 92 * messages.Credit, Reserved: 12_500_000, Available: 79_500_000, Granted: 100 * messages.Credit, Spent: 8 * messages.Credit, Members: []messages.Name{"alice", "bob"}}
}

// Statement returns the first page of a statement.
func Statement() money.StatementReply {
	return money.StatementReply{Account: "alice", More: true, Entries: []money.Entry{
		{Number: 1, At: At(0), Kind: money.Posted, Other: money.IssuerAccount, Change: 100 * messages.Credit, Balance: 100 * messages.Credit, Reason: "grant: spring allocation"},
		{Number: 2, At: At(10), Kind: money.Hold, Hold: 12_500_000, Balance: 100 * messages.Credit, Reserved: 12_500_000, Job: 103, Reason: "budget of job 103"},
		{Number: 9, At: At(200), Kind: money.Post, Other: money.SiteAccount, Change: -8 * messages.Credit, Hold: -12_500_000, Balance: 92 * messages.Credit, Job: 103, Reason: "job 103 failed"},
	}}
}

// AnswerAll makes a site answer every query with the replies of the view tests. It returns the site.
func AnswerAll(s *Site) *Site {
	a, b := messages.Auctioneer, messages.Bank
	Answer(s, a, messages.VerbJobs, func(jobmsg.JobsRequest) (jobmsg.JobsReply, error) { r := Jobs(); r.More = false; return r, nil })
	Reply(s, a, messages.VerbJob, Job())
	Reply(s, a, messages.VerbWhy, Why())
	Answer(s, a, messages.VerbCancel, func(jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		return jobmsg.CancelReply{Job: 103, State: jobmsg.Running}, nil
	})
	Answer(s, a, messages.VerbNodes, func(messages.Empty) (market.NodesReply, error) { return Nodes(), nil })
	Answer(s, a, messages.VerbMarkets, func(messages.Empty) (market.MarketsReply, error) { return Markets(), nil })
	Answer(s, b, messages.VerbAccount, func(money.AccountRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, messages.VerbAccounts, func(money.AccountsRequest) (money.AccountsReply, error) {
		return money.AccountsReply{Accounts: []money.AccountReply{Account(), {Account: "$site"}}}, nil
	})
	Answer(s, b, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		r := Statement()
		r.More = false
		return r, nil
	})
	Answer(s, b, money.VerbProject, func(money.ProjectRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, money.VerbPay, func(money.PayRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, money.VerbFreeze, func(money.FreezeRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, money.VerbCredit, func(money.CreditRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, money.VerbWithdraw, func(money.WithdrawRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, money.VerbCorrect, func(money.CorrectRequest) (money.CorrectReply, error) {
		return money.CorrectReply{Debit: "$site", Credit: "climate", Amount: messages.Credit}, nil
	})
	Answer(s, b, messages.VerbGrant, func(money.GrantRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, messages.VerbMember, func(money.MemberRequest) (money.AccountReply, error) { return Account(), nil })
	Answer(s, b, messages.VerbBooks, func(money.BooksRequest) (money.BooksReply, error) {
		return money.BooksReply{Balanced: true}, nil
	})
	return s
}

// Submissions makes the site accept jobs. It returns the list of accepted requests.
func Submissions(s *Site) *[]jobmsg.SubmitRequest {
	taken := &[]jobmsg.SubmitRequest{}
	Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		*taken = append(*taken, r)
		return jobmsg.SubmitReply{Job: 17, Market: "main", Payer: "alice", Held: r.Spec.Budget, Tasks: 3}, nil
	})
	return taken
}

// Progressing makes the site report a job that changes its state. Each request gets the next state; the last state is
// repeated.
func Progressing(s *Site, states ...jobmsg.JobSummary) {
	Answer(s, messages.Auctioneer, messages.VerbJob, func(r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		now := states[0]
		if len(states) > 1 {
			states = states[1:]
		}
		now.Job, now.Tasks, now.Payer, now.Budget, now.Submitted = r.Job, 3, "alice", 12_500_000, At(0)
		return jobmsg.JobDetail{JobSummary: now}, nil
	})
}
