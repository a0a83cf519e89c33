package core

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// A split job may be several separate jobs for the mechanism: one for each of its tasks. mostTasks bounds the number of
// such tasks in a study. Each takes about a hundred bytes.
const mostTasks = 4_000_000

// runBaseline runs the jobs under a mechanism without bids: fifo, fairshare or backfill.
func runBaseline(p *Problem) (*Outcome, error) {
	in, owner, err := instance(p)
	if err != nil {
		return nil, err
	}
	s, err := schedule(p.Market, in)
	if err != nil {
		return nil, err
	}
	o := NewOutcome(p)
	price := p.Market.Price.(float64)
	for k, i := range owner {
		job := &o.Jobs[i]
		if k == 0 || owner[k-1] != i {
			job.Start, job.Finish = s.Start[k], s.Finish[k]
		}
		job.Start, job.Finish = min(job.Start, s.Start[k]), max(job.Finish, s.Finish[k])
		if s.Finish[k] <= p.Bids[i].Deadline {
			job.InTime += float64(in.Jobs[k].Width) / float64(p.Work.Jobs[i].Width)
		}
	}
	for i := range o.Jobs {
		o.Jobs[i].Used = p.Work.Jobs[i].Work()
		o.Jobs[i].Paid = Money(min(price*o.Jobs[i].Used, p.Bids[i].Budget))
	}
	return o, nil
}

// instance returns the jobs of the workload as an instance of package rigid, and for each rigid job the index of the
// workload's job. A split job gives one rigid job for each task.
func instance(p *Problem) (*rigid.Instance, []int, error) {
	_, tasks := p.Work.Widest()
	split := p.Work.Parallel == workload.Split
	if split && tasks > mostTasks {
		return nil, nil, messages.Errorf(messages.TooLarge, "the jobs split into %d tasks, the limit for mechanism %s is %d: keep the jobs as gangs, or study a shorter time",
			tasks, p.Market.Mechanism, mostTasks)
	}
	in := &rigid.Instance{Nodes: p.Work.Nodes, Weights: make([]float64, len(p.Work.Users))}
	for u := range in.Weights {
		in.Weights[u] = 1
	}
	var owner []int
	for i := range p.Work.Jobs {
		j := &p.Work.Jobs[i]
		job := rigid.Job{Submit: j.Submit, Runtime: j.Runtime, Estimate: p.Bids[i].Length, Width: j.Width, User: j.User}
		times := 1
		if split {
			job.Width, times = 1, j.Width
		}
		for range times {
			in.Jobs = append(in.Jobs, job)
			owner = append(owner, i)
		}
	}
	return in, owner, nil
}

func schedule(m *rules.Market, in *rigid.Instance) (*rigid.Schedule, error) {
	switch m.Mechanism {
	case rules.FairShare:
		return fairshare.Schedule(in, m.HalfLife.Seconds())
	case rules.Backfill:
		return backfill.Schedule(in, backfill.Variant(m.Variant))
	}
	return fifo.Schedule(in)
}
