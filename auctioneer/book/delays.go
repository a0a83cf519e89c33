package book

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// delayed is a job that waits for a time.
type delayed struct {
	at  messages.Time
	job messages.JobID
}

func (d delayed) compare(o delayed) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.job, o.job))
}

// delay has a job wait for the time at which it is to begin, if that is to come.
func (d *dependencies) delay(j *Job) {
	if j.Spec.Begin <= d.clock.now {
		return
	}
	j.Blocked++
	d.delayed.add(delayed{j.Spec.Begin, j.ID})
}

// beginDue lets jobs begin whose time has come.
func (d *dependencies) beginDue() {
	for at := d.NextBegin(); at != 0 && at <= d.clock.now; at = d.NextBegin() {
		next, _ := d.delayed.first()
		d.jobs.own(next.job).Blocked--
		d.watch.touch(next.job)
		d.delayed.remove(next)
	}
}

// NextBegin is when the next job is to begin that waits for its time; 0: none does.
func (d *dependencies) NextBegin() messages.Time {
	next, _ := d.delayed.first()
	return next.at
}
