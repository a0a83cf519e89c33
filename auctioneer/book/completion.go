package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// The price of a job depends on what the site delivered. For prices, a task is complete in two cases: its program has
// ended an attempt, with any exit code, or its owner has cancelled or requeued the task. If the site ends an attempt,
// the task is not complete, and the time of this attempt does not count.

// Completion says how much of a job the site has completed. The price of the job is computed from it.
type Completion struct {
	At        messages.Time     // when the job was complete; 0 means that the site ended the job first
	Tasks     int               // tasks that were complete
	Delivered messages.Duration // slot time of the complete tasks; for each task, the time until it was complete
}

// Completion returns how much of a job the site has completed, and when. A job is complete when its last task is
// complete, or when its owner or its program ends the job.
func (j *Job) Completion() (c Completion) {
	total, last := 0, messages.Time(0)
	for i := range j.Stages {
		s := &j.Stages[i]
		total, c.Tasks, c.Delivered, last = total+s.Total, c.Tasks+s.Complete, c.Delivered+s.Delivered, max(last, s.CompleteAt)
	}
	switch {
	case c.Tasks == total:
		c.At = last
	case c.Tasks > 0 && !j.Active() && j.Outcome != job.Discarded:
		c.At = j.Ended
	}
	return c
}

// Complete reports whether every task of the job is complete in the sense that prices use (see the beginning of this
// file).
func (j *Job) Complete() bool {
	for i := range j.Stages {
		if j.Stages[i].Complete < j.Stages[i].Total {
			return false
		}
	}
	return true
}
