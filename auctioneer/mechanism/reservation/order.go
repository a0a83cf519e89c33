package reservation

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
)

// Placement is the schedule that results from one order of the bids. In that order, each bid gets its earliest window.
// A bid is dropped if its window ends too late.
type Placement struct {
	Start    []int // by bid: its start, or Lost if the bid was dropped
	Accepted []int // the bids that are not dropped, in ascending order
	Value    float64
}

type placer struct {
	problem *Problem
	profile *profile.Profile
	start   []int
	rest    []bool // scratch for checking an order
}

func newPlacer(p *Problem) *placer {
	return &placer{problem: p, profile: profile.New(p.Nodes), start: make([]int, len(p.Bids))}
}

// place plans the bids of an order one after another. It stores their starts in a.start. A bid of length 0 needs its
// nodes to be free only at the instant of its start, and occupies no nodes.
func (a *placer) place(order []int) {
	a.profile.Reset(a.problem.Nodes)
	for _, i := range order {
		bid := &a.problem.Bids[i]
		length := float64(bid.Length) // exact, because times are below 2^53
		at, ok := a.profile.Within(0, float64(a.problem.latest(i)), length, bid.Width)
		if !ok {
			a.start[i] = Lost
			continue
		}
		a.start[i] = int(at)
		a.profile.Insert(at, length, bid.Width)
	}
}

// check refuses an order that does not have each bid exactly once.
func (a *placer) check(place string, order []int) error {
	n := len(a.problem.Bids)
	if len(order) != n {
		return casefile.Invalid(place, "must name each of the %d bids once, has %d", n, len(order))
	}
	a.rest = make([]bool, n)
	for k, i := range order {
		if i < 0 || i >= n {
			return casefile.Invalid(place+"["+strconv.Itoa(k)+"]", "must be a bid from 0 to %d, is %d", n-1, i)
		}
		if a.rest[i] {
			return casefile.Invalid(place+"["+strconv.Itoa(k)+"]", "bid %d is named twice: name each once", i)
		}
		a.rest[i] = true
	}
	return nil
}
