package core

import (
	"cmp"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// rule is the market's, as the mechanism has it.
func rule(m *rules.Market) highestbid.Rule {
	return highestbid.Rule{Algorithm: highestbid.Algorithm(m.Algorithm), Price: highestbid.Price(m.Price.(string)), Capped: m.Capped}
}

// Horizon is for how many seconds waiting counts in pivot prices; 0 with other prices.
func Horizon(m *rules.Market) float64 {
	if m.Price != messages.PricePivot {
		return 0
	}
	return cmp.Or(m.Horizon, highestbid.DefaultHorizon).Seconds()
}

// runHighestBid runs serial jobs by the whole-trace function, and jobs of
// several tasks by the market in steps.
func runHighestBid(p *Problem) (*Outcome, error) {
	if widest, _ := p.Work.Widest(); widest > 1 {
		return runWideHighestBid(p)
	}
	problem := &highestbid.Problem{Nodes: p.Work.Nodes, Rule: rule(p.Market), Reserve: *p.Market.Reserve, Horizon: Horizon(p.Market), Payers: p.Payers,
		Jobs: make([]highestbid.Job, len(p.Bids))}
	for i := range p.Bids {
		j, b := &p.Work.Jobs[i], &p.Bids[i]
		problem.Jobs[i] = highestbid.Job{Submit: j.Submit, Runtime: j.Runtime, Value: b.Value, Bid: b.Rate, Estimate: b.Length}
	}
	r, err := highestbid.Run(problem)
	if err != nil {
		return nil, err
	}
	o := NewOutcome(p)
	for i := range o.Jobs {
		for k := 1; k < len(r.Intervals[i]); k++ {
			o.gap(p, i, r.Intervals[i][k-1][1], r.Intervals[i][k][0])
		}
		p.complete(o, i, r.Start[i], r.Finish[i], Money(r.Payment[i]))
	}
	o.order()
	return o, nil
}
