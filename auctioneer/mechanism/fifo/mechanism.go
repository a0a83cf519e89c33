package fifo

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market first come, first served.
type Mechanism struct{ *posted.Desk }

// Describe returns the traits of the mechanism.
func Describe(*market.Market) mechanism.Traits {
	t := posted.Traits(market.FIFO, "first come, first served")
	t.Make = mechanism.Maker(func(m market.Market) (*Mechanism, error) { return New(m), nil })
	t.Solve, t.Wide, t.Assembles = SolveDocument, true, true
	return t
}

// New makes the mechanism of a valid market.
func New(m market.Market) *Mechanism { return &Mechanism{posted.NewDesk(m)} }

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Allocate gives all weight of a class to the oldest job with pending tasks there.
func (f *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := f.Allocation(view)
	for j := range f.Classes {
		if i := oldest(view, j); i >= 0 {
			a.Weights[i][j] = 1
		}
	}
	return a
}

// oldest returns the position of the oldest job with pending tasks in a class, or −1.
func oldest(view *mechanism.View, class int) int {
	first := -1
	for i, job := range view.Jobs {
		if job.Pending[class] > 0 && (first < 0 || posted.Order(job, view.Jobs[first]) < 0) {
			first = i
		}
	}
	return first
}

// Explain says how many waiting jobs come before this job.
func (f *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	return f.Desk.Explain(view, job, posted.Ahead(view, job), "first come, first served")
}
