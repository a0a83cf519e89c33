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

// These are the ways in which an owner can lie. The report lists them in this order.
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

// Kinds lists all kinds of lie.
var Kinds = []string{Value, Deadline, Length, Nodes, Arrival, Split, Collusion, Weights, Classes, Ends, Minimum, Delay, Slow, Names, Ghosts, Three, Joint, Cancel}

// live reports whether a kind of lie must be simulated with all actors of a site. These are the lies about how a job
// ends, and about a cancellation.
func live(kind string) bool { return kind == Ends || kind == Cancel }

// among returns how many users must agree to tell a lie of this kind. Each of these users has one job.
func among(kind string) int {
	switch kind {
	case Collusion:
		return 2
	case Three:
		return 3
	}
	return 1
}

// entry is a job with its bid. It belongs to a liar or to another user.
type entry struct {
	job    workload.Job
	bid    bids.Bid
	liar   int // number of the liar who owns the job, from 1; 0: another user
	spends bool
	// demands says that the job may demand a minimum utility.
	demands bool
	// waits says that the job declares what each second of waiting costs it, in addition to its value.
	waits bool
	// name says in whose name the job is submitted: 0 is the user's real account, and other numbers are false accounts
	// of the same user.
	name int
	// owner says what the owner of the job does in addition to submitting it and waiting. nil means nothing.
	owner *grid.Owner
	// Entries of several kinds may lead to the same result. The field `copy` is different for each of them, so that the
	// entries can be told apart.
	copy int
	// ghost says that nobody wants the results of the job: they are worth nothing, but the job's payments count.
	ghost bool
}

// lie changes what the liars submit. It returns nil if the liars cannot tell this lie.
type lie func(liars []entry, nodes int) []entry

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
			// The bid is per slot-second and stays the same. So a length that is x times as large declares a total
			// value of the job that is x times as large.
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
	case Delay: // changes only the cost of delay, not the value
		return each([]float64{0.1, 0.5, 2, 4, 50}, func(x float64, e *entry, _ int) []entry {
			if !e.waits {
				return nil
			}
			e.bid.DelayRate = x * e.bid.Rate
			return []entry{*e}
		})
	case Slow: // the job takes longer than it needs and than it declared
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
	case Minimum: // a job that received less than its minimum pays nothing
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

// rated returns the entry with its rate multiplied by x. In a market that shares in proportion to budgets, the budget
// is multiplied too. In other markets the budget is only the most that the job can pay, and does not change.
func (e entry) rated(x float64) entry {
	e.bid.Rate = max(1e-6, math.Round(e.bid.Rate*x*1e6)/1e6)
	if e.spends {
		e.bid.Budget = max(1e-6, e.bid.Budget*x)
	}
	return e
}

// onOthers returns an entry with the same work on a different number of slots. On fewer slots, the job takes longer. On
// more slots, it takes the same time, because it cannot use the additional slots.
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

// halves divides a job into two jobs with half of its work each: half of the slots, or half of the time.
func halves(e entry) []entry { return parts(e, 2, false) }

// parts returns k jobs with equal parts of the work. If the job has k or more slots, each part gets an equal share of
// the slots. Otherwise each part gets an equal share of the run time. If `names` is true, each part except the first
// has its own account.
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

// ghosts returns lies that add a second job, which nobody needs: a ghost. It asks for the same as the first job. It
// bids the lowest value and a high cost of delay, or the same as the first job. Its owner cancels it after the given
// time; 0 means never. If `other` is true, the ghost is submitted under another name.
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

// withdrawn returns an owner who cancels a job after the given time, in any state; 0 means never.
func withdrawn(after float64) *grid.Owner {
	if after == 0 {
		return nil
	}
	return &grid.Owner{Acts: []grid.Act{{Do: grid.Cancel, After: after}}}
}

// The function again returns lies. In each of these lies, a job is cancelled after some time, in any state, and
// submitted once more.
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

// waysOut returns two lies for each given way to end a job. In the first lie, the job ends in this way as soon as its
// results are there. In the second lie, the job is divided into two halves, and each half ends in this way.
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

// The function `together` returns lies that several users tell together about their rates. Each element of `rates`
// makes one lie: it has a factor for each user, and the user's rate is multiplied by this factor.
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

// variant returns a study in which the entries in `told` replace the entries of the liars. The result `owner` has a
// number for each job of this study: 0 for a job of another user, and the number of the liar for a job that does a
// liar's work. A liar may also submit a second job that does no needed work; for such a job, the number is negative.
// The third result has the owners who do more than wait for their jobs, for example cancel them.
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
