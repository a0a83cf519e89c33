package audit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/workload"
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
	Classes   = "classes"
	Ends      = "ends"
	Minimum   = "minimum"
	Delay     = "delay"
	Slow      = "slow"
	Names     = "names"
	Ghosts    = "ghosts"
	Three     = "three"
	Joint     = "joint"
	Cancel    = "cancel"
)

// Kinds are all kinds of lie.
var Kinds = []string{Value, Deadline, Length, Nodes, Arrival, Split, Collusion, Weights, Classes, Ends, Minimum, Delay, Slow, Names, Ghosts, Three, Joint, Cancel}

// live are the kinds that nothing tells but a site with all actors: how a job ends, and when
// its owner cancels it.
func live(kind string) bool { return kind == Ends || kind == Cancel }

// among is how many users, each with a job, tell the lies of a kind together.
func among(kind string) int {
	switch kind {
	case Collusion:
		return 2
	case Three:
		return 3
	}
	return 1
}

// entry is a job and its bid, of one of the liars or of somebody else.
type entry struct {
	job  workload.Job
	bid  bids.Bid
	liar int // 1 and 2: who owns it; 0: somebody else
	// spends: what it bids is its budget.
	spends bool
	// demands: it may demand a minimum utility.
	demands bool
	// waits: it says what a second of waiting costs it, apart from its value.
	waits bool
	// name is 0 if it is of its user's account, else which of the other accounts.
	name int
	// owner does more with the job than to submit it and wait; nil: it does not.
	owner *grid.Owner
	// copy tells several ways to the same result apart.
	copy int
	// ghost: nobody wants its results; what it pays counts.
	ghost bool
}

// lie changes what liars submit, together; nil: it cannot be told.
type lie func(liars []entry, nodes int) []entry

// liesOf are the sizes in which a kind of lie comes.
func liesOf(kind string) []lie {
	switch kind {
	case Value:
		return each(sizes, anotherRate)
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
		return []lie{func(liars []entry, _ int) []entry { return halves(liars[0]) }}
	case Collusion:
		var rates [][]float64
		of := []float64{0.1, 0.5, 0.9, 1, 1.1, 2}
		for _, x := range of {
			for _, y := range of {
				if x != 1 || y != 1 {
					rates = append(rates, []float64{x, y})
				}
			}
		}
		return together(rates)
	case Three:
		rates := [][]float64{{0.1, 0.1, 0.1}, {0.5, 0.5, 0.5}, {2, 2, 2}, {2, 0.5, 0.5}, {0.5, 2, 2}, {4, 0.1, 0.1}}
		for rng, size := rand.New(rand.NewPCG(3, 30)), func(r *rand.Rand) float64 { return 0.1 * math.Pow(40, r.Float64()) }; len(rates) < 36; {
			rates = append(rates, []float64{size(rng), size(rng), size(rng)})
		}
		return together(rates)
	case Delay: // apart from the value
		return each([]float64{0.1, 0.5, 2, 4, 50}, func(x float64, e *entry, _ int) []entry {
			if !e.waits {
				return nil
			}
			e.bid.DelayRate = x * e.bid.Rate
			return []entry{*e}
		})
	case Slow: // than it need be, and than it said
		return each([]float64{1.25, 1.5, 2, 4}, func(x float64, e *entry, _ int) []entry {
			e.job.Runtime = math.Ceil(x * e.job.Runtime)
			return []entry{*e}
		})
	case Names:
		return each([]float64{2, 3, 4}, func(x float64, e *entry, _ int) []entry { return parts(*e, int(x), true) })
	case Ghosts:
		return append(ghosts(0, false), ghosts(0, true)...)
	case Cancel:
		return slices.Concat(again(), ghosts(600, false), ghosts(600, true))
	case Minimum: // which a job that received less does not pay for
		return each([]float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.95}, func(x float64, e *entry, _ int) []entry {
			if !e.demands {
				return nil
			}
			e.bid.Minimum = x
			return []entry{*e}
		})
	case Ends:
		return waysOut(grid.Owner{Exits: 1, Attempts: 1}, grid.Owner{Acts: []grid.Act{{Do: grid.Cancel, When: grid.Printed}}})
	}
	return nil
}

// anotherRate is a lie about the value.
func anotherRate(x float64, e *entry, _ int) []entry { return []entry{e.rated(x)} }

