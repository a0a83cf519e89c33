package book

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// licenses are the licences of the site. A task has its licences from when it gets its slot until
// its claim ends, also while it is suspended: its process may keep what it opened.
type licenses struct {
	byName map[messages.Name]*messages.LicenseStatus
	jobs   *jobs
	watch  *watch
}

// set replaces the totals. A licence that tasks still have stays, with a total of 0.
func (l *licenses) set(totals messages.Licenses) {
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

// status returns the entry of a licence, to be changed.
func (l *licenses) status(name messages.Name) *messages.LicenseStatus {
	s := l.byName[name]
	if s == nil {
		s = &messages.LicenseStatus{Name: name}
		l.byName[name] = s
	}
	return s
}

// count adds the licences of a task to the licences in use; with by = -1 it takes them away.
func (l *licenses) count(r messages.TaskRef, by int) {
	j := l.jobs.own(r.Job)
	if j == nil {
		return
	}
	for _, of := range licensesOf(&j.Spec.Stages[r.Stage], r.Index) {
		s := l.status(of.Name)
		if s.Used += by * of.Count; s.Used == 0 && s.Total == 0 {
			delete(l.byName, of.Name)
		}
		l.watch.changed.Licenses = true
	}
}

// licensesOf returns the licences that one task of a stage has. The first task of an allocation has
// the licences of all its tasks, because it runs the program.
func licensesOf(of *messages.Stage, index uint32) messages.Licenses {
	if of.Allocation && index > 0 {
		return nil
	}
	return of.Licenses
}

// licensed reports whether tasks of the job have licences.
func (j *Job) licensed() bool {
	return slices.ContainsFunc(j.Spec.Stages, func(s messages.Stage) bool { return len(s.Licenses) > 0 })
}

// Licensed reports whether the job waits for tasks that have licences, or has such tasks.
func (j *Job) Licensed() bool { return j.Active() && j.licensed() }

// free returns how many licences of a name are free.
func (l *licenses) free(name messages.Name) int {
	if s := l.byName[name]; s != nil {
		return max(0, s.Total-s.Used)
	}
	return 0
}

// permits returns how many more tasks of a stage the free licences are enough for.
func (l *licenses) permits(j *Job, stage int) int {
	of, n := &j.Spec.Stages[stage], math.MaxInt
	for _, x := range of.Licenses {
		n = min(n, l.free(x.Name)/x.Count)
	}
	if tasks := j.Stages[stage].Tasks; of.Allocation && (n > 0 || len(tasks) > 0 && tasks[0].Phase == Claimed) {
		return math.MaxInt
	}
	return n
}

// claimable returns the number of tasks of a stage that could be claimed now, and have their licences.
func (l *licenses) claimable(j *Job, stage int) int {
	n := j.Claimable(stage)
	if n == 0 || len(j.Spec.Stages[stage].Licenses) == 0 {
		return n
	}
	return min(n, l.permits(j, stage))
}
