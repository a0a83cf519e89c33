package mutz

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

// scheduled is the result of a search: the value of the best schedule, and the bids that it serves.
type scheduled struct {
	value float64
	met   []bool // by bid: whether the schedule serves it
}

// randomOrders searches in the way of the thesis. It uses only the first `bids` bids of the problem, and tries `depth`
// random orders of these. In each order it puts one bid after another into the earliest window that the bid fits into.
// It returns the result of the first order with the largest value.
func randomOrders(p *reservation.Problem, bids, depth int, r *rand.Rand) scheduled {
	best := scheduled{value: -1, met: make([]bool, bids)}
	met, order := make([]bool, bids), make([]int, bids)
	for i := range order {
		order[i] = i
	}
	var s segments
	for range depth {
		r.Shuffle(bids, func(i, k int) { order[i], order[k] = order[k], order[i] })
		s.reset(p.Nodes)
		value := 0.0
		for _, i := range order {
			if met[i] = s.meet(p, i); met[i] {
				value += p.Bids[i].Value
			}
		}
		if value > best.value {
			best.value = value
			copy(best.met, met)
		}
	}
	return best
}

// meet reserves the earliest time at which enough nodes are free for a bid. It returns false if the bid would then end
// after its deadline.
func (s *segments) meet(p *reservation.Problem, i int) bool {
	b := &p.Bids[i]
	return s.place(float64(b.Length), b.Width, float64(min(b.Deadline, p.Horizon))) >= 0
}

// anewSearch serves bids by the search that the thesis describes: it tries random orders. It returns whether the last
// bid is served, and what this bid pays. To compute the payment, it searches once more without this bid, with new
// random orders.
func anewSearch(p *reservation.Problem, depth int, r *rand.Rand) (met bool, payment float64) {
	last := len(p.Bids) - 1
	with := randomOrders(p, last+1, depth, r)
	if !with.met[last] {
		return false, 0
	}
	without := randomOrders(p, last, depth, r)
	return true, without.value - (with.value - p.Bids[last].Value)
}

// ourSearch runs our search, and returns whether the last bid is served and what the bidder pays.
func ourSearch(p *reservation.Problem, depth int, seed uint64) (met bool, payment float64, err error) {
	found, err := reservation.Find(p, reservation.Search{Candidates: depth, Seed: seed})
	if err != nil {
		return false, 0, err
	}
	last := len(p.Bids) - 1
	return found.Start[last] != reservation.Lost, found.Payments[last], nil
}

// every is a search that tries each order of the bids.
type every struct {
	problem *reservation.Problem
	// short makes the search shorter. It skips a bid that no longer fits into the schedule, and orders that cannot be
	// better than the best order found so far.
	short  bool
	levels []segments // levels[n] has the free nodes after n bids were placed
	used   []bool
	best   float64
}

// everyOrder tries all orders of the bids, and returns the value of the best order. If `short` is true, it skips orders
// that cannot be the best.
func everyOrder(p *reservation.Problem, short bool) float64 {
	e := &every{problem: p, short: short, levels: make([]segments, len(p.Bids)+1), used: make([]bool, len(p.Bids))}
	e.levels[0].reset(p.Nodes)
	e.extend(0, 0)
	return e.best
}

func (e *every) extend(level int, value float64) {
	e.best = max(e.best, value)
	if e.short && value+e.hope(level) <= e.best {
		return
	}
	next := &e.levels[min(level+1, len(e.used))]
	for i := range e.used {
		if e.used[i] {
			continue
		}
		next.copy(&e.levels[level])
		met := next.meet(e.problem, i)
		if !met && e.short {
			continue
		}
		e.used[i] = true
		if met {
			e.extend(level+1, value+e.problem.Bids[i].Value)
		} else {
			e.extend(level+1, value)
		}
		e.used[i] = false
	}
}

// hope returns an upper bound of the value that can still be added to the schedule. The bound is the sum of the values
// of all unused bids that could be placed next.
func (e *every) hope(level int) (sum float64) {
	scratch := &e.levels[min(level+1, len(e.used))]
	for i := range e.used {
		if e.used[i] || level == len(e.used) {
			continue
		}
		scratch.copy(&e.levels[level])
		if scratch.meet(e.problem, i) {
			sum += e.problem.Bids[i].Value
		}
	}
	return sum
}
