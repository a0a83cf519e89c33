package accounts_test

import (
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

func TestHoldsSayWhatTheyAreFor(t *testing.T) {
	held := func(s *clienttest.Site) {
		r := fullAccount()
		r.Frozen, r.Why = "", ""
		r.Pending = []money.PendingHold{
			{ID: "job/west/alice/k1", Amount: 2 * messages.Credit, Expires: clienttest.At(3600), By: "$auctioneer", Member: "alice", Payee: "$site"},
			{ID: "job/west/alice/k2", Amount: messages.Credit, Expires: clienttest.At(1800), By: "$auctioneer", Member: "alice", Payee: "$site"},
			{ID: "job/west/bob/k3", Amount: 3 * messages.Credit, Expires: clienttest.At(1800), By: "$auctioneer", Member: "bob", Payee: "$site"},
			{ID: "$bank/authorisation/x", Amount: 500_000, Job: 12, By: "$auctioneer", Member: "alice", Payee: "$peer/east"},
			{ID: "$bank/remittance/y", Amount: 500_000, By: "alice", Member: "alice", Payee: "$peer/east"},
		}
		r.Holds = 6
		clienttest.Answer(s, messages.Bank, messages.VerbAccount, func(q money.AccountRequest) (money.AccountReply, error) {
			if !q.Holds {
				t.Error("the holds were not asked for")
			}
			return r, nil
		})
	}
	known := func(s *clienttest.Site) {
		clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(q job.JobsRequest) (job.JobsReply, error) {
			if q.All {
				return job.JobsReply{}, messages.Errorf(messages.PermissionDenied, "operators only")
			}
			return job.JobsReply{Jobs: []job.JobSummary{{Job: 17, Hold: "job/west/alice/k1"}}}, nil
		})
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"account_holds": {Line: "account climate", Serve: func(s *clienttest.Site) { held(s); known(s) }},
	})
	s := newSite(t)
	held(s)
	known(s)
	s.Run("account", "climate", "--json").Expect(t, cli.CodeOK, `"job":17`, "")
}
