package state

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// account is the slot time that a task's job was charged for the task.
type account struct {
	by      *sampler.Stride // nil: none
	job     messages.JobID
	charged time.Duration
	slots   time.Duration // number of the task's slots: a length is slot time
}

// open charges a job for a task of its usual length, on width slots.
func (c *account) open(by *sampler.Stride, job messages.JobID, width int) {
	if charged, ok := by.Begin(job, width); ok {
		*c = account{by: by, job: job, charged: charged, slots: time.Duration(width)}
	}
}

// reach charges for the time that a task has taken so far, if that is more than its usual length.
func (c *account) reach(took time.Duration) {
	if took *= c.slots; c.by != nil && took > c.charged {
		c.by.Owe(c.job, took-c.charged)
		c.charged = took
	}
}

// close charges for the time that an ended task took; less than 0: it did not run.
func (c *account) close(took time.Duration) {
	if took > 0 {
		took *= c.slots
	}
	if c.by != nil {
		c.by.End(c.job, c.charged, took)
	}
	c.by = nil
}

// owe charges for the tasks that run.
func (k *tasks) owe(now messages.Time) {
	for _, t := range k.hand {
		if t.since != 0 && !t.ended && !t.ahead && !t.suspended {
			t.account.reach(now.Sub(t.since).Std())
		}
	}
}
