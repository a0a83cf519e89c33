package grid

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Gangs reports whether a site with a mechanism starts the tasks of a job together.
func Gangs(mechanism string) bool {
	return registry.Of(&market.Market{Mechanism: mechanism}).Gangs
}

// live converts the market of a study to a market of a site. Some parameters exist only in studies. live accepts such a
// parameter only if its value is what sites do anyway.
func live(p *core.Problem) (market.Market, error) {
	m := p.Market
	out := market.Market{Name: m.Name, Mechanism: m.Mechanism, Classes: []messages.Name{class}, Preemption: m.Preemption}
	out.Settle = m.Settle
	var err error
	switch m.Mechanism {
	case rules.Proportional:
		out.Alpha = m.Alpha
	case rules.HighestBid:
		out.Algorithm, out.Price, out.Capped = m.Algorithm, m.Price.(string), m.Capped
		if m.Algorithm == string(highestbid.WSPT) { // WSPT uses run times, so jobs must declare them
			out.Algorithm = string(highestbid.WSEPT)
		}
		out.Reserve, out.Horizon = amount(*m.Reserve), m.Horizon
	case rules.Deadline:
		out.Lambda, out.Slot, out.Scale = m.Lambda, p.Slot(), scale(p)
		err = only(m, map[string]bool{"rule": m.Rule == "monotone", "groups": m.Groups == 1})
	case rules.BatchQueue:
		if out.Pricing = m.Pricing; m.Pricing == "externality" {
			out.Draws, out.PriorJobs = m.Draws, p.PriorJobs()
		}
		err = only(m, map[string]bool{"mode": m.Mode == "priority", "expectation": m.Expectation == "drawn"})
	case rules.Reservation:
		out.Granule, out.Cycle, out.Orders = m.Granule, messages.Duration(m.T)*m.Granule, m.Search.Orders
		out.Mode = m.Mode
		err = only(m, map[string]bool{"pricing": m.Pricing == "exact"})
	case rules.Contract:
		out.Replicas, out.LateOnly, out.Quote = m.M, m.LateOnly, QuoteHolds
	case rules.FairShare:
		out.Reserve, out.HalfLife = amount(m.Price.(float64)), *m.HalfLife
		err = only(m, map[string]bool{"half_life": *m.HalfLife > 0})
	case rules.Karma:
		out.Reserve, out.Alpha, out.Slot = amount(m.Price.(float64)), m.Alpha, m.Slot
	case rules.Backfill:
		out.Reserve, out.Mode = amount(m.Price.(float64)), m.Variant
	default:
		out.Reserve = amount(m.Price.(float64))
	}
	return out, err
}

// scale returns the typical length of a job. The market's parameter Scale sets it. The default is a weighted mean of
// the declared lengths, computed in the same way as in package core.
func scale(p *core.Problem) float64 {
	if p.Market.Scale > 0 {
		return p.Market.Scale
	}
	sum, weight := 0.0, 0.0
	for i := range p.Bids { // the weights are the squares of the lengths
		l := math.Ceil(p.Bids[i].Length / p.Slot().Seconds())
		w := float64(p.Work.Jobs[i].Width) * l * l
		sum, weight = sum+w*l, weight+w
	}
	return min(1e6, max(1, math.Round(sum/weight)))
}

func amount(x float64) *messages.Price {
	c, _ := messages.RoundCredits(x) // the error does not matter: the rules limit x, so this cannot fail
	return new(messages.Price(c))
}

// only returns an error for a parameter with a value that no site can have. Some parameters of a mechanism exist only
// in studies. In the map `had`, such a parameter is false.
func only(m *rules.Market, had map[string]bool) error {
	for _, name := range rules.Parameters(m.Mechanism) {
		if has, asked := had[name]; asked && !has {
			return messages.Errorf(messages.Invalid, "%s: a site cannot run mechanism %s with this parameter: leave the parameter out, or use --actors core", name, m.Mechanism)
		}
	}
	return nil
}
