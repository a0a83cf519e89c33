package book

import (
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// The tasks of a job may wait for the tasks of another array, one by one (Spec.AfterEach). While the other
// array runs, the job is paired: only tasks whose counterpart has completed can be claimed. They are in
// Stage.Again; the tasks before the last of them that wait are Paired.

// paired tells the jobs whose tasks wait for those of an array that a task of it has completed.
func (d *dependencies) paired(id messages.JobID, index uint32) {
	for waiter := range d.pairs[id].All() {
		if j := d.jobs.own(waiter); j != nil && j.Active() {
			d.pairDone(j, index)
		}
	}
}

// pairDone lets a task start whose counterpart has completed.
func (d *dependencies) pairDone(j *Job, index uint32) {
	s := &j.Stages[0]
	for len(s.Tasks) <= int(index) {
		s.Tasks = append(s.Tasks, Task{Phase: Paired})
		s.pass(d.clock.now)
	}
	t := &s.Tasks[index]
	if t.Phase != Paired { // its user cancelled it
		return
	}
	t.Phase = Pending
	s.Again = append(s.Again, index)
	if !j.Admitted {
		j.Admitted = true
		d.freed(j)
	}
	d.watch.touch(j.ID)
}

// pairOver cancels the tasks of a job whose counterparts did not complete, now that the other array has
// ended. It reports whether that ends the job.
func (d *dependencies) pairOver(j *Job, ended *Job) (ends bool) {
	s := &j.Stages[0]
	if !j.Admitted {
		d.freed(j)
	}
	d.pairs.remove(ended.ID, j.ID)
	d.watch.touch(j.ID)
	j.Paired, j.Admitted = false, false
	n := s.Cancelled
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Phase == Paired {
			s.cancelled(t, d.clock.now)
		}
	}
	if rest := s.Total - len(s.Tasks); rest > 0 {
		s.Cancelled += rest - int(s.Skipped.Count())
		s.Skipped = messages.Array{{First: int64(len(s.Tasks)), Last: int64(s.Total - 1), Step: 1}}
		s.pass(d.clock.now)
	}
	if s.Cancelled > n && j.Failures() == 0 {
		j.Reason, j.Cause = "DependencyFailed", fmt.Sprintf("%d of its tasks were cancelled: their counterparts of job %d, which is %v, have not completed", s.Cancelled-n, ended.ID, ended.Outcome)
	}
	return s.over()
}
