package book

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// dependencies record which jobs wait for the end or the start of other jobs, or for their begin time.
type dependencies struct {
	waiters waiters         // by job: the jobs that wait for the end of this job
	starts  waiters         // by job: the jobs that wait for the start of this job, not for its end
	pairs   waiters         // by array: the jobs whose tasks each wait for one task of the array
	delayed sorted[delayed] // the job with the earliest begin time first
	jobs    *jobs
	watch   *watch
	clock   *clock
}

// waiters maps a job to the jobs that wait for it.
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

func (w waiters) take(id messages.JobID) *Numbers {
	n := w[id]
	delete(w, id)
	return n
}

// awaited returns the jobs that a job still waits for, in two lists. The job waits for the end of the jobs in `ends`,
// and for the start of the jobs in `starts`.
func (d *dependencies) awaited(j *Job) (ends, starts []messages.JobID) {
	if j.Met {
		return nil, nil
	}
	for _, id := range j.Spec.Awaited() {
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

// enter makes a new job wait for the jobs of its conditions that have not yet started or ended.
func (d *dependencies) enter(j *Job) {
	j.Met = j.Spec.AfterAny && slices.ContainsFunc(j.Spec.Awaited(), func(id messages.JobID) bool { return d.happened(j.Spec, id) })
	for _, id := range j.Spec.AfterStart {
		if o := d.jobs.get(id); o != nil && (o.Started != 0 || !o.Active()) {
			j.begin(cmp.Or(o.Started, o.Ended).Add(j.Spec.StartDelay))
		}
	}
	each := d.jobs.get(j.Spec.AfterEach)
	j.Paired = each != nil
	d.await(j)
	if each == nil {
		return
	}
	for index := range each.Stages[0].Tasks {
		if each.Stages[0].Tasks[index].Phase == Done {
			d.pairDone(j, uint32(index))
		}
	}
	if !each.Active() {
		d.pairOver(j, each)
	}
}

// happened reports whether the job `id` has started, or has ended with the outcome that the description `s` waits for.
func (d *dependencies) happened(s *job.JobSpec, id messages.JobID) bool {
	o, p := d.jobs.get(id), d.jobs.past[id]
	if o != nil && !o.Active() {
		p = o.brief()
	}
	return p != nil && !never(s, id, p.Outcome) || o != nil && o.Started != 0 && slices.Contains(s.AfterStart, id)
}

// await sets Blocked to the number of jobs for which the job still waits. If the job's begin time is in the future,
// Blocked is one larger.
func (d *dependencies) await(j *Job) {
	ends, starts := d.awaited(j)
	for _, id := range ends {
		d.waiters.add(id, j.ID)
	}
	for _, id := range starts {
		d.starts.add(id, j.ID)
	}
	j.Blocked = len(ends) + len(starts)
	if j.Paired {
		d.pairs.add(j.Spec.AfterEach, j.ID)
		if !j.Admitted {
			j.Blocked++
		}
	}
	d.delay(j)
}

func (d *dependencies) forget(j *Job) {
	d.delayed.remove(delayed{j.Spec.Begin, j.ID})
	d.pairs.remove(j.Spec.AfterEach, j.ID)
	d.forgetAwaited(j)
}

func (d *dependencies) forgetAwaited(j *Job) {
	for _, id := range j.Spec.Awaited() {
		d.waiters.remove(id, j.ID)
		d.starts.remove(id, j.ID)
	}
}

// started tells waiting jobs that the job they wait for has started, or ended.
func (d *dependencies) started(id messages.JobID) {
	for waiter := range d.starts.take(id).All() {
		if j := d.met(waiter); j != nil {
			d.suffices(j)
			d.beginAfter(j)
		}
	}
}

// beginAfter is called when the job for which j waits has started. It sets the begin time of j.
func (d *dependencies) beginAfter(j *Job) {
	if j.Spec.StartDelay == 0 {
		return
	}
	if was := j.Spec.Begin; was > d.clock.now {
		d.delayed.remove(delayed{was, j.ID})
		j.Blocked--
	}
	j.begin(d.clock.now.Add(j.Spec.StartDelay))
	d.delay(j)
}

// replace replaces the conditions of a job's start. The job must not have a started task.
func (d *dependencies) replace(j *Job, w *job.Conditions) {
	d.delayed.remove(delayed{j.Spec.Begin, j.ID})
	d.forgetAwaited(j)
	waited, spec := j.Blocked > 0, *j.Spec
	spec.WaitFor(w)
	j.Spec = &spec
	if d.enter(j); waited && j.Blocked == 0 && j.Contract == nil {
		j.Released = d.clock.now
	}
}

// begin moves the begin time of a job with a StartDelay to a later time. An earlier time changes nothing.
func (j *Job) begin(at messages.Time) {
	if at > j.Spec.Begin && j.Spec.StartDelay > 0 {
		spec := *j.Spec
		spec.Begin = at
		j.Spec = &spec
	}
}

// The method `met` is called when the job with the number `id` waits for one job less than before. It returns this job,
// or nil if it has ended.
func (d *dependencies) met(id messages.JobID) *Job {
	j := d.jobs.own(id)
	if j == nil || !j.Active() {
		return nil
	}
	d.freed(j)
	return j
}

func (d *dependencies) freed(j *Job) {
	j.Blocked--
	if j.Contract == nil { // the amount due for a contract depends on the time of submission
		j.Released = d.clock.now
	}
	d.watch.touch(j.ID)
}

// suffices ends the waiting of a job that has AfterAny set, because for such a job one event is enough.
func (d *dependencies) suffices(j *Job) {
	if !j.Spec.AfterAny {
		return
	}
	ends, starts := d.awaited(j)
	j.Blocked -= len(ends) + len(starts)
	j.Met = true
	d.forgetAwaited(j)
}

// release tells the waiting jobs that a job has ended. It returns the waiting jobs that must end too, because they can
// never start.
func (d *dependencies) release(ended *Job) (failed []*Job) {
	d.started(ended.ID)
	for id := range d.waiters.take(ended.ID).All() {
		switch j := d.met(id); {
		case j == nil:
		case !never(j.Spec, ended.ID, ended.Outcome):
			d.suffices(j)
		case j.Spec.AfterAny && d.awaits(j): // it still waits for another job, which may be enough
		default:
			failed = append(failed, j)
		}
	}
	for id := range d.pairs.take(ended.ID).All() {
		if j := d.jobs.own(id); j != nil && j.Active() && d.pairOver(j, ended) {
			failed = append(failed, j)
		}
	}
	return failed
}

func (d *dependencies) awaits(j *Job) bool {
	ends, starts := d.awaited(j)
	return len(ends)+len(starts) > 0
}

// never is called when the job `ended` has ended with an outcome. It returns true if a job with the description `s` can
// never start because of this outcome.
func never(s *job.JobSpec, ended messages.JobID, outcome job.State) bool {
	if outcome == job.Completed {
		return slices.Contains(s.AfterFailed, ended)
	}
	return slices.Contains(s.AfterOK, ended)
}

type delayed struct {
	at  messages.Time
	job messages.JobID
}

func (d delayed) compare(o delayed) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.job, o.job))
}

