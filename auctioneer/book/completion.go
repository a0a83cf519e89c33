package book

import "github.com/candor-grid/candor/messages"

// Prices go by what the site delivered. So a task is complete for prices once an attempt of it
// was ended by its program, with any exit code, or by its owner, who cancels or requeues it; an
// attempt after that changes nothing. What the site ended itself is forgiven: a lost node, a drain, a
// preemption, a quarantine. It is no completion, and its time is not counted.

// Completion is what the site delivered of a job, for prices.
type Completion struct {
	At        messages.Time     // when the job was complete; 0: the site took it away before
	Tasks     int               // that were complete
	Delivered messages.Duration // slot time of these tasks, of each until it was complete
}

// Completion returns what the site has delivered of a job. The job is complete with its last
// task, or when its owner or its program ends it.
func (j *Job) Completion() (c Completion) {
	total, last := 0, messages.Time(0)
	for i := range j.Stages {
		s := &j.Stages[i]
		total, c.Tasks, c.Delivered, last = total+s.Total, c.Tasks+s.Complete, c.Delivered+s.Delivered, max(last, s.CompleteAt)
	}
	switch {
	case c.Tasks == total:
		c.At = last
	case c.Tasks > 0 && !j.Active() && j.Outcome != messages.Discarded:
		c.At = j.Ended
	}
	return c
}

// Complete reports whether every task of the job is complete for prices.
func (j *Job) Complete() bool {
	for i := range j.Stages {
		if j.Stages[i].Complete < j.Stages[i].Total {
			return false
		}
	}
	return true
}
