package accounts_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// ledgerSite returns a site with the statement of project climate, two entries on each page.
func ledgerSite(t *testing.T) *clienttest.Site {
	s := newSite(t)
	clienttest.Answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { r := clienttest.Jobs(); r.More = false; return r, nil })
	clienttest.Answer(s, messages.Auctioneer, messages.VerbMarkets, func(messages.Empty) (market.MarketsReply, error) { return clienttest.Markets(), nil })
	entries := []money.Entry{
		{Number: 1, At: clienttest.At(0), Transfer: "$grant/ops/1", By: "ops", Other: money.IssuerAccount, Change: 100 * messages.Credit, Balance: 100 * messages.Credit},
		{Number: 2, At: clienttest.At(1), Kind: money.Hold, Transfer: "h", Member: "alice", Hold: 5 * messages.Credit, Balance: 100 * messages.Credit, Reserved: 5 * messages.Credit},
		{Number: 4, At: clienttest.At(2), Kind: money.Hold, Transfer: "i", Member: "bob", Hold: messages.Credit, Balance: 100 * messages.Credit, Reserved: 6 * messages.Credit},
		{Number: 5, At: clienttest.At(3), Kind: money.Post, Transfer: "h/charge", Pending: "h", Member: "alice", Job: 103, Hold: -5 * messages.Credit, Change: -2 * messages.Credit, Balance: 98 * messages.Credit, Reserved: messages.Credit, Reason: "said, \"so\""},
	}
	clienttest.Answer(s, messages.Bank, messages.VerbStatement, func(r money.StatementRequest) (money.StatementReply, error) {
		reply := money.StatementReply{Account: "climate"}
		for _, e := range entries {
			if e.Number > r.After && len(reply.Entries) == 2 {
				reply.More = true
			} else if e.Number > r.After {
				reply.Entries = append(reply.Entries, e)
			}
		}
		return reply, nil
	})
	return s
}

// A hold is made before its job has a number. So the entry of a hold in a statement has no job number, and the command
// must find it elsewhere. In this test, the number is in an entry on a later page of the statement.
func TestHoldsAreGivenTheirJobs(t *testing.T) {
	s := ledgerSite(t)
	got := s.Run("statement", "climate", "--csv")
	rows, err := csv.NewReader(strings.NewReader(got.Out)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%v: %+v", err, got)
	}
	job, reason := slices.Index(rows[0], "job"), slices.Index(rows[0], "reason")
	if rows[2][job] != "103" || rows[4][job] != "103" || rows[3][job] != "" {
		t.Errorf("%q", rows)
	}
	if want := `2 of 5 charged, 3 given back: a name that is far too long for a table on main (proportional): said, "so"`; rows[4][reason] != want {
		t.Errorf("%q, want %q", rows[4][reason], want)
	}
}

// TestCostByLabel checks costs by label. A job's labels are in the reason of the entry that charges the job.
func TestCostByLabel(t *testing.T) {
	s := newSite(t)
	charge := func(job messages.JobID, cost messages.Credits, reason string) money.Entry {
		return money.Entry{Number: uint64(job), Kind: money.Post, Job: job, Change: -cost, Hold: -5 * messages.Credit, Reason: reason}
	}
	clienttest.Answer(s, messages.Bank, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		return money.StatementReply{Account: "alice", Entries: []money.Entry{
			{Number: 1, Kind: money.Hold, Job: 2, Hold: messages.Credit, Reason: "budget of x; labels run=7"},
			charge(2, 2*messages.Credit, "completed: its budget; labels run=7,team=sky"), charge(3, messages.Credit, "failed; labels run=8"), charge(4, messages.Credit, "x; labels run=7"),
			charge(5, 3*messages.Credit, "completed"), {Number: 6, Change: -messages.Credit, Reason: "a gift; labels run=7"},
		}}, nil
	})
	s.Run("statement", "--by-label", "run").Expect(t, 0, "Account alice  cost of jobs by label run\n  RUN  JOBS  COST\n  7       2     3\n  8       1     1\nJobs without label run cost 3 credits\n", "")
	s.Run("statement", "--by-label", "run", "--json").Expect(t, 0, `{"account":"alice","label":"run","values":[{"value":"7","jobs":2,"cost":3},{"value":"8","jobs":1,"cost":1}],"without":3,"more":false}`, "")
	s.Run("statement", "--label", "run=7,team").Expect(t, 0, "Together 2 credits", "")
	s.Run("statement", "--label", "run=9").Expect(t, 0, "No movements.", "")
	s.Run("statement", "--label", "-").Expect(t, cli.CodeUsage, "", `--label: "-" is not the name of a label`)
	s.Run("statement", "--by-label", "x", "--csv").Expect(t, cli.CodeUsage, "", "--by-label: cannot go with --csv")
}

func TestStatementOfOnesOwnPart(t *testing.T) {
	s := ledgerSite(t)
	got := s.Run("statement", "--project", "climate")
	got.Expect(t, cli.CodeOK, "set aside for alice", "")
	got.Expect(t, cli.CodeOK, "Together 2 credits charged, 0 more held than before", "")
	if strings.Contains(got.Out, "bob") || strings.Contains(got.Out, "granted") {
		t.Errorf("it shows what was not on alice's word: %s", got.Out)
	}
	s.Run("statement", "lab", "--project", "climate").Expect(t, cli.CodeUsage, "", `leave out "lab"`)
	s.Run("statement", "--csv", "--json").Expect(t, cli.CodeUsage, "", "choose one")
}

// If the auctioneer does not answer, a statement must still show what the bank knows.
func TestStatementWithoutTheAuctioneer(t *testing.T) {
	s := newSite(t)
	clienttest.Refuse[job.JobsRequest](s, messages.Auctioneer, messages.VerbJobs, messages.Errorf(messages.Internal, "away"))
	clienttest.Refuse[messages.Empty](s, messages.Auctioneer, messages.VerbMarkets, messages.Errorf(messages.Internal, "away"))
	clienttest.Answer(s, messages.Bank, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		r := clienttest.Statement()
		r.More = false
		return r, nil
	})
	s.Run("statement").Expect(t, cli.CodeOK, "8 of 12.5 charged, 4.5 given back: job 103 failed", "")
}
