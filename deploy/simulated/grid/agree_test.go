package grid

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// agreement describes a mechanism without random choices. A test draws a trace, which is a list of jobs, and runs it on
// a real site and in the simulator's core. Both must decide the same. Only the times may differ, by the delays of
// messages. The fields `gangs`, `narrow` and so on say which traces the test may draw.
type agreement struct {
	name   string
	market func(t *rapid.T, m *rules.Market)
	gangs  bool // jobs are gangs, at most as wide as the machine
	// narrow says that each gang takes either one slot or the whole machine. The tasks of a gang end some milliseconds
	// apart, so slots become free one by one. If gangs had other widths, a narrow gang could start on the first of
	// these slots while a wider gang still waits for more slots.
	narrow bool
	whole  bool // jobs are as wide as the machine
	serial bool // jobs have one task, because any of several tasks with equal bids could wait
	// oneNode is true if the site has only one node. With several nodes, the site and the core of the simulation would
	// decide differently. On the site, a suspended task resumes on its own node. In the core, it resumes on any node.
	oneNode bool
	// If a market decides at the beginning of units of time, the field units is the length of such a unit. If the field
	// is 0, the market decides at any time. Then the test draws a trace with events so far apart that messages cannot
	// change their order.
	units  float64
	prices bool // the payments are also compared
}

var agreements = map[string]agreement{
	"fifo":                {name: rules.FIFO, prices: true},
	"backfill easy":       {name: rules.Backfill, gangs: true, narrow: true, prices: true},
	"backfill serial":     {name: rules.Backfill, prices: true},
	"conservative":        {name: rules.Backfill, gangs: true, narrow: true, prices: true, market: func(_ *rapid.T, m *rules.Market) { m.Variant = "conservative" }},
	"highest-bid HB":      {serial: true, name: rules.HighestBid, oneNode: true, prices: true, market: pricing("HB")},
	"highest-bid pivot":   {serial: true, name: rules.HighestBid, oneNode: true, prices: true, market: pivot},
	"highest-bid NPHB":    {name: rules.HighestBid, prices: true, market: pricing("NPHB")},
	"highest-bid WSPT":    {name: rules.HighestBid, prices: true, market: pricing("WSPT")},
	"highest-bid WSEPT":   {name: rules.HighestBid, prices: true, market: pricing("WSEPT")},
	"batch-queue gangs":   {name: rules.BatchQueue, gangs: true},
	"batch-queue serial":  {name: rules.BatchQueue, serial: true},
	"reservation":         {name: rules.Reservation, whole: true, units: 60, prices: true, market: period},
	"deadline":            {name: rules.Deadline, oneNode: true, units: 60, prices: true, market: slotted},
	"deadline by density": {name: rules.Deadline, oneNode: true, units: 60, prices: true, market: func(t *rapid.T, m *rules.Market) { slotted(t, m); *m.Lambda = 0 }},
}

func pricing(algorithm string) func(*rapid.T, *rules.Market) {
	return func(t *rapid.T, m *rules.Market) {
		m.Algorithm, m.Price = algorithm, rapid.SampledFrom([]string{"first", "kth"}).Draw(t, "price")
		m.Capped = rapid.Bool().Draw(t, "capped")
	}
}

func pivot(t *rapid.T, m *rules.Market) {
	m.Price, m.Horizon = market.PricePivot, messages.Duration(rapid.SampledFrom([]float64{1e3, coarse, 1e7}).Draw(t, "horizon")*1e9)
}

func period(_ *rapid.T, m *rules.Market) {
	m.Granule, m.T, m.Search.Orders, m.Bids.Deadline.Slack = messages.Duration(60e9), 20, 50, "none"
}

func slotted(_ *rapid.T, m *rules.Market) { m.Slot, m.Scale = messages.Duration(60e9), 32 }

func (a *agreement) trace(t *rapid.T) *workload.Workload {
	w := &workload.Workload{Nodes: rapid.IntRange(1, 4).Draw(t, "slots"), Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	widest, least := 3, 1
	switch {
	case a.serial:
		widest = 1
	case a.whole:
		w.Parallel, widest, least = workload.Gang, w.Nodes, w.Nodes
	case a.gangs:
		w.Parallel, widest = workload.Gang, w.Nodes
	}
	at := 0.0
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		gap, length := rapid.IntRange(0, 3).Draw(t, "gap"), rapid.IntRange(1, 9).Draw(t, "length")
		j := workload.Job{Number: int64(i + 1), Line: i + 1, Width: rapid.IntRange(least, widest).Draw(t, "width"), User: i % 2}
		if a.narrow && j.Width > 1 {
			j.Width = w.Nodes
		}
		if a.units > 0 { // each job is submitted within a unit, and ends before its last unit ends
			at += float64(gap) * a.units
			j.Submit, j.Runtime = at+a.units/2+float64(i), float64(length)*a.units-10
		} else {
			j.Submit, j.Runtime = apart(gap+int(at/coarse), 2*i), apart(length, 2*i+1)
			at = j.Submit
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// apart returns a time of a trace, such as a run time: n·coarse plus an offset of fine·2^term. The offsets are
// different powers of 2, so the sums of different sets of offsets are different.
const (
	fine   = 4       // seconds
	coarse = 1 << 18 // more than the sum of all offsets
)

func apart(n, term int) float64 { return float64(n)*coarse + float64(int(fine)<<term) }

// A site with all its actors and the core (package core) run the same study. Their results must agree: each job must
// run at the same time and pay the same amount in both. The test covers each mechanism that makes no random choices.
func TestAllActorsDoWhatTheCoreDoes(t *testing.T) {
	for name, a := range agreements {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := byDefault(a.name)
				if a.market != nil {
					a.market(t, m)
				}
				p := &core.Problem{Market: m, Work: a.trace(t), Seed: 1}
				p.Bids = m.Bids.Draw(p.Work, rapid.Uint64().Draw(t, "seed"))
				for i := range p.Bids {
					p.Bids[i].Budget, p.Bids[i].Rate = 1e11, p.Bids[i].Rate+2 // above every reserve price
				}
				want, err := core.Run(p)
				if err != nil {
					t.Fatal(err)
				}
				c := Config{Network: network.Config{Delay: ms / 10}, Lease: messages.Duration(1e18)}
				if a.oneNode {
					c.Slots = p.Work.Nodes
				}
				got, _, err := Run(p, c)
				if err != nil {
					t.Fatal(err)
				}
				a.compare(t, p, got, want)
			})
		})
	}
}

func (a *agreement) compare(t *rapid.T, p *core.Problem, got, want *core.Outcome) {
	const late = 1 // seconds; all messages of a run take less
	near := func(x, y, within float64) bool { return math.Abs(x-y) <= within || math.IsNaN(x) && math.IsNaN(y) }
	for i := range want.Jobs {
		g, w := &got.Jobs[i], &want.Jobs[i]
		same := g.Fate == w.Fate && near(g.Start, w.Start, late) && (g.Fate != core.Completed || near(g.Finish, w.Finish, late))
		if !same || a.prices && !near(g.Paid.Float(), w.Paid.Float(), 1e-3*w.Paid.Float()+late*p.Bids[i].Rate*float64(p.Work.Jobs[i].Width)) {
			t.Fatalf("job %d with all actors %+v, in the core %+v\nslots %d %+v\nall %+v\ncore %+v", i, *g, *w, p.Work.Nodes, p.Work.Jobs, got.Jobs, want.Jobs)
		}
	}
}
