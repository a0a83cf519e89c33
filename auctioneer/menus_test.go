package auctioneer

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The function `best` returns the largest surplus of a menu: worth to a bidder, minus price.
func best(t *testing.T, menu market.QuoteReply) float64 {
	t.Helper()
	if len(menu.Contracts) == 0 {
		t.Fatal("an empty menu")
	}
	most := 0.0
	for _, c := range menu.Contracts {
		most = max(most, c.Promised-c.Price.Float())
	}
	return most
}

// A bidder must get the same menu until the time of the menu is over, even if it asks from another account or submits a
// job. Otherwise the bidder could ask for ten random menus and choose the best. With the best of ten menus, the
// bidder's gain would be higher by half of the job's value than with one menu.
func TestAskingAgainYieldsTheSameMenu(t *testing.T) {
	for range 10 { // try several sites: each has another key, and one menu in thirty has only one contract
		if asksAgain(t) {
			return
		}
	}
	t.Fatal("ten sites in a row drew a menu of one contract")
}

// asksAgain asks a new site for the same menu many times. It reports whether the menu has several contracts.
func asksAgain(t *testing.T) bool {
	m := sold(func(m *market.Market) { m.Quote = 100 * second })
	g := newGrid(t, 1, m)
	g.unlearned()
	spec := bids(1, valued)
	ask := func(account messages.Name) market.QuoteReply {
		menu := must[market.QuoteReply](g.fixture, account, market.VerbQuote, market.QuoteRequest{Spec: spec})
		for i := range menu.Contracts {
			menu.Contracts[i].ID = ""
		}
		return menu
	}
	for i, worth := range []float64{3, 9, 15, 30, 60} { // rivals whose promises leave ten seconds to spare, so that alice's job comes before or after them, depending on its type
		rival := bids(1, func(s *job.JobSpec) {
			s.Length, s.Valuation = 50*second, &job.Valuation{Class: job.LinearDecay, Max: worth, Mu: 60 * float64(i+1), Delta: 300}
		})
		menu := must[market.QuoteReply](g.fixture, "carol", market.VerbQuote, market.QuoteRequest{Spec: rival})
		declared := menu.Contracts[slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared })]
		rival.Contract, rival.Budget = declared.ID, declared.Budget
		must[job.SubmitReply](g.fixture, "carol", messages.VerbSubmit, job.SubmitRequest{Key: fmt.Sprint("r", i), Spec: rival})
		await.Until(t, "the market knows the rival", func() bool {
			return must[market.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == i+1
		})
	}
	first := ask("alice")
	if len(first.Contracts) < 2 {
		return false
	}
	for i := range 10 {
		again := ask([]messages.Name{"alice", "bob"}[i%2])
		if gain := best(t, again) - best(t, first); gain != 0 || !reflect.DeepEqual(again.Contracts, first.Contracts) {
			t.Fatalf("ask %d: gains %v:\n%+v\n%+v", i+2, gain, first.Contracts, again.Contracts)
		}
	}
	return true
}

// The seed of a menu may depend on the secret key, the market and the class, but not on the bid.
func TestMenusAreDrawnWithAKey(t *testing.T) {
	k, spec := intake.NewMenuKey(), bids(1, valued)
	a, b := sold(func(*market.Market) {}), sold(func(m *market.Market) { m.Name = "other" })
	seed := k.Seed(&a, &spec, epoch)
	other := spec
	other.Valuation = &job.Valuation{Class: job.LinearDecay, Max: 1, Mu: 2, Delta: 3}
	other.Length, other.Budget = 3*second, 7
	if k.Seed(&a, &other, epoch) != seed {
		t.Error("the draw depends on what is declared")
	}
	other.Valuation = &job.Valuation{Class: job.Hard, Max: 1, Deadline: 3}
	seeds := map[uint64]bool{}
	for i := range 10 {
		seeds[k.Seed(&a, &spec, epoch.Add(messages.Duration(i)*intake.DefaultQuote))] = true
	}
	if len(seeds) != 10 {
		t.Errorf("%d draws in ten times that menus hold", len(seeds))
	}
	for name, got := range map[string]uint64{"class": k.Seed(&a, &other, epoch), "market": k.Seed(&b, &spec, epoch), "key": intake.NewMenuKey().Seed(&a, &spec, epoch)} {
		if got == seed {
			t.Errorf("another %s has the same draw", name)
		}
	}
}
