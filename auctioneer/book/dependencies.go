package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// dependencies record which jobs wait for the end of other jobs, or for a time.
type dependencies struct {
	waiters map[messages.JobID]*Numbers // by the job that they wait for
	delayed sorted[delayed]             // the next to begin first
	jobs    *jobs
	watch   *watch
	clock   *clock
}

// awaited returns the jobs that a job still waits for.
func (d *dependencies) awaited(j *Job) (out []messages.JobID) {
	for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		if o := d.jobs.get(id); o != nil && o.Active() && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// await counts the jobs that a job waits for, and its time to begin as one more.
func (d *dependencies) await(j *Job) {
	awaited := d.awaited(j)
	for _, id := range awaited {
		if d.waiters[id] == nil {
			d.waiters[id] = newNumbers()
		}
		d.waiters[id].add(j.ID)
	}
	j.Blocked = len(awaited)
	d.delay(j)
}

// forget removes a job that has ended from the waiting jobs.
func (d *dependencies) forget(j *Job) {
	d.delayed.remove(delayed{j.Spec.Begin, j.ID})
	for _, id := range slices.Concat(j.Spec.AfterJobs, j.Spec.AfterOK) {
		if w := d.waiters[id]; w != nil {
			if w.remove(j.ID); w.count == 0 {
				delete(d.waiters, id)
			}
		}
	}
}

// release tells the waiting jobs that a job has ended, and returns the jobs that end with it.
func (d *dependencies) release(ended *Job) (failed []*Job) {
	waiters := d.waiters[ended.ID]
	delete(d.waiters, ended.ID)
	for id := range waiters.All() {
		j := d.jobs.own(id)
		if j == nil || !j.Active() {
			continue
		}
		j.Blocked--
		if j.Contract == nil { // the amount due for a contract depends on the time of submission
			j.Released = d.clock.now
		}
		d.watch.touch(id)
		if ended.Outcome != messages.Completed && slices.Contains(j.Spec.AfterOK, ended.ID) {
			failed = append(failed, j)
		}
	}
	return failed
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
