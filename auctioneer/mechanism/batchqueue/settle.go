package batchqueue

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// round works out the payments of the decision on the front job.
func (c *Mechanism) round(view *mechanism.View, q *queue, d *Decision) *round {
	r := &round{runs: d.Runs, value: q.Jobs[0].Value, threshold: d.Threshold}
	net, err := c.net(view, q)
	if err != nil { // a prior out of range: the decision stands, nobody pays
		return r
	}
	r.transfers = c.transfers(q, net)
	for _, t := range r.transfers {
		c.owed[t.From] += t.Amount
	}
	return r
}

// net is what each job of the queue pays, in microcredits, in total 0.
func (c *Mechanism) net(view *mechanism.View, q *queue) ([]messages.Credits, error) {
	p, err := Pay(&q.Queue, &Expectation{Mode: c.mode(), Draws: c.draws(len(q.Jobs)), Seed: uint64(q.waiting[0].Job), Priors: c.priors(view, q)})
	if err != nil {
		return nil, err
	}
	return Microcredits(p.Net)
}

// draws keeps a decision on a long queue to some milliseconds.
func (c *Mechanism) draws(jobs int) int {
	const most, least, work = 1000, 64, 500_000
	if c.config.Draws > 0 {
		return c.config.Draws
	}
	return min(most, max(least, work/jobs))
}

// transfers settles net payments from job to job, both in queue order. A payer
// pays no more than is left of its budget; then those last in the queue receive
// less.
func (c *Mechanism) transfers(q *queue, net []messages.Credits) []mechanism.Payment {
	var out []mechanism.Payment
	to := 0
	for i, payer := range q.waiting {
		left := min(net[i], payer.Budget-c.owed[payer.Job])
		for left > 0 {
			for to < len(net) && net[to] >= 0 {
				to++
			}
			if to == len(net) {
				return out
			}
			amount := min(left, -net[to])
			out = append(out, mechanism.Payment{From: payer.Job, To: q.waiting[to].Job, Amount: amount,
				Reason: fmt.Sprintf("what its place in the queue of job %d is expected to cost others", q.waiting[0].Job)})
			left -= amount
			net[to] += amount
		}
	}
	return out
}

// Settle makes the payments of the round that decided on the job, between the
// jobs that were in the queue then. A job that ended before its turn, or whose
// round is not remembered, moves no money.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, _ mechanism.End) []mechanism.Payment {
	r := c.rounds[job.Job]
	delete(c.rounds, job.Job)
	none := []mechanism.Payment{{From: job.Job, Reason: "owes nothing: it was not considered before it ended"}}
	if r == nil {
		return none
	}
	for _, t := range r.transfers {
		if c.owed[t.From] -= t.Amount; c.owed[t.From] <= 0 {
			delete(c.owed, t.From)
		}
	}
	if len(r.transfers) == 0 {
		none[0].Reason = "owes nothing: nobody else's delay was at stake"
		return none
	}
	return r.transfers
}