func each(sizes []float64, change func(x float64, e *entry, nodes int) []entry) (out []lie) {
	for _, x := range sizes {
		out = append(out, func(liars []entry, nodes int) []entry {
			e := liars[0]
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
func halves(e entry) []entry { return parts(e, 2, false) }

// parts are k jobs of equal parts of the work: of the slots if there are so many, else of the
// time. With names, each but the first is of an account of its own.
func parts(e entry, k int, names bool) (out []entry) {
	for n := range k {
		p := e
		part := func(whole int) int { return whole*(n+1)/k - whole*n/k }
		if e.job.Width >= k {
			p.job.Width = part(e.job.Width)
		} else {
			p.job.Runtime, p.bid.Length = float64(part(int(math.Ceil(e.job.Runtime)))), max(1, float64(part(int(e.bid.Length))))
		}
		if p.bid.Budget /= float64(k); names {
			p.name += n
		}
		out = append(out, p)
	}
	return out
}

// ghosts are the job, and another one like it that nobody needs: of the lowest value and
// dear to delay, or as the job bids. Its owner cancels it after a time, 0: never.
func ghosts(after float64, other bool) (out []lie) {
	for _, x := range []float64{0.01, 1} {
		out = append(out, func(liars []entry, _ int) []entry {
			e := liars[0]
			g := e.rated(x)
			if g.ghost, g.owner = true, withdrawn(after); g.waits {
				g.bid.DelayRate = 4 * e.bid.Rate
			}
			if other {
				g.name++
			}
			return []entry{e, g}
		})
	}
	return out
}

// withdrawn is who cancels a job after a time, whatever became of it; 0: never.
func withdrawn(after float64) *grid.Owner {
	if after == 0 {
		return nil
	}
	return &grid.Owner{Acts: []grid.Act{{Do: grid.Cancel, After: after}}}
}

// again are a job that is cancelled, whatever became of it, and submitted once more.
func again() (out []lie) {
	for _, after := range []float64{60, 600, 3600} {
		out = append(out, func(liars []entry, _ int) []entry {
			first, second := liars[0], liars[0]
			first.ghost, first.owner = true, withdrawn(after)
			second.job.Submit += after
			return []entry{first, second}
		})
	}
	return out
}

// waysOut are a job, and its two halves, that end in given ways when the results are there.
func waysOut(owners ...grid.Owner) (out []lie) {
	for _, owner := range owners {
		for _, split := range []bool{false, true} {
			out = append(out, func(liars []entry, _ int) []entry {
				e := liars[0]
				told := []entry{e}
				if split {
					told = halves(e)
				}
				for k := range told {
					own := owner
					told[k].owner = &own
				}
				return told
			})
		}
	}
	return out
}

// together are lies of several users about their rates.
func together(rates [][]float64) (out []lie) {
	for _, of := range rates {
		out = append(out, func(liars []entry, _ int) []entry {
			if len(liars) < len(of) {
				return nil
			}
			var told []entry
			for k, x := range of {
				told = append(told, liars[k].rated(x))
			}
			return told
		})
	}
	return out
}

// variant is a study in which the liars submit other entries, whose each job is (0: of
// others; negative: a ghost of a liar), and which owners do more than to wait.
func variant(p *core.Problem, liars []int, told []entry) (q core.Problem, owner []int, of map[int]*grid.Owner) {
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
	q, owner, of = *p, make([]int, len(entries)), map[int]*grid.Owner{}
	w.Jobs, q.Bids = make([]workload.Job, len(entries)), make([]bids.Bid, len(entries))
	w.Users = slices.Clone(w.Users)
	q.Payers = nil
	if len(told) < len(entries) {
		q.Payers = make([]bool, len(entries))
	}
	for k, e := range entries {
		w.Jobs[k], q.Bids[k], owner[k] = e.job, e.bid, e.liar
		if e.ghost {
			owner[k] = -e.liar
		}
		if q.Payers != nil {
			q.Payers[k] = e.liar > 0
		}
		if e.name > 0 {
			w.Jobs[k].User = len(p.Work.Users) + e.name - 1
		}
		for len(w.Users) <= w.Jobs[k].User {
			w.Users = append(w.Users, workload.Unknown)
		}
		if e.owner != nil {
			of[k] = e.owner
		}
	}
	q.Work, q.Progress = &w, nil
	return q, owner, of
}