func (d *dependencies) delay(j *Job) {
	if j.Spec.Begin <= d.clock.now {
		return
	}
	j.Blocked++
	d.delayed.add(delayed{j.Spec.Begin, j.ID})
}

func (d *dependencies) beginDue() {
	for at := d.nextBegin(); at != 0 && at <= d.clock.now; at = d.nextBegin() {
		next, _ := d.delayed.first()
		d.jobs.own(next.job).Blocked--
		d.watch.touch(next.job)
		d.delayed.remove(next)
	}
}

// nextBegin returns the earliest begin time of a waiting job, or 0 if there is none.
func (d *dependencies) nextBegin() messages.Time {
	next, _ := d.delayed.first()
	return next.at
}

// With Spec.AfterEach, each task of a job waits for the task with the same index of another array, its counterpart.
// While the other array runs, the job is paired: a task can be claimed only when its counterpart has completed.
// Stage.Again has the tasks that can be claimed. The other tasks still wait. A waiting task is in Stage.Tasks, with the
// phase Paired, only if a task with a higher index can already be claimed.

// A job can be paired with an array. Each task of the job can be claimed as soon as the task with the same index in the
// array has completed. The method paired updates all jobs that are paired with the array `id`, after the task with the
// given index has completed.
func (d *dependencies) paired(id messages.JobID, index uint32) {
	for waiter := range d.pairs[id].All() {
		if j := d.jobs.own(waiter); j != nil && j.Active() {
			d.pairDone(j, index)
		}
	}
}

// pairDone makes a task of a paired job claimable, because its counterpart has completed.
func (d *dependencies) pairDone(j *Job, index uint32) {
	s := &j.Stages[0]
	for len(s.Tasks) <= int(index) {
		s.Tasks = append(s.Tasks, Task{Phase: Paired})
		s.pass(d.clock.now)
	}
	t := &s.Tasks[index]
	if t.Phase != Paired { // the user cancelled this task
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

// Each task of job j waits for the task with the same index in an array. pairOver is called when this array (the job
// `ended`) has ended. It cancels the tasks of j that wait for a task that did not complete. It reports whether j ends
// because of this.
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
		s.Skipped = job.Array{{First: int64(len(s.Tasks)), Last: int64(s.Total - 1), Step: 1}}
		s.pass(d.clock.now)
	}
	if s.Cancelled > n && j.Failures() == 0 {
		j.Reason, j.Cause = "DependencyFailed", fmt.Sprintf("%d of its tasks were cancelled: their counterparts of job %d, which is %v, have not completed", s.Cancelled-n, ended.ID, ended.Outcome)
	}
	return s.over()
}
