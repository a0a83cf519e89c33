package faults

import (
	"fmt"
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// auditor stands between a market and its mechanism, and checks the mechanism's guarantees.
type auditor struct {
	mechanism.Mechanism
	*site
}

// watcher audits a mechanism with the interface Incremental, which computes only the shares that have changed.
type watcher struct {
	auditor
	incremental mechanism.Incremental
	weights     map[messages.JobID][]float64
}

func audited(s *site, m mechanism.Mechanism) mechanism.Mechanism {
	a := auditor{m, s}
	if m, ok := m.(mechanism.Incremental); ok {
		return &watcher{a, m, map[messages.JobID][]float64{}}
	}
	return &a
}

// Allocate lets the mechanism decide, and checks the shares.
func (a *auditor) Allocate(v *mechanism.View) *mechanism.Allocation {
	out := a.Mechanism.Allocate(v)
	a.tilt(out.Weights)
	a.check(a.site, a.shares(v, func(i int) []float64 { return out.Weights[i] }))
	return out
}

// tilt is an inserted bug: the first job gets a tenth less than its share, and nobody gets the difference.
func (a *auditor) tilt(weights [][]float64) {
	if a.Bug == Tilted && len(weights) > 1 {
		for k := range weights[0] {
			weights[0][k] *= 0.9
		}
	}
}

// shares checks two rules of an allocation by shares: the shares sum to one, and no bidder gets a smaller share than a
// bidder with a lower bid.
func (a *auditor) shares(v *mechanism.View, weights func(int) []float64) error {
	for k := range v.Classes {
		sum, bidders := 0.0, 0
		for i, j := range v.Jobs {
			w := weights(i)[k]
			if !(w >= 0 && w <= 1) || j.Pending[k] == 0 && w != 0 {
				return fmt.Errorf("invariant 6: job %d, with %d tasks pending, has a share of %v", j.Job, j.Pending[k], w)
			}
			if w != 0 && a.spent(j) {
				return fmt.Errorf("invariant 6: job %d, whose budget of %v is spent, has a share of %v", j.Job, j.Budget, w)
			}
			sum += w
			if j.Pending[k] > 0 && !a.spent(j) {
				bidders++
			}
		}
		if bidders > 0 && math.Abs(sum-1) > 1e-9 && (sum != 0 || !a.waits()) {
			return fmt.Errorf("invariant 6: the shares of %d jobs with tasks pending sum to %v", bidders, sum)
		}
	}
	return a.monotone(v, weights)
}

// spent reports whether a job of the mechanism highest-bid has used up its budget. Such a job will be discarded soon.
func (a *auditor) spent(j *mechanism.Job) bool {
	return a.market.Mechanism == market.HighestBid && j.Accrued >= j.Budget
}

// waits reports whether the mechanism may leave a class unused although tasks are pending. Only a batch queue may do
// so, while it waits until its front job can start.
func (a *auditor) waits() bool { return a.market.Mechanism == market.BatchQueue }

// monotone checks that no job gets less than a job with a lower bid. Only two mechanisms guarantee this: proportional,
// where budgets buy shares, and highest-bid, which serves bids in order.
func (a *auditor) monotone(v *mechanism.View, weights func(int) []float64) error {
	bid := func(j *mechanism.Job) messages.Credits { return j.Budget }
	more := func(x, y float64) bool { return x >= y*(1-1e-9) }
	switch a.market.Mechanism {
	case market.HighestBid:
		bid = func(j *mechanism.Job) messages.Credits { return j.Rate }
		more = func(x, y float64) bool { return x > 0 || y == 0 }
	case market.Proportional:
	default:
		return nil
	}
	for i, x := range v.Jobs {
		for k, y := range v.Jobs {
			if x.Pending[0] > 0 && !a.spent(x) && bid(x) > bid(y) && !more(weights(i)[0], weights(k)[0]) {
				return fmt.Errorf("invariant 6: monotonicity: job %d bids %v and has a share of %v, but job %d bids %v and has a share of %v",
					x.Job, bid(x), weights(i)[0], y.Job, bid(y), weights(k)[0])
			}
		}
	}
	return nil
}

// Settle asks the mechanism for the payments that a job owes, and checks them.
func (a *auditor) Settle(v *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	out := a.Mechanism.Settle(v, job, end)
	a.check(a.site, a.payments(job, end, out))
	return out
}

// payments checks that a job pays at most its budget, and at most its bid for the received slot time.
func (a *auditor) payments(job *mechanism.Job, end mechanism.End, list []mechanism.Payment) error {
	var paid messages.Credits
	for _, p := range list {
		if p.Amount < 0 || p.From == p.To {
			return fmt.Errorf("invariant 6: there is an invalid payment of %v from job %d to job %d", p.Amount, p.From, p.To)
		}
		if p.From == job.Job {
			paid += p.Amount
		}
	}
	if paid > job.Budget {
		return fmt.Errorf("invariant 6: job %d must pay %v, which is above its budget of %v", job.Job, paid, job.Budget)
	}
	if a.market.Mechanism == market.HighestBid {
		if most := job.Rate.Float()*job.Received.Seconds() + 1e-6; paid.Float() > most {
			return fmt.Errorf("invariant 6: individual rationality: job %d must pay %v for slots, but bid only %v for them", job.Job, paid, most)
		}
	}
	if a.market.Mechanism == market.Proportional && (end.Began == 0 || job.Received == 0) && paid != 0 {
		return fmt.Errorf("invariant 6: individual rationality: job %d must pay %v, but had no slots", job.Job, paid)
	}
	return nil
}

// Update lets the mechanism decide about the changes, and checks the whole result.
func (f *watcher) Update(v *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) *mechanism.Change {
	c := f.incremental.Update(v, changed, gone)
	f.tilt(c.Weights)
	for _, id := range gone {
		delete(f.weights, id)
	}
	for i, j := range c.Jobs {
		f.weights[j.Job] = append([]float64(nil), c.Weights[i]...)
	}
	f.check(f.site, f.shares(v, func(i int) []float64 {
		w := make([]float64, len(v.Classes))
		copy(w, f.weights[v.Jobs[i].Job])
		for k, x := range c.Scale {
			w[k] *= x
		}
		return w
	}))
	return c
}
