package reservation

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages"
)

// Search says how long to search for a schedule of bids of any width.
type Search struct {
	// Candidates is the number of candidates to try. A candidate is an order of the bids, or a division of the nodes.
	// On average, a candidate takes about as long as one order of the bids.
	Candidates int
	Seed       uint64
	// Workers is the number of goroutines to use; 0 means one for each processor. It does not change the result.
	Workers int
	// Fixed means that the candidates do not depend on what the bids declare. Then it is best for every bid to declare
	// the truth about everything.
	Fixed bool
}

// MaxCandidates bounds Search.Candidates.
const MaxCandidates = 1 << 30

// Result has the best schedule that a search found, and the candidate that gave it.
type Result struct {
	Outcome
	Best int    // number of the best candidate
	Kind string // "order" or "lanes"
}

// Find searches for a schedule with a high value, among candidates that do not depend on the values of the bids. It
// computes the prices of the bids from the same candidates. More candidates give a better schedule.
func Find(p *Problem, s Search) (*Result, error) {
	if !p.wide() {
		return nil, messages.Errorf(messages.Invalid, "N: a search is for bids of any width: give the number of nodes")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if s.Candidates < 1 || s.Candidates > MaxCandidates {
		return nil, casefile.Invalid("search.orders", "must be from 1 to %d, is %d", MaxCandidates, s.Candidates)
	}
	m := newMoney(p.Bids)
	plan := newPlan(p, s.Seed)
	if s.Fixed {
		plan = newFixedPlan(p, s.Seed)
	}
	f := &finder{problem: p, plan: plan, money: m, search: s}
	l := f.run()
	return &Result{Outcome: *newOutcome(m, l.start, l.best, l.without), Best: l.which, Kind: plan.kind(l.which)}, nil
}

// finder tries candidates for the best schedule, several at the same time.
type finder struct {
	problem *Problem
	plan    *plan
	money   *money
	search  Search
	trials  []*trial  // by worker
	worths  [][]worth // by worker: the values of its candidates that divide the nodes into lanes
}

// worth is the value of the schedule that one candidate gives.
type worth struct {
	candidate int
	value     int64
}

// run tries all candidates for a schedule. Then it computes the prices of the best schedule.
func (f *finder) run() *ledger {
	workers := cmp.Or(f.search.Workers, runtime.GOMAXPROCS(0))
	for range min(workers, f.search.Candidates) {
		f.trials = append(f.trials, &trial{problem: f.problem, plan: f.plan, money: f.money,
			placer: newPlacer(f.problem), ledger: newLedger(f.money), without: make([]int64, len(f.problem.Bids))})
	}
	f.worths = make([][]worth, len(f.trials))
	f.try()
	l := f.trials[0].ledger
	for _, t := range f.trials[1:] {
		l.join(t.ledger)
	}
	f.price(l)
	return l
}

// each calls the function `work` once for each worker, in parallel, and waits until all calls have returned.
func (f *finder) each(work func(w int, t *trial)) {
	var group sync.WaitGroup
	for w, t := range f.trials {
		group.Go(func() { work(w, t) })
	}
	group.Wait()
}

func (f *finder) try() {
	var next atomic.Int64
	f.each(func(w int, t *trial) {
		for c := int(next.Add(1) - 1); c < f.search.Candidates; c = int(next.Add(1) - 1) {
			if value := t.try(c); !f.plan.isOrder(c) {
				f.worths[w] = append(f.worths[w], worth{c, value})
			}
		}
	})
}

// price computes, for each winner, the highest value of a schedule without this winner. It knows two kinds of
// candidates. Candidates of the first kind are orders of the bids; for these, the value without a winner is already
// known. Candidates of the second kind divide the bids into lanes. For these, price solves the lanes again without the
// winner, but only if this can change a price. It takes the candidates with the highest values first, because later
// candidates then seldom change a price.
func (f *finder) price(l *ledger) {
	l.settle()
	worths := slices.Concat(f.worths...)
	slices.SortFunc(worths, func(x, y worth) int {
		return cmp.Or(cmp.Compare(y.value, x.value), cmp.Compare(x.candidate, y.candidate))
	})
	withouts := make([][]int64, len(f.trials))
	var next atomic.Int64
	f.each(func(w int, t *trial) {
		withouts[w] = slices.Clone(l.without)
		for k := int(next.Add(1) - 1); k < len(worths); k = int(next.Add(1) - 1) {
			t.price(worths[k], l.start, withouts[w])
		}
	})
	for _, without := range withouts {
		for i, x := range without {
			l.without[i] = max(l.without[i], x)
		}
	}
}
