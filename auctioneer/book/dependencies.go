package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// dependencies record which jobs wait for the end or the start of other jobs, or for a time.
type dependencies struct {
	waiters waiters         // by the job whose end they wait for
	starts  waiters         // by the job whose start they wait for, and not its end
	delayed sorted[delayed] // the next to begin first
	jobs    *jobs
	watch   *watch
	clock   *clock
}

// waiters has the jobs that wait for a job, by the job that they wait for.
type waiters map[messages.JobID]*Numbers

func (w waiters) add(id, waiter messages.JobID) {
	if w[id] == nil {
		w[id] = newNumbers()
	}
	w[id].add(waiter)
}

func (w waiters) remove(id, waiter messages.JobID) {
	if n := w[id]; n != nil {
		if n.remove(waiter); n.count == 0 {
			delete(w, id)
		}
	}
}

// take removes the jobs that wait for a job, and returns them.
func (w waiters) take(id messages.JobID) *Numbers {
	n := w[id]
	delete(w, id)
	return n
}

// awaited returns the jobs whose end a job still waits for, and those whose start.
func (d *dependencies) awaited(j *Job) (ends, starts []messages.JobID) {
	for _, id := range j.Spec.Predecessors() {
		switch o := d.jobs.get(id); {
		case o == nil || !o.Active() || slices.Contains(ends, id) || slices.Contains(starts, id):
		case j.Spec.WaitsForEnd(id):
			ends = append(ends, id)
		case o.Started == 0:
			starts = append(starts, id)
		}
	}
	return ends, starts
}

// await counts the jobs that a job waits for, and its time to begin as one more.
func (d *dependencies) await(j *Job) {
	ends, starts := d.awaited(j)
	for _, id := range ends {
		d.waiters.add(id, j.ID)
	}
	for _, id := range starts {
		d.starts.add(id, j.ID)
	}
	j.Blocked = len(ends) + len(starts)
	d.delay(j)
}

// forget removes a job that has ended from the waiting jobs.
func (d *dependencies) forget(j *Job) {
	d.delayed.remove(delayed{j.Spec.Begin, j.ID})
	for _, id := range j.Spec.Predecessors() {
		d.waiters.remove(id, j.ID)
		d.starts.remove(id, j.ID)
	}
}

// started tells the jobs that wait for the start of a job that it has started, or ended.
func (d *dependencies) started(id messages.JobID) {
	for waiter := range d.starts.take(id).All() {
		d.met(waiter)
	}
}

// met counts one job less that a job waits for, and returns the job; nil: it has ended.
func (d *dependencies) met(id messages.JobID) *Job {
	j := d.jobs.own(id)
	if j == nil || !j.Active() {
		return nil
	}
	j.Blocked--
	if j.Contract == nil { // the amount due for a contract depends on the time of submission
		j.Released = d.clock.now
	}
	d.watch.touch(id)
	return j
}

// release tells the waiting jobs that a job has ended, and returns the jobs that end with it.
func (d *dependencies) release(ended *Job) (failed []*Job) {
	d.started(ended.ID)
	for id := range d.waiters.take(ended.ID).All() {
		if j := d.met(id); j != nil && never(j.Spec, ended.ID, ended.Outcome) {
			failed = append(failed, j)
		}
	}
	return failed
}

// never reports whether a job can never start, since another one ended in this way.
func never(s *messages.JobSpec, ended messages.JobID, outcome messages.State) bool {
	if outcome == messages.Completed {
		return slices.Contains(s.AfterFailed, ended)
	}
	return slices.Contains(s.AfterOK, ended)
}

// delayed is a job that waits for a time.
type delayed struct {
	at  messages.Time
	job messages.JobID
}

func (d delayed) compare(o delayed) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.job, o.job))
}

// delay makes a job wait until its begin time, if that is in the future.
func (d *dependencies) delay(j *Job) {
	if j.Spec.Begin <= d.clock.now {
		return
	}
	j.Blocked++
	d.delayed.add(delayed{j.Spec.Begin, j.ID})
}

// beginDue lets jobs begin whose time has come.
func (d *dependencies) beginDue() {
	for at := d.nextBegin(); at != 0 && at <= d.clock.now; at = d.nextBegin() {
		next, _ := d.delayed.first()
		d.jobs.own(next.job).Blocked--
		d.watch.touch(next.job)
		d.delayed.remove(next)
	}
}

// nextBegin returns the earliest begin time of the jobs that wait for their time; 0: none waits.
func (d *dependencies) nextBegin() messages.Time {
	next, _ := d.delayed.first()
	return next.at
}
