package batchqueue

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages/spelling"
)

// Explain can give these reasons.
const (
	Starting  = "Starting"  // the job is worth at least the cost of its run for the other jobs, but no task of the job runs yet
	Discarded = "Discarded" // the job is worth less than the cost of its run for the other jobs
)

// Explain says how a job stands, and what would change its standing. Usually it gives the cost of the job's run to the
// other jobs. If all other jobs belong to one account, it leaves this cost out.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	r := c.rounds[job.Job]
	switch {
	case job.Running[0] > 0:
		return mechanism.Explain(mechanism.Running, "the job runs: its value reached the cost of the delay to other jobs")
	case r != nil && r.runs:
		return mechanism.Explain(Starting, fmt.Sprintf("the job's value of %.6g credits reached the cost of the delay to other jobs%s; nodes claim the job's tasks now", r.value, told(view, job, r.threshold)))
	case r != nil:
		return mechanism.Explain(Discarded, fmt.Sprintf("the job's run would delay other jobs at a higher cost%s than the job's value of %.6g credits", told(view, job, r.threshold), r.value),
			"a new submission with a higher value"+told(view, job, r.threshold)+", or when fewer wait")
	case job.Pending[0] == 0:
		return mechanism.ExplainStage()
	}
	return c.waiting(view, job)
}

func (c *Mechanism) waiting(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	q := c.queue(view)
	place := slices.IndexFunc(q.waiting, func(o *mechanism.Job) bool { return o.Job == job.Job })
	switch {
	case place < 0 && width(job) <= view.Classes[0].Slots:
		return mechanism.Explain(mechanism.WaitingForSlots, fmt.Sprintf("the job would not end before maintenance takes slots that the job needs: the job asks for %d slots for %v", width(job), job.Length),
			"the end of the maintenance", "a shorter length or fewer slots, in a new submission")
	case place < 0:
		return mechanism.Explain(mechanism.WaitingForSlots,
			fmt.Sprintf("the job needs %d slots at once, and the nodes that are up have %d", width(job), view.Classes[0].Slots), "more nodes that are up")
	}
	d := c.decide(q)
	if place > 0 {
		return mechanism.Explain(mechanism.WaitingForTurn, fmt.Sprintf("%s before this job; this job would start in about %.0f s if all earlier jobs run", spelling.Number(place, "job is", "jobs are"), d.With[place]),
			"the discard of a job before this job, which is more likely if waiting jobs declare higher costs of delay")
	}
	change := []string{}
	if !d.Runs {
		change = append(change, "a higher value"+told(view, job, d.Threshold)+": with the present value the market would discard the job")
	}
	return mechanism.Explain(mechanism.WaitingForSlots, fmt.Sprintf("the job is next, in about %.0f s; the job runs if the delay of other jobs costs no more than the job's value of %.6g credits%s",
		d.With[0], q.Jobs[0].Value, told(view, job, d.Threshold)), change...)
}

// The function `told` returns an amount in brackets, for an explanation. The amount is computed from the bids of other
// accounts. If only one other account has bids, `told` returns "", because the amount would show this account's bid.
func told(view *mechanism.View, job *mechanism.Job, credits float64) string {
	if mechanism.OneRival(view, job) {
		return ""
	}
	return fmt.Sprintf(" (%.6g credits)", credits)
}
