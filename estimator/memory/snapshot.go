package memory

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/estimator/density"
	"github.com/candor-grid/candor/estimator/runtime"
	"github.com/candor-grid/candor/estimator/utility"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Record is a part of the snapshot of an estimator's [Memory]. Exactly one field is set.
type Record struct {
	Jobs  *JobBlock
	Kind  *KindRecord
	Times *TimesRecord
	Class *ClassRecord
}

// KindRecord is a kind of job and the regression on its runs.
type KindRecord struct {
	Account    messages.Name
	Name       string
	Market     messages.Name
	Classes    string
	Regression utility.Snapshot
}

// TimesRecord is one record of what the estimator has learned about times. Sort says what the record is about: the run
// times of tasks, the waits, or the numbers of slots.
type TimesRecord struct {
	Sort   uint8
	Record runtime.Record
}

// ClassRecord is what was learned about a job profile class.
type ClassRecord struct {
	Name    messages.Name
	Outside uint64
	Density density.Snapshot
}

func (p *paces) all() []*runtime.Predictor {
	return []*runtime.Predictor{p.tasks, p.waits, p.slots}
}

// Snapshot returns a copy of the memory, as records.
func (m *Memory) Snapshot() []Record {
	var out []Record
	for _, site := range slices.Sorted(maps.Keys(m.seen)) {
		for _, b := range m.seen[site].blocksOf(site) {
			out = append(out, Record{Jobs: &b})
		}
	}
	m.kinds.OldestFirst(func(k kind, w *worth) {
		if w.regression != nil {
			out = append(out, Record{Kind: &KindRecord{k.account, k.name, k.market, k.classes, *w.regression.Snapshot()}})
		}
	})
	for i, p := range m.paces.all() {
		p.Snapshot(func(r *runtime.Record) { out = append(out, Record{Times: &TimesRecord{uint8(i), *r}}) })
	}
	for _, c := range m.classes {
		out = append(out, Record{Class: &ClassRecord{c.profile.Name, c.outside, *c.density.Snapshot()}})
	}
	return out
}

// Restore returns a memory that continues from a snapshot. A snapshot that is damaged, or was made for other job
// profile classes, is an error.
func Restore(profiles []job.Profile, records []Record) (*Memory, error) {
	m, err := New(profiles)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := m.restore(&records[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Memory) restore(r *Record) error {
	switch {
	case r.Jobs != nil:
		m.restoreJobs(r.Jobs)
		return nil
	case r.Kind != nil:
		return m.restoreKind(r.Kind)
	case r.Times != nil && int(r.Times.Sort) < len(m.paces.all()):
		return m.paces.all()[r.Times.Sort].Restore(&r.Times.Record)
	case r.Class != nil:
		return m.restoreClass(r.Class)
	}
	return messages.Errorf(messages.Invalid, "snapshot: has a record of an unknown kind")
}

func (m *Memory) restoreJobs(b *JobBlock) {
	for k, word := range b.Words {
		for i := range 64 {
			if word&(1<<i) != 0 {
				m.mark(b.Site, messages.JobID(b.Number<<12|uint64(k)<<6|uint64(i)))
			}
		}
	}
}

func (m *Memory) restoreKind(r *KindRecord) error {
	s := r.Regression
	s.HalfLife = halfLife
	g, err := utility.Restore(&s)
	if err != nil {
		return err
	}
	m.kinds.Touch(kind{r.Account, r.Name, r.Market, r.Classes}, func() *worth { return &worth{g} })
	return nil
}

func (m *Memory) restoreClass(r *ClassRecord) error {
	c, err := m.class(r.Name)
	if err != nil {
		return err
	}
	if c.density, err = density.RestoreClass(densityConfig(&c.profile), &r.Density); err != nil {
		return err
	}
	c.outside, c.told = r.Outside, nil
	return nil
}

// mark adds a job to the jobs from which the memory has learned. It returns false if the job was already among them.
func (m *Memory) mark(site messages.Name, job messages.JobID) bool {
	jobs := m.seen[site]
	if jobs == nil {
		jobs = &jobSet{}
		m.seen[site] = jobs
	}
	if jobs.has(job) {
		return false
	}
	jobs.add(job)
	m.observed++
	return true
}
