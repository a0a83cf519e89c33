package auctioneer

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// same reports whether two numbers differ only by rounding.
func same(x, y float64) bool { return math.Abs(x-y) <= 1e-6*max(1, math.Abs(x)) }

// asks asks the auctioneer what would change if a job had another bid.
func (g *grid) asks(who messages.Name, id messages.JobID, bid messages.Credits) marketmsg.WhatIfReply {
	g.t.Helper()
	return must[marketmsg.WhatIfReply](g.fixture, who, marketmsg.VerbWhatIf, marketmsg.WhatIfRequest{Job: id, Bid: bid})
}

// idle waits until the market knows that n slots are idle.
func (g *grid) idle(n int) {
	g.t.Helper()
	await.Until(g.t, "the market knows what runs", func() bool {
		p := must[marketmsg.MarketsReply](g.fixture, "operator", messages.VerbMarkets, messages.Empty{}).Markets[0].Prices[0]
		return p.Idle == n && p.Slots == g.slots
	})
}

// isAsWhySays checks that the answer to a what-if agrees with the answer to the request "why", which explains how the
// job stands. It compares what the job gets at its present bid.
func (g *grid) isAsWhySays(id messages.JobID, x marketmsg.WhatIfReply) {
	g.t.Helper()
	w := must[marketmsg.WhyReply](g.fixture, "operator", messages.VerbWhy, job.JobRequest{Job: id})
	for _, o := range []*marketmsg.BidOutcome{x.Now, x.Then} {
		if o == nil || o.Reason != w.Reason || !strings.HasPrefix(w.Message, o.Message) || len(o.Classes) != 1 ||
			!same(o.Classes[0].Share, w.Shares[0].Now) || !same(o.Classes[0].Price, w.Prices[0].Price) || o.Classes[0].PerSecond != w.Prices[0].PerSecond {
			g.t.Errorf("at the present bid %+v, and why says %+v", o, w)
		}
	}
}

// In a full market, a job waits at its present bid and would start at a higher one. Its owner asks what would happen
// with a higher bid. This question must change nothing.
func TestWhatIfWithAHigherRate(t *testing.T) {
	g := newGrid(t, 2, spot(func(*marketmsg.Market) {}))
	alice, bob := g.enter("alice", "a", 1, rate(5)), g.enter("bob", "b", 1, rate(4))
	g.until(alice, bob)
	g.idle(0)
	carol := g.enter("carol", "c", 2, rate(2))
	await.Until(t, "carol's bid is outbid", func() bool {
		return must[marketmsg.WhyReply](g.fixture, "carol", messages.VerbWhy, job.JobRequest{Job: carol}).Reason == "Outbid"
	})
	g.isAsWhySays(carol, g.asks("carol", carol, 0))
	g.isAsWhySays(alice, g.asks("operator", alice, 0))
	for bid, slots := range map[messages.Credits]float64{1: 0, 3: 0, 4: 0, 5: 1, 6: 2} { // an equal bid that came earlier goes first
		x := g.asks("carol", carol, bid*messages.Credit)
		if x.Term != marketmsg.TermRate || x.Now.Classes[0].Slots != 0 || x.Then.Bid != bid*messages.Credit || x.Then.Classes[0].Slots != slots || (x.Then.Reason == "Running") != (slots > 0) {
			t.Errorf("a bid of %v: %+v, now %+v", bid, x.Then, x.Now)
		}
	}
	g.isAsWhySays(carol, g.asks("carol", carol, 0))
	g.until(alice, bob)
}

// A job's budget is multiplied by four. With α = ½, this must double the job's weight in the market.
func TestWhatIfWithALargerBudget(t *testing.T) {
	g := newGrid(t, 4, sealedMarkets()[marketmsg.Proportional].market)
	ids := []messages.JobID{}
	for _, who := range []messages.Name{"alice", "bob", "carol"} {
		ids = append(ids, g.enter(who, who, 100, func(s *job.JobSpec) { s.Budget = 10 * messages.Credit }))
	}
	await.Until(t, "all have a share", func() bool {
		x := g.asks("operator", ids[0], 0)
		return x.Now != nil && same(x.Now.Classes[0].Share, 1./3)
	})
	g.isAsWhySays(ids[0], g.asks("alice", ids[0], 0))
	x := g.asks("alice", ids[0], 40*messages.Credit)
	if x.Term != marketmsg.TermBudget || x.Now.Bid != 10*messages.Credit || !same(x.Then.Classes[0].Share, 0.5) || !same(x.Then.Classes[0].Slots, 2) {
		t.Errorf("%+v, now %+v", x.Then, x.Now)
	}
	if x := g.asks("alice", ids[0], messages.Credit); x.Then.Classes[0].Share >= x.Now.Classes[0].Share {
		t.Errorf("with a smaller budget %+v, now %+v", x.Then, x.Now)
	}
}

