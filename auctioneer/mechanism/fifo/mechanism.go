package fifo

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
)

// Mechanism runs a live market first come, first served.
type Mechanism struct{ desk *posted.Desk }

// NewMechanism makes the mechanism of a market.
func NewMechanism(c posted.Config) (*Mechanism, error) {
	desk, err := posted.NewDesk(c)
	if err != nil {
		return nil, err
	}
	return &Mechanism{desk}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit checks a bid; see package posted.
func (f *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	return f.desk.Admit(view, bid)
}

// Allocate puts all weight of a class on the oldest job with work pending there.
func (f *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := f.desk.Allocation(view)
	for j := range f.desk.Classes {
		if i := oldest(view, j); i >= 0 {
			a.Weights[i][j] = 1
		}
	}
	return a
}

// oldest is the position of the oldest job with work pending in a class, −1 if
// there is none.
func oldest(view *mechanism.View, class int) int {
	first := -1
	for i, job := range view.Jobs {
		if job.Pending[class] > 0 && (first < 0 || posted.Older(job, view.Jobs[first])) {
			first = i
		}
	}
	return first
}

// Settle charges the posted price; see package posted.
func (f *Mechanism) Settle(view *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	return f.desk.Settle(view, job, end)
}

// Explain says how many jobs came before.
func (f *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	ahead := 0
	for _, other := range view.Jobs {
		if posted.Older(other, job) && compete(other, job) {
			ahead++
		}
	}
	return f.desk.Explain(view, job, ahead, "first come, first served")
}

// compete says whether two jobs have work pending in the same class.
func compete(a, b *mechanism.Job) bool {
	for j := range a.Pending {
		if a.Pending[j] > 0 && b.Pending[j] > 0 {
			return true
		}
	}
	return false
}
