package batchqueue

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
)

// The reasons that Explain gives.
const (
	Starting  = "Starting"  // it is worth what its run costs the others, and none of its tasks runs yet
	Discarded = "Discarded" // it is worth less than its run would cost the others
)

// Explain says where a job stands, and what would change it. What its run costs the
// others is not told where they are one account.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	r := c.rounds[job.Job]
	switch {
	case job.Running[0] > 0:
		return mechanism.Explain(mechanism.Running, "it runs: it was worth what its run costs the others by delay")
	case r != nil && r.runs:
		return mechanism.Explain(Starting, fmt.Sprintf("its value of %.6g credits reached what its run costs the others by delay%s; its slots are being claimed", r.value, told(view, job, r.threshold)))
	case r != nil:
		return mechanism.Explain(Discarded, fmt.Sprintf("its run would have cost the others more by delay%s than the %.6g credits that it is worth", told(view, job, r.threshold), r.value),
			"submitting it again with a higher value"+told(view, job, r.threshold)+", or when fewer wait")
	case job.Pending[0] == 0:
		return mechanism.ExplainStage()
	}
	return c.waiting(view, job)
}

func (c *Mechanism) waiting(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	q := c.queue(view)
	place := slices.IndexFunc(q.waiting, func(o *mechanism.Job) bool { return o.Job == job.Job })
	if place < 0 {
		return mechanism.Explain(mechanism.WaitingForSlots,
			fmt.Sprintf("it needs %d slots at once and the nodes that are up have %d", width(job), view.Classes[0].Slots), "nodes coming up")
	}
	d := decide(&q.Queue)
	if place > 0 {
		return mechanism.Explain(mechanism.WaitingForTurn, fmt.Sprintf("%d jobs are before it; it would start in about %.0f s if all of them run", place, d.With[place]),
			"jobs before it being discarded, which the delay costs of those waiting bring about")
	}
	change := []string{}
	if !d.Runs {
		change = append(change, "a higher value"+told(view, job, d.Threshold)+": now it would be discarded")
	}
	return mechanism.Explain(mechanism.WaitingForSlots, fmt.Sprintf("it is next, in about %.0f s; it is worth %.6g credits, and runs if its run costs the others no more by delay%s",
		d.With[0], q.Jobs[0].Value, told(view, job, d.Threshold)), change...)
}

// told is an amount that is made of the bids of others, in brackets, but not where they
// are one account's.
func told(view *mechanism.View, job *mechanism.Job, credits float64) string {
	if mechanism.OneRival(view, job) {
		return ""
	}
	return fmt.Sprintf(" (%.6g credits)", credits)
}
