package audit

import (
	"math"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/deploy/simulated/rules"
)

// payoff returns what an outcome is worth to a liar whose true entry is t, minus the payments of all jobs that the liar
// submitted. Some of these jobs do the liar's work, and others only influence the market. The work is done when the
// last of the jobs that do it is done. Under "hand_over: deadline" the results are available only at the declared
// deadline.
func (t *entry) payoff(q *core.Problem, o *core.Outcome, owner []int, me int) float64 {
	var parts []int
	ghosts := 0.0
	for k, who := range owner {
		switch who {
		case me:
			parts = append(parts, k)
		case -me:
			ghosts += o.Jobs[k].Paid.Float()
		}
	}
	return t.payoffOf(q, o, parts) - ghosts
}

func (t *entry) payoffOf(q *core.Problem, o *core.Outcome, parts []int) float64 {
	whole := core.Job{Start: math.Inf(1), InTime: 1}
	paid := 0.0
	for _, k := range parts {
		r := &o.Jobs[k]
		paid += r.Paid.Float()
		if r.Fate != core.Completed {
			whole.Fate = r.Fate
		}
		if !math.IsNaN(r.Start) {
			whole.Start = min(whole.Start, r.Start)
		}
		whole.Finish = max(whole.Finish, r.Finish)
		if q.Market.HandOver == rules.AtDeadline {
			whole.Finish = max(whole.Finish, q.Bids[k].Deadline)
		}
	}
	if whole.Fate != core.Completed || whole.Finish > t.bid.Deadline {
		whole.InTime = 0
	}
	return t.worth(q.Market.Worth, &whole) - paid
}

// asBid returns the payoff under another price rule: each completed job pays a fraction of what it announced. The
// function `part` returns this fraction for a job with the given number of slots.
func (t *entry) asBid(q *core.Problem, o *core.Outcome, owner []int, me int, part func(slots int) float64) float64 {
	out := t.payoff(q, o, owner, me)
	for k, who := range owner {
		if r := &o.Jobs[k]; who == me {
			if out += r.Paid.Float(); r.Fate == core.Completed {
				out -= part(q.Work.Jobs[k].Width) * q.Bids[k].Rate * q.Bids[k].Length * float64(q.Work.Jobs[k].Width)
			}
		}
	}
	return out
}

// finish counts a job as completed if it ran for its whole run time, even if it then failed: its owner has the results.
func finish(q *core.Problem, o *core.Outcome, at int) {
	job, r := &q.Work.Jobs[at], &o.Jobs[at]
	const almost = 1 - 1e-3 // a cancellation can arrive before the report of an end
	if r.Used < almost*job.Runtime*float64(job.Width) {
		return
	}
	r.Fate, r.InTime = core.Completed, 0
	if r.Finish <= q.Bids[at].Deadline {
		r.InTime = 1
	}
}

// The method `worth` returns the worth of a job's outcome. If `by` is ByDelay, a job that did not complete loses its
// whole value, in addition to the cost of its delay.
func (t *entry) worth(by string, r *core.Job) float64 {
	if r.Fate != core.Completed && by == rules.ByDelay {
		return -t.bid.Worth(&t.job) - t.bid.Delay(&t.job)*(r.Finish-t.job.Submit)
	}
	return measure.Worth(by, &t.job, &t.bid, r)
}
