package intake_test

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// TestMarketsTakeTheJobsOfWhomTheyName checks which markets take a job, for accounts and projects of this site and of
// other sites. A job that names no market must go to a market that takes it.
func TestMarketsTakeTheJobsOfWhomTheyName(t *testing.T) {
	of := func(name messages.Name, allow, deny, usual []messages.Name) market.Market {
		return market.Market{Name: name, Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}, Allow: allow, Deny: deny, DefaultFor: usual}
	}
	r := &intake.Rules{Site: "here", Markets: &desk.Markets{Configs: []market.Market{
		of("gpu", []messages.Name{"physics", "bob", "carol@west"}, []messages.Name{"mallory"}, nil),
		of("cpu", nil, []messages.Name{"@east", "mallory"}, nil),
		of("own", []messages.Name{"chemistry", "@west"}, nil, []messages.Name{"chemistry"}),
	}}}
	for _, c := range []struct {
		account, project, asked messages.Name
		market                  messages.Name // that takes the job; "": the job is refused
		refusal                 string
	}{
		{"alice", "", "", "cpu", ""},
		{"alice", "", "gpu", "", "market: market gpu takes no jobs of alice; these markets do: cpu"},
		{"alice", "physics", "gpu", "gpu", ""},
		{"alice", "physics", "", "gpu", ""},
		{"alice", "chemistry", "", "own", ""},
		{"alice", "chemistry", "gpu", "", "market: market gpu takes no jobs of alice for project chemistry; these markets do: cpu, own"},
		{"bob", "", "", "gpu", ""},
		{"bob", "", "own", "", "market: market own takes no jobs of bob; these markets do: gpu, cpu"},
		{"mallory", "physics", "gpu", "", "market: market gpu takes no jobs of mallory for project physics; ask an operator for a market that takes them"},
		{"mallory", "", "", "", "market: market gpu takes no jobs of mallory; ask an operator for a market that takes them"},
		{"carol@west", "", "gpu", "gpu", ""},
		{"dave@west", "", "gpu", "", "market: market gpu takes no jobs of dave@west; these markets do: cpu, own"},
		{"dave@west", "", "own", "own", ""},
		{"dave@east", "", "", "", "market: market gpu takes no jobs of dave@east; ask an operator for a market that takes them"},
	} {
		q := request("k")
		q.Spec.Market, q.Spec.Project = c.asked, c.project
		s, err := r.Prepare(c.account, q)
		switch {
		case c.market == "" && (messages.KindOf(err) != messages.PermissionDenied || messages.Detail(err) != c.refusal):
			t.Errorf("%s of %q asks for %q: %v, want %s", c.account, c.project, c.asked, err, c.refusal)
		case c.market != "" && err != nil:
			t.Errorf("%s of %q asks for %q: %v", c.account, c.project, c.asked, err)
		case c.market != "" && s.Spec.Market != c.market:
			t.Errorf("%s of %q asks for %q and gets %q, not %q", c.account, c.project, c.asked, s.Spec.Market, c.market)
		}
	}
}
