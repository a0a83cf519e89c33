package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/series"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// remembers fills the price history of the class "cpu" of the market "m" with a sample every ten minutes. The history
// covers the given time and ends at the test's start. The function `price` returns the price at a time, in
// microcredits, and whether users may see it.
func (g *grid) remembers(over messages.Duration, price func(messages.Time) (int64, bool)) {
	g.Auctioneer.histories.mu.Lock()
	defer g.Auctioneer.histories.mu.Unlock()
	p := &g.Auctioneer.histories
	p.markets = nil
	p.begin(epoch.Add(-over))
	m := p.market("m", []messages.Name{"cpu"})
	for at := epoch.Add(-over); at < epoch; at = at.Add(600 * aSecond) {
		one, told := price(at)
		row := []int64{0, 0, one, 0, 4, 0, one, 0}
		if !told {
			row[6], row[7] = series.Unknown, series.Unknown
		}
		m.all.Add(at, row)
	}
}

// The test has a history of prices that fall in some hours. The quotes for a job with one slot, and for a job with two,
// must name the right cheapest hour.
func TestCheapestHour(t *testing.T) {
	const credit, hour, day = int64(messages.Credit), 3600 * aSecond, 24 * 3600 * aSecond
	unit := job.Resources{CPUs: 1, Memory: 1 << 30}
	ago := func(at messages.Time, hours messages.Duration) bool {
		return at >= epoch.Add(-hours*hour) && at < epoch.Add(-(hours-1)*hour)
	}
	// A slot-second costs 8 credits, except in four periods: 2 credits in one hour, 3 credits in another hour, 2.5
	// credits in one half hour, and 1 credit in an hour that ended a week ago. In the first of these hours, only
	// operators may see the price of the second half.
	prices := func(at messages.Time) (int64, bool) {
		switch {
		case ago(at, 50):
			return 2 * credit, at < epoch.Add(-50*hour+1800*aSecond)
		case ago(at, 70):
			return 3 * credit, true
		case ago(at, 7*24+1):
			return credit, true
		case ago(at, 20) && at < epoch.Add(-20*hour+1800*aSecond):
			return credit * 5 / 2, true
		}
		return 8 * credit, true
	}
	for _, mechanism := range []messages.Name{market.HighestBid, market.Proportional, market.FIFO} {
		m := market.Market{Name: "m", Mechanism: mechanism, Classes: []messages.Name{"cpu"}, Units: []job.ClassUnit{{Class: "cpu", Unit: unit}}}
		if mechanism != market.Proportional {
			m.Reserve = new(messages.Price(messages.Credit))
		}
		g := newGrid(t, 4, m)
		must[agent.RegisterReply](g.fixture, "n1", messages.VerbRegister, agent.RegisterRequest{Session: g.node.session() + 1,
			Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}, Resources: &job.Resources{CPUs: 4, Memory: 4 << 30}})
		await.Until(t, "the histories begin", func() bool {
			return must[market.HistoryReply](g.fixture, "alice", market.VerbHistory, market.HistoryRequest{Market: "m"}).Since != 0
		})
		asks := func(who messages.Name, cpus int) []clearing.CheapHour {
			t.Helper()
			reply := must[clearing.OffersReply](g.fixture, who, clearing.VerbOffers, clearing.OffersRequest{Sites: []messages.Name{"west"},
				Spec: bids(1, func(s *job.JobSpec) {
					if s.Stages[0].CPUs = cpus; mechanism == market.HighestBid {
						s.Rate = messages.Credit
					}
				})})
			if len(reply.Offers) != 1 {
				t.Fatalf("%s: no offer: %+v", mechanism, reply)
			}
			return reply.Offers[0].Cheapest
		}
		g.remembers(23*hour, prices)
		if got := asks("alice", 1); got != nil {
			t.Errorf("%s: after 23 hours %+v", mechanism, got)
		}
		g.remembers(8*day, prices)
		if mechanism == market.FIFO {
			if got := asks("alice", 1); got != nil {
				t.Errorf("the price of a queue is always the same, and the quote says %+v", got)
			}
			continue
		}
		for _, x := range []struct {
			who   messages.Name
			cpus  int
			hours messages.Duration // how long ago the cheapest hour began
			price messages.Credits  // price in a highest-bid market
		}{{"alice", 1, 70, 3 * 3600}, {"alice", 2, 70, 2 * 3 * 3600}, {"operator", 1, 50, 2 * 3600}} {
			got := asks(x.who, x.cpus)
			price, now := x.price*messages.Credit, messages.Credits(3600*x.cpus)*messages.Credit
			if mechanism == market.Proportional { // the bids are for four slots
				price, now = price/3600/4, 0
			}
			if len(got) != 1 || got[0].Start != epoch.Add(-x.hours*hour) || got[0].Price != price || got[0].Slots != x.cpus || got[0].Bids != (mechanism == market.Proportional) || got[0].Now == nil || *got[0].Now != now {
				t.Errorf("%s: %s asks for %d processors, and is told %+v; want %v for the hour that began %d hours ago, and %v now", mechanism, x.who, x.cpus, got, price, x.hours, now)
			}
		}
		g.remembers(8*day, func(messages.Time) (int64, bool) { return credit, false })
		if got := asks("alice", 1); got != nil {
			t.Errorf("%s: all prices are sealed, and the quote says %+v", mechanism, got)
		}
	}
}
