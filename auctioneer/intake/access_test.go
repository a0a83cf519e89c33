package intake_test

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Accounts and projects of any site may submit to the markets that take them. A job that names no market must go to a
// market that takes it.
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
		market                  messages.Name // the market that takes the job; "" if the job is refused
		refusal                 string
	}{
		{"alice", "", "", "cpu", ""},
		{"alice", "", "gpu", "", "market: market gpu takes no jobs of alice; markets that take jobs of alice: cpu"},
		{"alice", "physics", "gpu", "gpu", ""},
		{"alice", "physics", "", "gpu", ""},
		{"alice", "chemistry", "", "own", ""},
		{"alice", "chemistry", "gpu", "", "market: market gpu takes no jobs of alice for project chemistry; markets that take jobs of alice for project chemistry: cpu, own"},
		{"bob", "", "", "gpu", ""},
		{"bob", "", "own", "", "market: market own takes no jobs of bob; markets that take jobs of bob: gpu, cpu"},
		{"mallory", "physics", "gpu", "", "market: market gpu takes no jobs of mallory for project physics; ask an operator for a market that takes such jobs"},
		{"mallory", "", "", "", "market: market gpu takes no jobs of mallory; ask an operator for a market that takes such jobs"},
		{"carol@west", "", "gpu", "gpu", ""},
		{"dave@west", "", "gpu", "", "market: market gpu takes no jobs of dave@west; markets that take jobs of dave@west: cpu, own"},
		{"dave@west", "", "own", "own", ""},
		{"dave@east", "", "", "", "market: market gpu takes no jobs of dave@east; ask an operator for a market that takes such jobs"},
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

// The configuration lists two markets. A job names a class that only the second market has. The job must go to this
// market, if the market takes it. If the market refuses the job, the error must name the market.
func TestAClassLeadsToTheMarketThatHasIt(t *testing.T) {
	r := &intake.Rules{Site: "here", Markets: &desk.Markets{Configs: []market.Market{
		{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}},
		{Name: "gpu", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}, Allow: []messages.Name{"physics"}},
	}}}
	for _, c := range []struct {
		project, asked messages.Name
		kind           messages.Kind // 0: the market gpu takes the job
		refusal        string
	}{
		{"physics", "", 0, ""},
		{"physics", "main", messages.NotFound, `stages[0].class: market main has no class "gpu"; its classes are cpu; market gpu has what the job needs`},
		{"", "", messages.PermissionDenied, `stages[0].class: market main has no class "gpu"; its classes are cpu; market gpu has what the job needs, but takes no jobs of alice`},
		{"chemistry", "main", messages.PermissionDenied, `stages[0].class: market main has no class "gpu"; its classes are cpu; market gpu has what the job needs, but takes no jobs of alice for project chemistry`},
	} {
		q := request("k")
		q.Spec.Market, q.Spec.Project, q.Spec.Stages[0].Class = c.asked, c.project, "gpu"
		s, err := r.Prepare("alice", q)
		switch {
		case c.kind != 0 && (messages.KindOf(err) != c.kind || messages.Detail(err) != c.refusal):
			t.Errorf("for %q at %q: %v, want %s", c.project, c.asked, err, c.refusal)
		case c.kind == 0 && (err != nil || s.Spec.Market != "gpu"):
			t.Errorf("for %q at %q: market %q, %v", c.project, c.asked, s.Spec.Market, err)
		}
	}
}

// A job asks for a GPU without naming a class. The error must name the market that has GPUs, even if this market does
// not take the job.
func TestAShapeLeadsToTheMarketThatHasIt(t *testing.T) {
	unit := func(class messages.Name, r job.Resources) []job.ClassUnit {
		return []job.ClassUnit{{Class: class, Unit: r}}
	}
	r := &intake.Rules{Site: "here", Markets: &desk.Markets{Configs: []market.Market{
		{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}, Units: unit("cpu", job.Resources{CPUs: 1})},
		{Name: "plain", Mechanism: market.Proportional, Classes: []messages.Name{"slot"}},
		{Name: "gpu", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}, Units: unit("gpu", job.Resources{CPUs: 1, GPUs: 1}), Allow: []messages.Name{"physics"}},
	}}}
	for _, c := range []struct {
		project, asked messages.Name
		kind           messages.Kind
		refusal        string
	}{
		{"", "", messages.PermissionDenied, "stages[0]: asks for 1 gpu, but no number of slots of class cpu has these resources: a slot has 1 cpu; no class of market main has them; market gpu has what the job needs, but takes no jobs of alice"},
		{"", "plain", messages.PermissionDenied, "market gpu has what the job needs, but takes no jobs of alice"},
		{"physics", "main", messages.Invalid, "no class of market main has them; market gpu has what the job needs"},
	} {
		q := request("k")
		q.Spec.Market, q.Spec.Project, q.Spec.Stages[0].GPUs = c.asked, c.project, 1
		if _, err := r.Prepare("alice", q); messages.KindOf(err) != c.kind || !strings.HasSuffix(messages.Detail(err), c.refusal) {
			t.Errorf("for %q at %q: %v, want %s", c.project, c.asked, err, c.refusal)
		}
	}
}
