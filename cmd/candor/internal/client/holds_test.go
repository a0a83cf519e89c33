package client

import (
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// TestHoldsSayWhatTheyAreFor checks that the list of holds says what each hold is for, and what ends it.
func TestHoldsSayWhatTheyAreFor(t *testing.T) {
	held := func(s *fakeSite) {
		r := fullAccount()
		r.Frozen, r.Why = "", ""
		r.Pending = []money.PendingHold{
			{ID: "job/west/alice/k1", Amount: 2 * credit, Expires: at(3600), By: "$auctioneer", Member: "alice", Payee: "$site"},
			{ID: "job/west/alice/k2", Amount: credit, Expires: at(1800), By: "$auctioneer", Member: "alice", Payee: "$site"},
			{ID: "job/west/bob/k3", Amount: 3 * credit, Expires: at(1800), By: "$auctioneer", Member: "bob", Payee: "$site"},
			{ID: "$bank/authorisation/x", Amount: 500_000, Job: 12, By: "$auctioneer", Member: "alice", Payee: "$peer/east"},
			{ID: "$bank/remittance/y", Amount: 500_000, By: "alice", Member: "alice", Payee: "$peer/east"},
		}
		r.Holds = 6
		answer(s, messages.Bank, messages.VerbAccount, func(q money.AccountRequest) (money.AccountReply, error) {
			if !q.Holds {
				t.Error("the holds were not asked for")
			}
			return r, nil
		})
	}
	known := func(s *fakeSite) {
		answer(s, messages.Auctioneer, messages.VerbJobs, func(q job.JobsRequest) (job.JobsReply, error) {
			if q.All {
				return job.JobsReply{}, messages.Errorf(messages.PermissionDenied, "operators only")
			}
			return job.JobsReply{Jobs: []job.JobSummary{{Job: 17, Hold: "job/west/alice/k1"}}}, nil
		})
	}
	checkViews(t, map[string]view{
		"account_holds": {"account climate", func(s *fakeSite) { held(s); known(s) }},
	})
	s := newSite(t)
	held(s)
	known(s)
	s.run("account", "climate", "--json").expect(t, cli.CodeOK, `"job":17`, "")
}
