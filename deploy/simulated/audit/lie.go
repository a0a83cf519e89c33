package audit

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// The kinds of lie, in the order of the report.
const (
	Value     = "value"
	Deadline  = "deadline"
	Length    = "length"
	Nodes     = "nodes"
	Arrival   = "arrival"
	Split     = "split"
	Collusion = "collusion"
	Weights   = "weights"
	Ends      = "ends"
	Minimum   = "minimum"
)

// Kinds are all kinds of lie.
var Kinds = []string{Value, Deadline, Length, Nodes, Arrival, Split, Collusion, Weights, Ends, Minimum}

// entry is a job and its bid, of one of the liars or of somebody else.
type entry struct {
	job  workload.Job
	bid  bids.Bid
	liar int // 1 and 2: who owns it; 0: somebody else
	// spends: what it bids is its budget.
	spends bool
	// demands: it may demand a minimum utility.
	demands bool
	// ends is how the job ends when its owner has the results; 0: well.
	ends messages.State
}

// lie changes what a liar submits; nil: it cannot be told. Partner is the other
// of two, nil but for collusion.
type lie func(mine, partner *entry, nodes int) []entry

// liesOf are the sizes in which a kind of lie comes.
func liesOf(kind string) []lie {
	switch kind {
	case Value:
		return each([]float64{0.01, 0.25, 0.5, 0.75, 0.9, 0.97, 1.03, 1.1, 1.5, 4}, func(x float64, e *entry, _ int) []entry {
			return []entry{e.rated(x)}
		})
	case Deadline:
		return each([]float64{0.5, 0.8, 1.25, 2, 5}, func(x float64, e *entry, _ int) []entry {
			if math.IsInf(e.bid.Deadline, 1) {
				return nil
			}
			e.bid.Deadline = e.job.Submit + math.Ceil(x*(e.bid.Deadline-e.job.Submit))
			return []entry{*e}
		})
	case Length:
		return each([]float64{0.5, 0.8, 1.25, 2, 4}, func(x float64, e *entry, _ int) []entry {
			// What is bid for a slot-second stands, so that the whole is worth more or less.
			e.bid.Length = max(1, math.Ceil(x*e.bid.Length))
			return []entry{*e}
		})
	case Nodes:
		return each([]float64{0.25, 0.5, 2, 4}, onOthers)
	case Arrival:
		return each([]float64{60, 600, 3600, 6 * 3600}, func(x float64, e *entry, _ int) []entry {
			e.job.Submit += x
			return []entry{*e}
		})
	case Split:
		return []lie{func(mine, _ *entry, _ int) []entry { return halves(*mine) }}
	case Collusion:
		return pairs([]float64{0.1, 0.5, 1, 2})
	case Minimum: // which a job that received less does not pay for
		return each([]float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.95}, func(x float64, e *entry, _ int) []entry {
			if !e.demands {
				return nil
			}
			e.bid.Minimum = x
			return []entry{*e}
		})
	case Ends:
		return waysOut([]messages.State{messages.Failed, messages.Cancelled})
	}
	return nil
}

func each(sizes []float64, change func(x float64, e *entry, nodes int) []entry) (out []lie) {
	for _, x := range sizes {
		out = append(out, func(mine, _ *entry, nodes int) []entry {
			e := *mine
			return change(x, &e, nodes)
		})
	}
	return out
}

// rated is the entry with another rate. The budget, the most it can pay, is no
// bid, but where shares are in proportion to it.
func (e entry) rated(x float64) entry {
	e.bid.Rate = max(1e-6, math.Round(e.bid.Rate*x*1e6)/1e6)
	if e.spends {
		e.bid.Budget = max(1e-6, e.bid.Budget*x)
	}
	return e
}

// onOthers is the same work on another number of slots: on fewer it takes
// longer, and on more it takes as long, since it cannot use them.
func onOthers(x float64, e *entry, nodes int) []entry {
	was := e.job.Width
	e.job.Width = int(math.Round(x * float64(was)))
	if e.job.Width < 1 || e.job.Width == was || e.job.Width > nodes {
		return nil
	}
	if stretch := float64(was) / float64(e.job.Width); stretch > 1 {
		e.job.Runtime, e.bid.Length = math.Ceil(e.job.Runtime*stretch), math.Ceil(e.bid.Length*stretch)
	}
	return []entry{*e}
}

// halves are two jobs of half the work: of half the slots, or of half the time.
func halves(e entry) []entry {
	a, b := e, e
	if e.job.Width > 1 {
		a.job.Width, b.job.Width = e.job.Width/2, e.job.Width-e.job.Width/2
	} else {
		a.job.Runtime = math.Ceil(e.job.Runtime / 2)
		b.job.Runtime = e.job.Runtime - a.job.Runtime
		a.bid.Length, b.bid.Length = math.Ceil(e.bid.Length/2), max(1, math.Floor(e.bid.Length/2))
	}
	a.bid.Budget, b.bid.Budget = e.bid.Budget/2, e.bid.Budget/2
	return []entry{a, b}
}

// waysOut are a job, and its two halves, that end in given ways when the results are there.
func waysOut(states []messages.State) (out []lie) {
	for _, state := range states {
		for _, split := range []bool{false, true} {
			out = append(out, func(mine, _ *entry, _ int) []entry {
				e := *mine
				e.ends = state
				if split {
					return halves(e)
				}
				return []entry{e}
			})
		}
	}
	return out
}

func pairs(sizes []float64) (out []lie) {
	for _, x := range sizes {
		for _, y := range sizes {
			if x == 1 && y == 1 {
				continue
			}
			out = append(out, func(mine, partner *entry, _ int) []entry {
				if partner == nil {
					return nil
				}
				return []entry{mine.rated(x), partner.rated(y)}
			})
		}
	}
	return out
}

// variant is a study in which the liars submit other entries, whose each job is, and
// how those jobs end that do not end well, by position.
func variant(p *core.Problem, liars []int, told []entry) (q core.Problem, owner []int, ends map[int]messages.State) {
	entries := make([]entry, 0, len(p.Bids)+1)
	for i := range p.Bids {
		if !slices.Contains(liars, i) {
			entries = append(entries, entry{job: p.Work.Jobs[i], bid: p.Bids[i]})
		}
	}
	entries = append(entries, told...)
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), cmp.Compare(a.job.Line, b.job.Line))
	})
	w := *p.Work
	q, owner, ends = *p, make([]int, len(entries)), map[int]messages.State{}
	w.Jobs, q.Bids = make([]workload.Job, len(entries)), make([]bids.Bid, len(entries))
	for k, e := range entries {
		w.Jobs[k], q.Bids[k], owner[k] = e.job, e.bid, e.liar
		if e.ends != 0 {
			ends[k] = e.ends
		}
	}
	q.Work, q.Progress = &w, nil
	return q, owner, ends
}
