package book

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// Prices go by what the site delivered. So a task is complete for prices once an attempt of it
// was ended by its program, with any exit code, or by its owner, who cancels or requeues it; an
// attempt after that changes nothing. What the site ended itself is forgiven: a lost node, a drain, a
// preemption, a quarantine. It is no completion, and its time is not counted.

// Ender is who ended the first attempt of a task that the site did not end.
type Ender uint8

// Who ends attempts; NoEnder: nobody but the site has ended one yet.
const (
	NoEnder Ender = iota
	ByProgram
	ByOwner
)

// complete notes that a task is complete for prices, with the end of an attempt. What ends after
// its job changes nothing.
func (c *claims) complete(r messages.TaskRef, h NodeClaim, by Ender) {
	j := c.jobs.own(r.Job)
	s := &j.Stages[r.Stage]
	if t := &s.Tasks[r.Index]; t.Ender == NoEnder && h.Halt != Ahead && j.Active() {
		t.Ender = by
		s.Complete++
		s.CompleteAt = max(s.CompleteAt, cmp.Or(h.until, c.clock.now))
		s.Delivered += c.had(r, h)
	}
}

// completeAll completes the tasks of a job that run as it ends, by its owner or its program.
func (c *claims) completeAll(j *Job) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t, r := &j.Stages[i].Tasks[k], messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}
			if t.Phase != Claimed {
				continue
			}
			if _, h, ok := c.claimOf(messages.Attempt{Task: r, Number: t.Attempt}); ok && !h.Leaving {
				c.complete(r, h, ByOwner)
			}
		}
	}
}

// reopen takes back that a task is complete for prices: the site takes the blame for the
// attempt, which had some slot time.
func (s *Stage) reopen(t *Task, had messages.Duration) {
	if t.Ender != NoEnder {
		t.Ender = NoEnder
		s.Complete--
		s.Delivered = max(0, s.Delivered-had)
	}
}

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
