package reservation

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/candor-grid/candor/auctioneer/mechanism/document"
	"github.com/candor-grid/candor/messages"
)

// Search says how far to search for a schedule of bids of any width.
type Search struct {
	// Candidates is how many candidates to try at most. Each takes about as long
	// as drawing up the schedule of one order.
	Candidates int
	Seed       uint64
	// Workers is how many goroutines to use; 0: one for each processor. They
	// have ended when the search returns, and do not change its result.
	Workers int
	// Stop, if not nil, is asked before each candidate whether to stop with those
	// tried so far. It must not depend on values. It is called by several
	// goroutines at once.
	Stop func() bool
}

// MaxCandidates bounds Search.Candidates.
const MaxCandidates = 1 << 30

// Result is what a search found.
type Result struct {
	Outcome
	Best  int    // the number of the candidate
	Kind  string // "order" or "lanes"
	Tried int    // candidates 0 … Tried−1
}

// Find searches for a schedule of much value among candidates that are fixed
// before values are looked at, and prices it over these. The more candidates
// the better, and at least the first is tried.
func Find(p *Problem, s Search) (*Result, error) {
	if !p.wide() {
		return nil, messages.Errorf(messages.Invalid, "N: a search is for bids of any width: give the number of nodes")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if s.Candidates < 1 || s.Candidates > MaxCandidates {
		return nil, document.Invalid("search.orders", "must be from 1 to %d, is %d", MaxCandidates, s.Candidates)
	}
	m := newMoney(p.Bids)
	plan := newPlan(p, s.Seed)
	f := &finder{problem: p, plan: plan, money: m, search: s}
	l := f.run()
	return &Result{Outcome: *l.outcome(m), Best: l.which, Kind: plan.kind(l.which), Tried: f.tried}, nil
}

// finder tries candidates, several at a time.
type finder struct {
	problem *Problem
	plan    *plan
	money   *money
	search  Search
	tried   int
}

func (f *finder) workers() int {
	if f.search.Workers > 0 {
		return f.search.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// run tries the candidates and then asks those made of lanes what they are
// worth without each winner, as far as that can change a price.
func (f *finder) run() *ledger {
	var next atomic.Int64
	ledgers := make([]*ledger, f.workers())
	worths := make([][]worth, len(ledgers))
	f.each(func(w int) {
		t := newTrial(f.plan, f.problem, f.money)
		ledgers[w] = t.ledger
		for {
			if f.search.Stop != nil && next.Load() > 0 && f.search.Stop() {
				return
			}
			c := int(next.Add(1) - 1)
			if c >= f.search.Candidates {
				return
			}
			if value := t.try(c); !f.plan.isOrder(c) {
				worths[w] = append(worths[w], worth{c, value})
			}
		}
	})
	f.tried = min(int(next.Load()), f.search.Candidates)
	l := ledgers[0]
	for _, other := range ledgers[1:] {
		l.join(other)
	}
	return l
}

// worth is what a candidate made of lanes is worth.
type worth struct {
	candidate int
	value     int64
}

// each runs work for each worker and waits for all.
func (f *finder) each(work func(w int)) {
	var group sync.WaitGroup
	for w := range f.workers() {
		group.Go(func() { work(w) })
	}
	group.Wait()
}
