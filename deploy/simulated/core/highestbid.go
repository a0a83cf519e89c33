package core

import (
	"cmp"

	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages/market"
)

// rule returns the market's rule in the form of the mechanism.
func rule(m *rules.Market) highestbid.Rule {
	return highestbid.Rule{Algorithm: highestbid.Algorithm(m.Algorithm), Price: highestbid.Price(m.Price.(string)), Capped: m.Capped}
}

// Horizon returns the time for which a job's waiting counts in its pivot price, in seconds. It returns 0 for other
// prices.
func Horizon(m *rules.Market) float64 {
	if m.Price != market.PricePivot {
		return 0
	}
	return cmp.Or(m.Horizon, highestbid.DefaultHorizon).Seconds()
}

// runHighestBid runs the whole log with highestbid.Run.
func runHighestBid(p *Problem) (*Outcome, error) {
	o := NewOutcome(p)
	problem := &highestbid.Problem{Nodes: p.Work.Nodes, Rule: rule(p.Market), Reserve: *p.Market.Reserve, Horizon: Horizon(p.Market), Payers: p.Payers,
		Jobs: make([]highestbid.Job, len(p.Bids)), Watch: func(s highestbid.Step) { o.step(p, s) }}
	for i := range p.Bids {
		j, b := &p.Work.Jobs[i], &p.Bids[i]
		problem.Jobs[i] = highestbid.Job{Submit: j.Submit, Runtime: j.Runtime, Value: b.Value, Bid: b.Rate, Estimate: b.Length, Tasks: j.Width}
	}
	r, err := highestbid.Run(problem)
	if err != nil {
		return nil, err
	}
	for i := range o.Jobs {
		part := o.Jobs[i].InTime
		p.complete(o, i, r.Start[i], r.Finish[i], Money(r.Payment[i]))
		o.Jobs[i].InTime = max(o.Jobs[i].InTime, min(1, part))
	}
	o.Preemptions = r.Preemptions
	o.order()
	return o, nil
}

func (o *Outcome) step(p *Problem, s highestbid.Step) {
	switch {
	case s.Lost > 0:
		o.Note(p, Change{s.At, s.Job, Suspended, s.Lost})
	case s.Again > 0:
		o.Note(p, Change{s.At, s.Job, Resumed, s.Again})
	case s.At <= p.Bids[s.Job].Deadline:
		o.Jobs[s.Job].InTime += float64(s.Done) / float64(p.Work.Jobs[s.Job].Width)
	}
	p.progress(s.Job)
}
