package book

import (
	"cmp"
	"slices"

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
	e := delayed{j.Spec.Begin, j.ID}
	at, _ := slices.BinarySearchFunc(d.delayed, e, delayed.compare)
	d.delayed = slices.Insert(d.delayed, at, e)
}

// beginDue lets jobs begin whose time has come.
func (d *dependencies) beginDue() {
	for len(d.delayed) > 0 && d.delayed[0].at <= d.clock.now {
		if j := d.jobs.own(d.delayed[0].job); j != nil && j.Active() {
			j.Blocked--
			d.watch.touch(j.ID)
		}
		d.delayed = d.delayed[1:]
	}
}

// NextBegin is when the next job is to begin that waits for its time; 0: none does.
func (d *dependencies) NextBegin() messages.Time {
	if len(d.delayed) == 0 {
		return 0
	}
	return d.delayed[0].at
}
