package reservation

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Some directives have not been carried out yet; direct gives them again. It gives a weight to each job whose reserved
// time has begun. It sets Wake to the earlier of two times: the next reserved time, and the start of the next period.
func (c *Mechanism) direct(view *mechanism.View, a *mechanism.Allocation) {
	a.Wake = c.startOf(view.Now) + c.micros(c.period)
	total := 0
	for i, job := range view.Jobs {
		a.Weights[i] = make([]float64, len(view.Classes))
		r := c.rounds[job.Job]
		switch {
		case r == nil:
			continue
		case !r.won:
			a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Discard})
			continue
		}
		a.Prices[0] += r.price.Float()
		if job.Pending[0] == 0 {
			continue
		}
		if job.Running[0] == 0 {
			a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Start, At: r.start, Slots: width(job)})
		}
		if r.start > view.Now {
			a.Wake = min(a.Wake, r.start)
			continue
		}
		a.Weights[i][0] = float64(job.Pending[0])
		total += job.Pending[0]
	}
	for i := range a.Weights {
		a.Weights[i][0] /= float64(max(total, 1))
	}
}

// Settle charges a winner its price, however the job ended, because the job's time could not be sold to other jobs. A
// job owes nothing if it did not win, or if it failed before it could start. A job that did not win is settled twice:
// when it is discarded, and when it has ended.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	r := c.rounds[job.Job]
	delete(c.rounds, job.Job)
	p := mechanism.Payment{From: job.Job}
	switch {
	case r == nil && end.State != jobmsg.Discarded:
		p.Reason = "the job ended before its auction"
	case r == nil || !r.won:
		p.Reason = "the job did not win a reservation"
	case end.State == jobmsg.Failed && job.Started == 0:
		p.Reason = "the reservation of the job was not honoured"
	default:
		p.Amount = min(r.price, job.Value, job.Budget)
		p.Reason = fmt.Sprintf("its reservation from %v: what other jobs lose by this reservation", r.start)
	}
	return []mechanism.Payment{p}
}

// These are the reasons that Explain gives.
const (
	Reserved          = "Reserved"          // the job won, and its reserved time has not come yet
	Outbid            = "Outbid"            // the job did not win
	WaitingForAuction = "WaitingForAuction" // the job's auction is at the start of the next period
)

// Explain says whether a job has slots, and what would change that. Some numbers in the explanation could reveal the
// bids of other jobs. Explain discloses only one such number: the price that the job itself pays.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	r := c.rounds[job.Job]
	switch {
	case job.Running[0] > 0:
		return mechanism.Explain(mechanism.Running, "the job has the slots that it bought")
	case r != nil && r.won:
		return mechanism.Explain(Reserved, fmt.Sprintf("the job has %d slots from %v on, for %s", width(job), r.start, r.price.Words()))
	case r != nil:
		return mechanism.Explain(Outbid, fmt.Sprintf("the job did not win against the other bids (%d bids in all): no schedule with this job is worth more than the chosen schedule", r.rivals),
			"a new bid with a higher value, a later deadline, fewer slots or a shorter length")
	case job.Pending[0] == 0:
		return mechanism.ExplainStage()
	}
	return mechanism.Explain(WaitingForAuction, fmt.Sprintf("bids are sealed until %v; then the next period is sold", c.startOf(view.Now)+c.micros(c.period)))
}
