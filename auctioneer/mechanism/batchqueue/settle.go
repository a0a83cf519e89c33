package batchqueue

import (
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// round computes the payments for the decision on the front job.
func (c *Mechanism) round(q *queue, d *Decision) *round {
	r := &round{runs: d.Runs, value: q.Jobs[0].Value, threshold: d.Threshold}
	if c.config.Pricing == PivotPricing {
		r.transfers = c.levy(q, d)
	} else if net, toSite, err := c.net(q); err == nil { // err: a prior is out of range; the decision stands, and nobody pays
		r.transfers = c.transfers(q, net, toSite)
	}
	for _, t := range r.transfers {
		if t.From != 0 {
			c.owed[t.From] += t.Amount
		}
	}
	return r
}

// decide does the same as Decide, with one difference under the pricing pivot: a job's announcement counts at most as
// much as is left of the job's budget.
func (c *Mechanism) decide(q *queue) *Decision {
	d := decide(&q.Queue)
	if c.config.Pricing == PivotPricing {
		d.Threshold = 0
		for i := 1; i < len(q.Jobs); i++ {
			limit := c.left(q.waiting[i]).Float()
			d.Threshold += max(min(q.Jobs[i].Delay*d.Delays[i], limit), -limit)
		}
		d.Runs = worth(min(q.Jobs[0].Value, c.left(q.waiting[0]).Float()), d.Threshold)
	}
	return d
}

// The method `left` returns the amount that a job can still pay: its budget minus what it already owes.
func (c *Mechanism) left(job *mechanism.Job) messages.Credits {
	return max(0, job.Budget-c.owed[job.Job])
}

// levy returns the payments between the queue's accounts and the site: taxes to the site, and rebates to the accounts.
// The jobs of an account pay its tax in queue order. The first job of an account gets the account's rebate. The users
// of one peer share the peer's tax: each job pays in proportion to what the decision is worth to this job. So no user
// of the peer pays for another.
func (c *Mechanism) levy(q *queue, d *Decision) (out []mechanism.Payment) {
	stakes, of := StakesOf(&q.Queue, d, q.accounts(), c.limits(q))
	worth := c.worths(q, d)
	all := make([]float64, len(stakes)) // what the decision is worth to the jobs of a peer that have not paid yet
	for i, job := range q.waiting {
		if messages.IsVisitor(job.Account) {
			stakes[of[i]].Visits = true
			all[of[i]] += worth[i]
		}
	}
	taxes, rebates := Pivot(stakes)
	front, site := q.waiting[0].Job, messages.Credits(0)
	due := make([]messages.Credits, len(taxes))
	for k, t := range taxes {
		due[k], _ = messages.RoundCredits(t) // no error: amounts are at most the limits
	}
	for i, job := range q.waiting {
		k := of[i]
		pays := due[k]
		if all[k] > worth[i] { // other jobs of the peer have yet to pay
			pays = messages.Credits(math.Ceil(float64(pays) * worth[i] / all[k]))
		}
		all[k] -= worth[i]
		if pays = min(pays, c.left(job)); pays > 0 {
			due[k] -= pays
			site += pays
			out = append(out, mechanism.Payment{From: job.Job, Amount: pays, Now: true,
				Reason: fmt.Sprintf("what other jobs lose by the decision on job %d, because %s changed this decision", front, bidsOf(job))})
		}
	}
	for i, job := range q.waiting {
		k := of[i]
		back := min(site, messages.Credits(math.Floor(rebates[k]*float64(messages.Credit))))
		if rebates[k] = 0; back > 0 {
			site -= back
			out = append(out, mechanism.Payment{To: job.Job, Amount: back, Now: true,
				Reason: fmt.Sprintf("a part of the payments for the decision on job %d; the bids of the account that receives this part do not change the part", front)})
		}
	}
	return out
}

// bidsOf names the bids that the market treats together with a job's bid as a single bid: all bids of its account, or
// for a visitor all bids of its site.
func bidsOf(job *mechanism.Job) string {
	if messages.IsVisitor(job.Account) {
		return "the bids of the users of the payer's site"
	}
	return "the bids of the payer's account"
}

// worths returns what each waiting job gains by a decision, in the order of the queue. A job that would lose by the
// decision gets 0.
func (c *Mechanism) worths(q *queue, d *Decision) []float64 {
	positions := make([]int, len(q.waiting))
	for i := range positions {
		positions[i] = i
	}
	each, _ := StakesOf(&q.Queue, d, positions, c.limits(q))
	out := make([]float64, len(each))
	for i, s := range each {
		if out[i] = max(0, s.Gain); !d.Runs {
			out[i] = max(0, -s.Gain)
		}
	}
	return out
}

func (c *Mechanism) limits(q *queue) []float64 {
	out := make([]float64, len(q.waiting))
	for i, job := range q.waiting {
		out[i] = c.left(job).Float()
	}
	return out
}

// accounts returns the accounts of the waiting jobs, in the order of the queue. All users of a peer are one account.
func (q *queue) accounts() []messages.Name {
	out := make([]messages.Name, len(q.waiting))
	for i, job := range q.waiting {
		out[i] = messages.Participant(job.Account)
	}
	return out
}

// net returns what each job of the queue pays, in microcredits. Jobs of this site pay one another, so their payments
// sum to 0. If only one job belongs to this site, it has no other to pay, and pays the site. A visitor always pays the
// site.
func (c *Mechanism) net(q *queue) (net []messages.Credits, toSite []bool, err error) {
	net, toSite = make([]messages.Credits, len(q.waiting)), make([]bool, len(q.waiting))
	var own []int
	for i, job := range q.waiting {
		if toSite[i] = messages.IsVisitor(job.Account); !toSite[i] {
			own = append(own, i)
		}
	}
	if visited := len(own) < len(net); visited && len(own) == 1 {
		toSite[own[0]], own = true, nil
	}
	e := &Expectation{Mode: c.mode(), Draws: c.draws(len(q.Jobs)), Seed: uint64(q.waiting[0].Job), Priors: c.belief.Priors(&q.Queue, q.accounts())}
	p, err := Pay(&q.Queue, e)
	if err != nil {
		return nil, nil, err
	}
	if len(own) == len(net) {
		net, err = Microcredits(p.Net)
		return net, toSite, err
	}
	harmless := q.Queue
	harmless.Jobs = slices.Clone(q.Jobs)
	for i := range harmless.Jobs {
		if toSite[i] {
			harmless.Jobs[i].Value, harmless.Jobs[i].Delay = 0, 0
		}
	}
	best, err := Pay(&harmless, e)
	if err != nil {
		return nil, nil, err
	}
	between, err := Microcredits(among(p.Externality, own))
	if err != nil {
		return nil, nil, err
	}
	for k, i := range own {
		net[i] = between[k]
	}
	for i := range net {
		if toSite[i] {
			net[i], _ = messages.RoundCredits(min(max(0, best.Externality[i]-p.Externality[i]), messages.MaxCredits.Float()))
		}
	}
	return net, toSite, nil
}

// draws returns the number of draws. Long queues get fewer, so that a decision takes some milliseconds.
func (c *Mechanism) draws(jobs int) int {
	const most, least, work = 1000, 64, 500_000
	if c.config.Draws > 0 {
		return c.config.Draws
	}
	return min(most, max(least, work/jobs))
}

// transfers turns net payments into payments between jobs and to the site, in queue order. A payer pays at most what is
// left of its budget. If that is not enough, the last jobs in the queue receive less.
func (c *Mechanism) transfers(q *queue, net []messages.Credits, toSite []bool) []mechanism.Payment {
	var out []mechanism.Payment
	to, front := 0, q.waiting[0].Job
	for i, payer := range q.waiting {
		left := min(net[i], c.left(payer))
		if toSite[i] && left > 0 {
			out = append(out, mechanism.Payment{From: payer.Job, Amount: left, Now: true,
				Reason: fmt.Sprintf("what its bid is expected to cost other jobs by the decision on job %d", front)})
			continue
		}
		for left > 0 {
			for to < len(net) && net[to] >= 0 {
				to++
			}
			if to == len(net) {
				return out
			}
			amount := min(left, -net[to])
			out = append(out, mechanism.Payment{From: payer.Job, To: q.waiting[to].Job, Amount: amount,
				Reason: fmt.Sprintf("what its place in the queue of job %d is expected to cost other jobs", front)})
			left -= amount
			net[to] += amount
		}
	}
	return out
}

// Settle makes the payments of a decision. The decision was about this job, and the payments are between the jobs that
// were in the queue then. No credits move if the job ended before the market decided about it, or if the decision is
// not remembered. A discarded job is settled twice: when the decision discards it, and when it has ended.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	r := c.rounds[job.Job]
	delete(c.rounds, job.Job)
	none := []mechanism.Payment{{From: job.Job, Reason: "the market had not considered the job when the job ended"}}
	if r == nil {
		if end.State == jobmsg.Discarded {
			none[0].Reason = "all payments were made when the market decided about the job, and the job owes nothing more"
		}
		return none
	}
	for _, t := range r.transfers {
		if t.From == 0 {
			continue
		}
		if c.owed[t.From] -= t.Amount; c.owed[t.From] <= 0 {
			delete(c.owed, t.From)
		}
	}
	if len(r.transfers) == 0 {
		none[0].Reason = "the job delayed nobody else"
		return none
	}
	return r.transfers
}
