package core

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// runProportional lets shares decide how likely a job is to get a slot that
// comes free. On one class of slots the fixed point of the mechanism is known:
// every job bids its budget b there, and its share is b^α of the sum of all with
// tasks to start, whoever the others are.
func runProportional(p *Problem) (*Outcome, error) {
	if p.Market.SLO > 0 {
		return runPool(p)
	}
	s := &shares{Problem: p, out: NewOutcome(p), free: p.Work.Nodes, jobs: make([]tasks, len(p.Bids)),
		rng: rand.New(rand.NewPCG(p.Seed, 0x736861726573))}
	for s.next < len(p.Work.Jobs) || s.ends.Len() > 0 {
		if err := s.instant(); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// shares is the state of a run.
type shares struct {
	*Problem
	out  *Outcome
	rng  *rand.Rand
	next int // the next job to be submitted
	free int // slots
	jobs []tasks
	draw sampler.Sampler
	ends clock.Queue[int] // of tasks: the job
}

// tasks counts the tasks of a job that are to be started, and those that have not ended.
type tasks struct{ pending, left int }

func (s *shares) instant() error {
	now := s.ends.Next()
	if s.next < len(s.Work.Jobs) {
		if at := micros(s.Work.Jobs[s.next].Submit); s.ends.Len() == 0 || at < now {
			now = at
		}
	}
	for s.ends.Len() > 0 && s.ends.Next() <= now {
		s.end(now, s.ends.Pop())
	}
	for ; s.next < len(s.Work.Jobs) && micros(s.Work.Jobs[s.next].Submit) <= now; s.next++ {
		s.progress(s.next)
		if err := s.arrive(s.next); err != nil {
			return err
		}
	}
	return s.serve(now)
}

func (s *shares) arrive(i int) error {
	j := &s.Work.Jobs[i]
	if j.Runtime == 0 {
		s.complete(s.out, i, j.Submit, j.Submit, 0)
		return nil
	}
	s.jobs[i] = tasks{j.Width, j.Width}
	return s.weigh(i, math.Pow(s.Bids[i].Budget, *s.Market.Alpha))
}

// weigh sets the weight of a job.
func (s *shares) weigh(i int, weight float64) error {
	return s.draw.Update([]messages.JobWeight{{Job: messages.JobID(i + 1), Weight: float32(weight)}})
}

// serve has free slots draw jobs by their weights as long as there are tasks to start.
func (s *shares) serve(now messages.Time) error {
	for s.free > 0 && s.draw.Len() > 0 {
		i := int(s.draw.Sample(s.rng.Float64())) - 1
		s.out.Decisions++
		if s.begin(now, i); s.jobs[i].pending == 0 {
			if err := s.weigh(i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts a task of a job.
func (s *shares) begin(now messages.Time, i int) {
	if math.IsNaN(s.out.Jobs[i].Start) {
		s.out.Jobs[i].Start = seconds(now)
	}
	s.free--
	s.jobs[i].pending--
	s.ends.Push(now+micros(s.Work.Jobs[i].Runtime), i)
}

// end takes note of a task's end, and charges the budget with the last.
func (s *shares) end(now messages.Time, i int) {
	s.free++
	j, r := &s.Work.Jobs[i], &s.out.Jobs[i]
	if seconds(now) <= s.Bids[i].Deadline {
		r.InTime += 1 / float64(j.Width)
	}
	if s.jobs[i].left--; s.jobs[i].left > 0 {
		return
	}
	r.Finish, r.InTime, r.Used, r.Paid = seconds(now), min(1, r.InTime), j.Work(), money(s.Bids[i].Budget)
}
