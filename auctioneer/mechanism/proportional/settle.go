package proportional

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Settle charges a job for the slot time that it had, however it ended. After each task has ended once, the price
// counts the job as complete, but a task may run again. The slot time of such a second run never lowers the charge.
// Otherwise a user could run the job in a busy hour, repeat it in a quiet hour, and so pay less. Time that was lost by
// the site's fault is not charged.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	if c.contention == nil {
		return onCompletion(job, end)
	}
	had := Had{Time: job.Received, Contended: contended(job.Accrued), Lacked: job.Lacked, Began: end.Began}
	again := ""
	if w := job.Whole; w != nil {
		whole := Had{Time: min(w.Received, job.Received), Contended: contended(min(w.Accrued, job.Accrued)), Lacked: w.Lacked, Began: end.Began}
		if whole.Owed(job.Budget) > had.Owed(job.Budget) {
			had, again = whole, "; what ran after each task had ended once does not lower the charge"
		}
	}
	if end.Began == 0 {
		had = Had{} // no task counts, because all failed by the site's fault; members of a gang that ended well still have slot time
	}
	p := mechanism.Payment{From: job.Job, Amount: had.Owed(job.Budget)}
	switch {
	case had.Time == 0:
		p.Reason = "no task of the job had a slot"
	case p.Amount == 0:
		p.Reason = "no other account waited for slots while the job had some"
	default:
		p.Reason = fmt.Sprintf("%s: %d of its %d tasks had slots, for %v in all, and other accounts waited during %.0f%% of that time",
			strings.ToLower(end.State.String()), end.Began, end.Tasks, had.Time.Std().Round(time.Millisecond), 100*float64(had.Contended)/float64(had.Time))
		if had.Time < WholeAfter {
			p.Reason += fmt.Sprintf("; a job with slots for less than %v pays less, in proportion to the time", WholeAfter)
		}
		if had.Lacked > 0 {
			p.Reason += fmt.Sprintf("; it had %.0f%% of the slot time of its share, and pays that part", 100*had.got())
		}
		p.Reason += again
	}
	return []mechanism.Payment{p}
}

// The meter of contention adds up in credits: one credit stands for one second of full contention. contended converts
// such an amount to slot time.
func contended(metered messages.Credits) messages.Duration {
	return messages.Duration(min(metered, math.MaxInt64/1000)) * 1000
}

// onCompletion returns the charge of the paper. The budget is multiplied by the number of tasks that have ended at
// least once, and divided by the number of all tasks. The charge is rounded half to even to the microcredit. It is 0 if
// the job's shares were worth less than the minimum utility.
func onCompletion(job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job}
	switch u := received(job.Bid, end.Shares); {
	case job.MinUtility != 0 && u < job.MinUtility:
		p.Reason = fmt.Sprintf("the utility of the shares that the job received, %.4g, is below its minimum, %.4g", u, job.MinUtility)
	case end.State == jobmsg.Completed:
		p.Amount, p.Reason = job.Budget, "completed: its budget"
	default:
		p.Amount = fraction(job.Budget, end.Done, end.Tasks)
		p.Reason = fmt.Sprintf("%s with %d of %d tasks done: the same part of its budget", strings.ToLower(end.State.String()), end.Done, end.Tasks)
	}
	return []mechanism.Payment{p}
}

// received returns the utility of a job's average shares. If the job never had pending tasks in a class, its share of
// the class is not known. Then received divides the utility of the other classes by their weights, and multiplies the
// result by the weight of all classes.
func received(bid *mechanism.Bid, shares []mechanism.Share) float64 {
	weights, got := make([]float64, len(bid.Weights)), make([]float64, len(bid.Weights))
	used, all := 0.0, 0.0
	for j, w := range bid.Weights {
		all += w
		if j < len(shares) && (shares[j].Allocated > 0 || shares[j].Received > 0) {
			weights[j], got[j] = w, shares[j].Received
			used += w
		}
	}
	if used == 0 {
		return 0
	}
	return utility(bid.Form == jobmsg.Log, weights, got) * all / used
}

// fraction returns budget·done/tasks, rounded half to even.
func fraction(budget messages.Credits, done, tasks int) messages.Credits {
	if done <= 0 || tasks <= 0 || budget <= 0 {
		return 0
	}
	if done >= tasks {
		return budget
	}
	hi, lo := bits.Mul64(uint64(budget), uint64(done))
	quotient, rest := bits.Div64(hi, lo, uint64(tasks)) // no overflow: hi < tasks, because done < tasks
	if twice := 2 * rest; twice > uint64(tasks) || twice == uint64(tasks) && quotient%2 == 1 {
		quotient++
	}
	return messages.Credits(quotient)
}
