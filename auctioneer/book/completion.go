package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Prices depend on what the site delivered. A task is complete for prices when its program has ended an attempt, with
// any exit code, or when its owner has cancelled or requeued it. An attempt that the site ended completes nothing, and
// its time is not counted.

// Completion is the part of a job that the site delivered, as prices count it.
type Completion struct {
	At        messages.Time     // when the job was complete; 0 means that the site ended the job first
	Tasks     int               // tasks that were complete
	Delivered messages.Duration // slot time of these tasks, each until it was complete
}

// Completion returns what the site has delivered of a job. A job is complete when its last task is, or when its owner
// or its program ends it.
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

// Complete reports whether every task of the job is complete for prices.
func (j *Job) Complete() bool {
	for i := range j.Stages {
		if j.Stages[i].Complete < j.Stages[i].Total {
			return false
		}
	}
	return true
}
