package core

import (
	"math"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// runSplit is for mechanisms that would keep the slots of a job together. It makes each task of a split job a separate
// job, with a part of the bid, and runs these jobs.
func runSplit(p *Problem, run func(*Problem) (*Outcome, error)) (*Outcome, error) {
	_, tasks := p.Work.Widest()
	if tasks > mostTasks {
		return nil, messages.Errorf(messages.TooLarge, "the jobs are split into %d tasks; the mechanism %s takes at most %d: keep the jobs as gangs, or study a shorter time",
			tasks, p.Market.Mechanism, mostTasks)
	}
	alone, work := *p, *p.Work
	work.Jobs, alone.Bids, alone.Work = make([]workload.Job, 0, tasks), make([]bids.Bid, 0, tasks), &work
	owner := make([]int, 0, tasks)
	if p.Payers != nil {
		alone.Payers = make([]bool, 0, tasks)
	}
	for i := range p.Work.Jobs {
		j, b := p.Work.Jobs[i], p.Bids[i]
		b.Budget /= float64(j.Width)
		for width := j.Width; width > 0; width-- {
			j.Width = 1
			work.Jobs, alone.Bids, owner = append(work.Jobs, j), append(alone.Bids, b), append(owner, i)
			if p.Payers != nil {
				alone.Payers = append(alone.Payers, p.Payers[i])
			}
		}
	}
	o, err := run(&alone)
	if err != nil {
		return nil, err
	}
	return o.joined(p, owner), nil
}

func (o *Outcome) joined(p *Problem, owner []int) *Outcome {
	out := NewOutcome(p)
	out.Preemptions, out.Notes = o.Preemptions, o.Notes
	refused := make([]int, len(out.Jobs))
	for k, i := range owner {
		task, job := &o.Jobs[k], &out.Jobs[i]
		if !math.IsNaN(task.Start) && !(job.Start <= task.Start) {
			job.Start = task.Start
		}
		job.Finish, job.Paid, job.Used = max(job.Finish, task.Finish), job.Paid+task.Paid, job.Used+task.Used
		job.InTime += task.InTime / float64(p.Work.Jobs[i].Width)
		switch task.Fate {
		case Refused:
			refused[i]++
		case Completed:
		default:
			job.Fate = task.Fate
		}
	}
	for i := range out.Jobs {
		job := &out.Jobs[i]
		job.InTime = min(1, job.InTime)
		switch n := refused[i]; {
		case n == p.Work.Jobs[i].Width:
			job.Fate = Refused
		case n > 0:
			job.Fate = Expired
		}
	}
	return out
}
