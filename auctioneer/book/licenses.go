package book

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// licenses are the licences of the site. A task has its licences from when it gets a slot until its claim ends. A
// suspended task keeps its licences, because the suspended program may still use them.
type licenses struct {
	byName map[messages.Name]*job.LicenseStatus
	bounds *bounds
	jobs   *jobs
	watch  *watch
}

// set replaces the totals. A licence that is removed while tasks still have it stays, with a total of 0.
func (l *licenses) set(totals job.Licenses) {
	for name, s := range l.byName {
		if s.Total = totals.Of(name); s.Total == 0 && s.Used == 0 {
			delete(l.byName, name)
		}
	}
	for _, of := range totals {
		l.status(of.Name).Total = of.Count
	}
	l.watch.changed.Licenses = true
}

// status returns the entry of a licence, and makes one if there is none. The caller may change the entry.
func (l *licenses) status(name messages.Name) *job.LicenseStatus {
	s := l.byName[name]
	if s == nil {
		s = &job.LicenseStatus{Name: name}
		l.byName[name] = s
	}
	return s
}

// count adds the licences of a task that starts to the numbers of used licences. If the argument `by` is -1, the task
// has ended, and count subtracts its licences.
func (l *licenses) count(r messages.TaskRef, by int) {
	j := l.jobs.own(r.Job)
	if j == nil {
		return
	}
	l.bounds.count(j, int(r.Stage), by)
	for _, of := range licensesOf(&j.Spec.Stages[r.Stage], r.Index) {
		s := l.status(of.Name)
		if s.Used += by * of.Count; s.Used == 0 && s.Total == 0 {
			delete(l.byName, of.Name)
		}
		l.watch.changed.Licenses = true
	}
}

// licensesOf returns the licences that one task of a stage holds. In an allocation, only the first task runs the
// program. So it holds the licences of all tasks of the allocation, and the other tasks hold none.
func licensesOf(of *job.Stage, index uint32) job.Licenses {
	if of.Allocation && index > 0 {
		return nil
	}
	return of.Licenses
}

// limits reports whether licences or bounds limit how many tasks of a stage run at the same time.
func (l *licenses) limits(j *Job, stage int) bool {
	return len(j.Spec.Stages[stage].Licenses) > 0 || l.bounds.binds(j)
}

func (l *licenses) free(name messages.Name) int {
	if s := l.byName[name]; s != nil {
		return max(0, s.Total-s.Used)
	}
	return 0
}

// permits returns how many more tasks of a stage may start with the free licences and bounds.
func (l *licenses) permits(j *Job, stage int) int {
	of, n := &j.Spec.Stages[stage], math.MaxInt
	for _, x := range of.Licenses {
		n = min(n, l.free(x.Name)/x.Count)
	}
	most := l.bounds.permits(j, stage)
	if tasks := j.Stages[stage].Tasks; of.Allocation && (n > 0 || len(tasks) > 0 && tasks[0].Phase == Claimed) {
		return most
	}
	return min(n, most)
}

// claimable returns how many tasks of a stage could be claimed now. The free licences and the bounds of the job may
// make this number smaller.
func (l *licenses) claimable(j *Job, stage int) int { return l.bounded(j, stage, j.Claimable(stage)) }

// startable returns how many tasks of a stage may start now. Unlike claimable, it also counts wide tasks for which
// nodes keep slots free until they have enough: another node may have enough free slots for such a task now.
func (l *licenses) startable(j *Job, stage int) int {
	return l.bounded(j, stage, j.claimable(stage, 0))
}

// bounded returns how many of n tasks of a stage the free licences and the bounds permit.
func (l *licenses) bounded(j *Job, stage, n int) int {
	if n == 0 || !l.limits(j, stage) {
		return n
	}
	return min(n, l.permits(j, stage))
}