// Each mechanism must answer, or say why it does not. If only one other account bids, only operators may get an answer.
func TestWhatIfOfEachMechanism(t *testing.T) {
	markets := sealedMarkets()
	if all := append(slices.Collect(maps.Keys(markets)), marketmsg.Karma); len(all) != len(registry.Names(nil)) {
		t.Fatalf("%d of %d mechanisms are asked", len(all), len(registry.Names(nil)))
	}
	pivot := spot(func(m *marketmsg.Market) { m.Price = marketmsg.PricePivot })
	sentences := map[messages.Name]string{marketmsg.Karma: "no bid decides in a karma market", marketmsg.FIFO: "no bid decides", marketmsg.FairShare: "no bid decides", marketmsg.Backfill: "no bid decides",
		marketmsg.DeadlineBid: "are sealed", marketmsg.ContractMenu: "are sealed", marketmsg.BatchQueue: "are sealed", marketmsg.Reservation: "are sealed"}
	for mechanism, want := range sentences {
		m := marketmsg.Market{Name: "m", Mechanism: mechanism, Classes: []messages.Name{"cpu"}}
		if term, why := market.Bids(&m); term != "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q %q", mechanism, term, why)
		}
	}
	if _, why := market.Bids(&pivot); !strings.Contains(why, "known after the end") {
		t.Errorf("pivot: %q", why)
	}
	for _, mechanism := range []messages.Name{marketmsg.Proportional, marketmsg.HighestBid, marketmsg.Reservation} {
		bid := markets[mechanism]
		g := newGrid(t, bid.slots, bid.market)
		enter := func(who messages.Name) messages.JobID {
			return g.enter(who, who, 1, func(s *job.JobSpec) { bid.change(s); s.Value = min(s.Value, 50*messages.Credit) })
		}
		alice, bob := enter("alice"), enter("bob")
		await.Until(t, "the market knows the jobs", func() bool {
			return must[marketmsg.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == 2
		})
		x := g.asks("alice", alice, 0)
		if x.Now != nil || x.Then != nil || x.Message == "" || mechanism != marketmsg.Reservation && !strings.Contains(x.Message, "only one other account") {
			t.Errorf("%s tells alice: %+v", mechanism, x)
		}
		if x := g.asks("operator", bob, 0); (x.Now == nil) != (mechanism == marketmsg.Reservation) {
			t.Errorf("%s tells an operator: %+v", mechanism, x)
		}
	}
}

// A question must be refused in three cases: it is about a job of another account, it is about a bid that the market
// would not accept, or the account has asked too many questions. For an ended job, the error must say that it has
// ended.
func TestWhatIfIsRefused(t *testing.T) {
	g := newGrid(t, 2, spot(func(m *marketmsg.Market) { m.Reserve = new(messages.Price(messages.Credit)) }))
	alice := g.enter("alice", "a", 1, rate(5))
	g.until(alice)
	g.idle(1)
	refused := func(who messages.Name, id messages.JobID, bid messages.Credits, kind messages.Kind) {
		t.Helper()
		if _, err := call[marketmsg.WhatIfReply](g.fixture, who, marketmsg.VerbWhatIf, marketmsg.WhatIfRequest{Job: id, Bid: bid}); messages.KindOf(err) != kind {
			t.Errorf("%s asks of job %d with %v: %v", who, id, bid, err)
		}
	}
	refused("bob", alice, 0, messages.NotFound)
	refused("alice", 99, 0, messages.NotFound)
	refused("alice", 0, 0, messages.Invalid)
	refused("alice", alice, -1, messages.Invalid)
	refused("alice", alice, messages.Credit/2, messages.Invalid) // below the reserve price
	for range askedRules.Burst {
		_, _ = call[marketmsg.WhatIfReply](g.fixture, "alice", marketmsg.VerbWhatIf, marketmsg.WhatIfRequest{Job: alice}) // the test's clock stands still, so all these questions come at the same time
	}
	refused("alice", alice, 0, messages.Exhausted)
	g.isAsWhySays(alice, g.asks("operator", alice, 0))
	g.pass(10 * second)
	g.complete(alice)
	g.final(alice)
	if x := g.asks("alice", alice, 0); !strings.Contains(x.Message, "has ended") {
		t.Errorf("of a job that is over: %+v", x)
	}
}
