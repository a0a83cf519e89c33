package mutz

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

// cell is the best set of bids among the first k bids, if all bids of the set end by some granule (a step of time).
// Each cell has its own copy of the list of bids, as in the thesis.
type cell struct {
	value float64
	bids  []int
}

// table runs the thesis' dynamic program for bids that each need the whole machine, in O(bids² · granules). A granule
// is a step of the time until the horizon. table leaves out the bid with the index `without`; −1 means none. It takes
// the bids by ascending deadline. The thesis, which uses recursion, takes them by descending deadline.
func table(p *reservation.Problem, without int) cell {
	order := make([]int, 0, len(p.Bids))
	for i := range p.Bids {
		if i != without {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(p.Bids[i].Deadline, p.Bids[k].Deadline) })
	before, row := make([]cell, p.Horizon+1), make([]cell, p.Horizon+1)
	for _, i := range order {
		b := &p.Bids[i]
		for t := range row {
			row[t].value, row[t].bids = before[t].value, append(row[t].bids[:0], before[t].bids...)
			if by := min(t, b.Deadline); by >= b.Length {
				if with := &before[by-b.Length]; with.value+b.Value > row[t].value {
					row[t].value, row[t].bids = with.value+b.Value, append(append(row[t].bids[:0], with.bids...), i)
				}
			}
		}
		before, row = row, before
	}
	return before[p.Horizon]
}

// solver returns the best schedule of all bids except one. The number `without` is the index of this bid; −1 means that
// no bid is left out.
type solver func(p *reservation.Problem, without int) cell

// vickrey returns the payments of all bids. A winner pays the value of the best schedule without this winner, minus the
// value of the other bids in the best schedule of all bids. A bid that does not win pays nothing.
func (solve solver) vickrey(p *reservation.Problem) []float64 {
	best, out := solve(p, -1), make([]float64, len(p.Bids))
	for i := range p.Bids {
		if less := solve(p, i); slices.Contains(best.bids, i) {
			out[i] = less.value - (best.value - p.Bids[i].Value)
		}
	}
	return out
}

// brute returns the best schedule of bids that each need the whole machine. It tries all orders in which the bids can
// be served by their deadlines.
func brute(p *reservation.Problem, without int) (best cell) {
	used, chosen := make([]bool, len(p.Bids)), []int{}
	var extend func(at int, value float64)
	extend = func(at int, value float64) {
		if value > best.value {
			best.value, best.bids = value, append(best.bids[:0], chosen...)
		}
		for i, b := range p.Bids {
			if used[i] || i == without || at+b.Length > min(b.Deadline, p.Horizon) {
				continue
			}
			used[i], chosen = true, append(chosen, i)
			extend(at+b.Length, value+b.Value)
			used[i], chosen = false, chosen[:len(chosen)-1]
		}
	}
	extend(0, 0)
	return best
}
