package client

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// ledgerSite returns a site with the statement of project climate, two entries on each page. alice and bob each had a
// job there.
func ledgerSite(t *testing.T) *fakeSite {
	s := newSite(t)
	answer(s, messages.Auctioneer, messages.VerbJobs, func(job.JobsRequest) (job.JobsReply, error) { r := someJobs(); r.More = false; return r, nil })
	answer(s, messages.Auctioneer, messages.VerbMarkets, func(messages.Empty) (market.MarketsReply, error) { return someMarkets(), nil })
	entries := []money.Entry{
		{Number: 1, At: at(0), Transfer: "$grant/ops/1", By: "ops", Other: money.IssuerAccount, Change: 100 * credit, Balance: 100 * credit},
		{Number: 2, At: at(1), Kind: money.Hold, Transfer: "h", Member: "alice", Hold: 5 * credit, Balance: 100 * credit, Reserved: 5 * credit},
		{Number: 4, At: at(2), Kind: money.Hold, Transfer: "i", Member: "bob", Hold: credit, Balance: 100 * credit, Reserved: 6 * credit},
		{Number: 5, At: at(3), Kind: money.Post, Transfer: "h/charge", Pending: "h", Member: "alice", Job: 103, Hold: -5 * credit, Change: -2 * credit, Balance: 98 * credit, Reserved: credit, Reason: "said, \"so\""},
	}
	answer(s, messages.Bank, messages.VerbStatement, func(r money.StatementRequest) (money.StatementReply, error) {
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

// TestHoldsAreGivenTheirJobs checks that the entry of a hold shows the job's number. The bank learns the number
// later, so the number is in an entry on a later page.
func TestHoldsAreGivenTheirJobs(t *testing.T) {
	s := ledgerSite(t)
	got := s.run("statement", "climate", "--csv")
	rows, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%v: %+v", err, got)
	}
	job, reason := slices.Index(rows[0], "job"), slices.Index(rows[0], "reason")
	if rows[2][job] != "103" || rows[4][job] != "103" || rows[3][job] != "" {
		t.Errorf("%q", rows)
	}
	if want := `2 of 5 charged, 3 came back: a name that is far too long for a table on main (proportional): said, "so"`; rows[4][reason] != want {
		t.Errorf("%q, want %q", rows[4][reason], want)
	}
}

// TestCostByLabel checks the costs of jobs by label. The labels of a job are in the reason of the entry that charges
// the job.
func TestCostByLabel(t *testing.T) {
	s := newSite(t)
	charge := func(job messages.JobID, cost messages.Credits, reason string) money.Entry {
		return money.Entry{Number: uint64(job), Kind: money.Post, Job: job, Change: -cost, Hold: -5 * credit, Reason: reason}
	}
	answer(s, messages.Bank, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		return money.StatementReply{Account: "alice", Entries: []money.Entry{
			{Number: 1, Kind: money.Hold, Job: 2, Hold: credit, Reason: "budget of x; labels run=7"},
			charge(2, 2*credit, "completed: its budget; labels run=7,team=sky"), charge(3, credit, "failed; labels run=8"), charge(4, credit, "x; labels run=7"),
			charge(5, 3*credit, "completed"), {Number: 6, Change: -credit, Reason: "a gift; labels run=7"},
		}}, nil
	})
	s.run("statement", "--by-label", "run").expect(t, 0, "Account alice  cost of jobs by label run\n  RUN  JOBS  COST\n  7       2     3\n  8       1     1\nJobs without label run cost 3 credits\n", "")
	s.run("statement", "--by-label", "run", "--json").expect(t, 0, `{"account":"alice","label":"run","values":[{"value":"7","jobs":2,"cost":3},{"value":"8","jobs":1,"cost":1}],"without":3,"more":false}`, "")
	s.run("statement", "--label", "run=7,team").expect(t, 0, "Together 2 credits", "")
	s.run("statement", "--label", "run=9").expect(t, 0, "No movements.", "")
	s.run("statement", "--label", "-").expect(t, cli.CodeUsage, "", `--label: "-" is not the name of a label`)
	s.run("statement", "--by-label", "x", "--csv").expect(t, cli.CodeUsage, "", "--by-label: cannot go with --csv")
}

func TestStatementOfOnesOwnPart(t *testing.T) {
	s := ledgerSite(t)
	got := s.run("statement", "--project", "climate")
	got.expect(t, cli.CodeOK, "set aside for alice", "")
	got.expect(t, cli.CodeOK, "Together 2 credits charged, 0 more held than before", "")
	if strings.Contains(got.out, "bob") || strings.Contains(got.out, "granted") {
		t.Errorf("it shows what was not on alice's word: %s", got.out)
	}
	s.run("statement", "lab", "--project", "climate").expect(t, cli.CodeUsage, "", `leave out "lab"`)
	s.run("statement", "--csv", "--json").expect(t, cli.CodeUsage, "", "choose one")
}

// TestStatementWithoutTheAuctioneer checks that a statement without the auctioneer's answer shows what the bank
// knows.
func TestStatementWithoutTheAuctioneer(t *testing.T) {
	s := newSite(t)
	refuse[job.JobsRequest](s, messages.Auctioneer, messages.VerbJobs, messages.Errorf(messages.Internal, "away"))
	refuse[messages.Empty](s, messages.Auctioneer, messages.VerbMarkets, messages.Errorf(messages.Internal, "away"))
	answer(s, messages.Bank, messages.VerbStatement, func(money.StatementRequest) (money.StatementReply, error) {
		r := someStatement()
		r.More = false
		return r, nil
	})
	s.run("statement").expect(t, cli.CodeOK, "8 of 12.5 charged, 4.5 came back: job 103 failed", "")
}
