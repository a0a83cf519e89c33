package core

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// runReservation sells the machine's time in periods, one after the other. Each period is sold to the jobs that were
// submitted in the period before.
func runReservation(p *Problem) (*Outcome, error) {
	r := &sale{Problem: p, out: NewOutcome(p), granule: p.Market.Granule.Seconds()}
	r.period = float64(p.Market.T) * r.granule
	for from := 0; from < len(p.Work.Jobs); {
		k := math.Floor(p.Work.Jobs[from].Submit / r.period)
		until := from
		for until < len(p.Work.Jobs) && math.Floor(p.Work.Jobs[until].Submit/r.period) == k {
			until++
		}
		r.begin = (k + 1) * r.period
		if r.Payers == nil || slices.Contains(r.Payers[from:until], true) { // leave out periods without payers: periods do not depend on each other
			if err := r.sell(from, until); err != nil {
				return nil, err
			}
		}
		from = until
	}
	return r.out, nil
}

type sale struct {
	*Problem
	out             *Outcome
	granule, period float64 // lengths of a granule and of a period, in seconds
	begin           float64 // start of the period that is sold now
	bidders         []int   // index of the job of each bid
}

// sell holds the auction for the jobs with indices from `from` to `until` − 1.
func (r *sale) sell(from, until int) error {
	p := r.problem(from, until)
	if len(p.Bids) == 0 {
		return nil
	}
	o, err := r.solve(p, r.Market.Search.Seed)
	if err != nil {
		return err
	}
	if r.Market.Pricing == "thesis" {
		if err := r.thesis(p, o); err != nil {
			return err
		}
	}
	for k, i := range r.bidders {
		if o.Start[k] == reservation.Lost {
			r.out.Jobs[i].Finish, r.out.Jobs[i].Fate = r.begin, Discarded
			continue
		}
		r.run(i, r.begin+float64(o.Start[k])*r.granule, float64(p.Bids[k].Length)*r.granule, Money(o.Payments[k]))
	}
	r.progress(until)
	return nil
}

// run runs job i at most for the time that was sold to it. The times that are sold are whole granules, so a job may
// need less or more than it bought.
func (r *sale) run(i int, start, length float64, paid messages.Credits) {
	j := &r.Work.Jobs[i]
	if j.Runtime <= length {
		r.complete(r.out, i, start, start+j.Runtime, paid)
		return
	}
	r.out.Jobs[i] = Job{Start: start, Finish: start + length, Paid: paid, Used: length * float64(j.Width), Fate: Expired}
}

// problem returns the auction of the jobs at the positions from `from` to `until` − 1. It refuses jobs that are longer
// than the period that the auction sells, or whose deadline is before this period begins.
func (r *sale) problem(from, until int) *reservation.Problem {
	p := &reservation.Problem{Nodes: r.Work.Nodes, Horizon: r.Market.T}
	r.bidders = r.bidders[:0]
	for i := from; i < until; i++ {
		j, b := &r.Work.Jobs[i], &r.Bids[i]
		if j.Runtime == 0 {
			r.complete(r.out, i, j.Submit, j.Submit, 0)
			continue
		}
		bid := reservation.Bid{Length: int(math.Ceil(b.Length / r.granule)), Deadline: p.Horizon, Value: b.Rate * b.Length * float64(j.Width), Width: j.Width}
		if !math.IsInf(b.Deadline, 1) {
			bid.Deadline = min(p.Horizon, int(math.Floor((b.Deadline-r.begin)/r.granule)))
		}
		if bid.Length > bid.Deadline {
			r.refuse(r.out, i, TooLong)
			continue
		}
		p.Bids = append(p.Bids, bid)
		r.bidders = append(r.bidders, i)
	}
	return p
}

// solve returns the best schedule if every bid takes the whole machine. Otherwise it returns the best schedule that a
// search finds.
func (r *sale) solve(p *reservation.Problem, seed uint64) (*reservation.Outcome, error) {
	if r.Market.Pricing == "thesis" {
		_, _, o, err := reservation.Orders(p, orders(len(p.Bids), r.Market.Search.Orders, seed))
		return o, err
	}
	if r.Market.Mode != market.ModeFixed && !slices.ContainsFunc(p.Bids, func(b reservation.Bid) bool { return b.Width < p.Nodes }) {
		whole := &reservation.Problem{Horizon: p.Horizon, Bids: slices.Clone(p.Bids)}
		for k := range whole.Bids {
			whole.Bids[k].Width = 0
		}
		return reservation.Solve(whole)
	}
	found, err := reservation.Find(p, reservation.Search{Candidates: r.Market.Search.Orders, Seed: seed, Fixed: r.Market.Mode == market.ModeFixed})
	if err != nil {
		return nil, err
	}
	return &found.Outcome, nil
}

// thesis computes prices as Mutz's thesis did. For each winner, it searches again without the winner's bid, in newly
// drawn orders. The new search may find a better or a worse schedule than the first search.
func (r *sale) thesis(p *reservation.Problem, o *reservation.Outcome) error {
	for _, k := range o.Winners() {
		without := &reservation.Problem{Nodes: p.Nodes, Horizon: p.Horizon, Bids: slices.Delete(slices.Clone(p.Bids), k, k+1)}
		value := 0.0
		if len(without.Bids) > 0 {
			_, _, best, err := reservation.Orders(without, orders(len(without.Bids), r.Market.Search.Orders, r.Market.Search.Seed+uint64(k)+1))
			if err != nil {
				return err
			}
			value = best.Value
		}
		o.Payments[k] = value - (o.Value - p.Bids[k].Value)
	}
	return nil
}

func orders(n, count int, seed uint64) [][]int {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	out := make([][]int, count)
	for k := range out {
		out[k] = rng.Perm(n)
	}
	return out
}
