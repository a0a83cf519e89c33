package state

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// account records how much slot time a job was charged for one task.
type account struct {
	by      *sampler.Stride // nil means that no job is charged
	job     messages.JobID
	charged time.Duration
	slots   time.Duration // number of the task's slots; a task of n slots takes n times its length
}

// open begins to record what a task's job is charged on this node. It charges the job for a task that takes `width`
// slots for the usual time of the job's tasks.
func (c *account) open(by *sampler.Stride, job messages.JobID, width int) {
	if charged, ok := by.Begin(job, width); ok {
		*c = account{by: by, job: job, charged: charged, slots: time.Duration(width)}
	}
}

// reach is called while a task runs. If the task has already taken longer than the time for which its job was charged,
// reach charges the job for the difference.
func (c *account) reach(took time.Duration) {
	if took *= c.slots; c.by != nil && took > c.charged {
		c.by.Owe(c.job, took-c.charged)
		c.charged = took
	}
}

// close corrects the charge for a task when the task has ended. At the start, the job was charged for an expected run
// time. The argument `took` is how long the task ran. A negative value means that the task did not run.
func (c *account) close(took time.Duration) {
	if took > 0 {
		took *= c.slots
	}
	if c.by != nil {
		c.by.End(c.job, c.charged, took)
	}
	c.by = nil
}

// owe charges the jobs for the time that their running tasks have taken so far.
func (k *tasks) owe(now messages.Time) {
	for _, t := range k.hand {
		if t.since != 0 && !t.ended && !t.ahead && !t.suspended {
			t.account.reach(now.Sub(t.since).Std())
		}
	}
}
