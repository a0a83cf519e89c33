package book

import "github.com/candor-grid/candor/messages"

// jobs are the jobs that nodes of this site run.
type jobs struct {
	byID    map[messages.JobID]*Job
	ended   []messages.JobID        // those that are remembered, in the order in which they ended
	ordered map[messages.JobID]*Job // those whose start was ordered for good, and that have not ended
}

// newJob is the job of a submission.
func newJob(c *Submit, id messages.JobID, now messages.Time) *Job {
	j := &Job{
		ID: id, Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Assumed: c.Assumed, Hold: c.Hold, Held: c.Held, Submitted: now, Stages: make([]Stage, len(c.Spec.Stages)),
		Contract: c.Contract, Visit: c.Visit, Deposit: Deposit{Amount: c.Deposit},
	}
	for i := range c.Spec.Stages {
		j.Stages[i] = Stage{Total: c.Spec.Stages[i].TaskCount(), Unmet: len(c.Spec.Stages[i].After)}
	}
	return j
}

// Job returns a job, nil if there is none. It must not be changed.
func (s *jobs) Job(id messages.JobID) *Job { return s.byID[id] }

// Active is the number of jobs that have not ended.
func (s *jobs) Active() int { return len(s.byID) - len(s.ended) }

// Jobs calls yield for each job, in no particular order.
func (s *jobs) Jobs(yield func(*Job) bool) { each(s.byID, yield) }

// Ordered calls yield for each job that has not ended and whose start was ordered
// for good, in no particular order.
func (s *jobs) Ordered(yield func(*Job) bool) { each(s.ordered, yield) }

func each[T any](of map[messages.JobID]*T, yield func(*T) bool) {
	for _, j := range of {
		if !yield(j) {
			return
		}
	}
}

// Live is the number of jobs of a market that are not final.
func (s *jobs) Live(market messages.Name) (n int) {
	for _, j := range s.byID {
		if j.Spec.Market == market && !j.State.Final() {
			n++
		}
	}
	return n
}
