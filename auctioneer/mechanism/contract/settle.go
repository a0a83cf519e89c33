package contract

import (
	"cmp"
	"fmt"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Settle charges a completed job the agreed price, multiplied by the value received and divided by the value promised.
// Both values come from the valuation in the job's contract, which is called its replica. With the market's setting
// LateOnly, a job that is not late pays the agreed price. The amount is rounded half to even to the microcredit.
//
// Time that the job's tasks took beyond the plan does not count as late: a user cannot lower the price by taking
// longer. A task completes when its program first ends, with any exit code, or when its owner first ends an attempt.
// Later attempts do not lower the price.
func (m *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job}
	switch c := job.Contract; {
	case c == nil:
		p.Reason = "the job has no contract"
	case end.Completed == 0:
		p.Reason = fmt.Sprintf("the site completed no task of the job, so the job received nothing of what its contract for %v credits promised, and owes nothing", c.Price)
	default:
		var amount messages.Credits
		at, own := charged(job, end)
		if amount, p.Reason = m.owed(c, job.Arrived, at); at != end.Completed {
			p.Reason += fmt.Sprintf("; the real completion was %.6g s later, because the job's tasks took %.6g s more than planned", end.Completed.Sub(at).Seconds(), own.Seconds())
		}
		if end.State != jobmsg.Completed {
			p.Reason = "what the job would owe if it had completed when its program or its owner ended it: " + p.Reason
		}
		if p.Amount = min(amount, job.Budget); p.Amount < amount {
			p.Reason += "; no more is charged than its budget"
		}
	}
	return []mechanism.Payment{p}
}

// charged returns two values. The first is the completion time from which the job's payment is computed. The second is
// by how much the job's tasks took longer than planned. The first value does not include this extra time, because it is
// the job's own fault.
func charged(job *mechanism.Job, end mechanism.End) (at messages.Time, own messages.Duration) {
	completed, c, each := end.Completed, job.Contract, cmp.Or(job.Contract.Planned, job.Length)
	if c.Completion >= completed || each <= 0 || end.Began == 0 {
		return completed, 0
	}
	own = max(0, end.Delivered-messages.Duration(end.Began*width(job.Bid))*each)
	return min(completed, max(c.Completion, completed.Add(-own))), own
}

// owed returns the amount owed for a contract, and says how it was computed.
func (m *Mechanism) owed(c *jobmsg.Contract, arrived, completed messages.Time) (messages.Credits, string) {
	replica, err := valuation.New(c.Replica)
	if err != nil { // Admit refuses a contract with an invalid valuation
		return 0, "owes nothing: " + err.Error()
	}
	after, late := max(0, completed.Sub(arrived).Seconds()), completed > c.Completion
	received := replica.At(after)
	if m.config.LateOnly && !late {
		return c.Price, fmt.Sprintf("the %v credits agreed: the job completed %.6g s after submission, not after the %.6g s promised",
			c.Price, after, c.Completion.Sub(arrived).Seconds())
	}
	amount, _ := messages.RoundCredits(Adjust(c.Price.Float(), c.Promised, received))
	reason := fmt.Sprintf("%v credits agreed × %.9g received / %.9g promised = %v: completed %.6g s after submission, promised %.6g s",
		c.Price, received, c.Promised, amount, after, c.Completion.Sub(arrived).Seconds())
	if now := replica.At(max(0, c.Completion.Sub(arrived).Seconds())); now-c.Promised > 1e-3*now {
		reason += "; the promise counts from the quote, which came before the submission"
	}
	return amount, reason
}

// Most returns the highest amount that can be owed for a contract.
func Most(c *jobmsg.Contract, lateOnly bool) messages.Credits {
	replica, err := valuation.New(c.Replica)
	if lateOnly || err != nil {
		return c.Price
	}
	most, _ := messages.RoundCredits(Adjust(c.Price.Float(), c.Promised, replica.At(0)))
	return most
}
