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

// Explain says where a job stands, and what would change it.
func (c *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	r := c.rounds[job.Job]
	switch {
	case job.Running[0] > 0:
		return mechanism.Explain(mechanism.Running, "it runs: it was worth what its run costs the others by delay")
	case r != nil && r.runs:
		return mechanism.Explain(Starting, fmt.Sprintf("its value of %.6g credits reached the %.6g that its run costs the others by delay; its slots are being claimed", r.value, r.threshold))
	case r != nil:
		return mechanism.Explain(Discarded, fmt.Sprintf("its run would have cost the others %.6g credits by delay, and it is worth %.6g", r.threshold, r.value),
			fmt.Sprintf("submitting it again with a value of at least %.6g credits, or when fewer wait", r.threshold))
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
		change = append(change, fmt.Sprintf("a value of at least %.6g credits: now it would be discarded", d.Threshold))
	}
	return mechanism.Explain(mechanism.WaitingForSlots, fmt.Sprintf("it is next, in about %.0f s; its run would cost the others %.6g credits by delay, and it is worth %.6g",
		d.With[0], d.Threshold, q.Jobs[0].Value), change...)
}
