package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// keptSpells is the number of past tariffs of a market that are kept. They are needed for slot time that is counted
// late, because its price is the price at the time when the slot was used.
const keptSpells = 16

// A job's costs are brought up to date after at most mostUnread changes of tariffs. Usually the costs of several
// changes are kept as one sum. Some changes cannot be summed (see the method change). After mostUneven such changes,
// the costs are also brought up to date.
var mostUnread, mostUneven = 1024, 32

// meters adds up what slots cost. Tariffs can change with each decision, while thousands of jobs run. So a change is
// recorded once for all jobs, and not in each job. A job's costs are brought up to date when a command changes the job,
// and for all jobs after mostUnread changes.
type meters struct {
	tariffs map[messages.Name][]Tariff                // present tariffs, by market
	spells  map[messages.Name][]spell                 // past tariffs by market, the latest last
	metered map[messages.Name]map[messages.JobID]bool // by market with tariffs: jobs whose first task has been claimed
	unread  unread
	changes uint64 // 1 + number of changes of tariffs since the book was created
	jobs    *jobs
	clock   *clock
}

// meter adds the slot time of a stage since the last call. Call it before the number of running claims or their price
// changes.
func (m *meters) meter(j *Job, stage int) {
	s := &j.Stages[stage]
	if j.Active() {
		m.read(j, stage, m.clock.now, &s.Meter)
		if m.tariffs[j.Spec.Market] != nil {
			m.enlist(j)
		}
	}
	s.Meter.Since = m.clock.now
}

// enlist adds a started job to the jobs that are metered when tariffs of its market change.
func (m *meters) enlist(j *Job) {
	if j.Started == 0 || j.metered != 0 {
		return
	}
	j.metered = m.changes
	jobs := m.metered[j.Spec.Market]
	if jobs == nil {
		jobs = map[messages.JobID]bool{}
		m.metered[j.Spec.Market] = jobs
	}
	jobs[j.ID] = true
}

// read adds slot time to the meter `sum`: the time of the stage's tasks from the meter's Since until now.
func (m *meters) read(j *Job, stage int, now messages.Time, sum *Meter) {
	going := j.going(stage)
	if j.metered != 0 {
		sum.through(m.unread.of(j), going, j.Spec, stage)
	}
	sum.upTo(now, going, m.tariffs[j.Spec.Market], j.Spec, stage)
}

// slot returns what a stage must pay for a task that has had its slots since the time `from`.
func (m *meters) slot(j *Job, stage int, from messages.Time) (sum Meter) {
	width := uint64(j.Spec.Stages[stage].Slots())
	for _, s := range m.spells[j.Spec.Market] {
		if from < s.Until {
			sum.count(width*uint64(s.Until-from), s.Tariffs, j.Spec, stage)
			from = s.Until
		}
	}
	sum.count(width*uint64(m.clock.now-from), m.tariffs[j.Spec.Market], j.Spec, stage)
	return sum
}

// The book keeps only the latest tariffs of each market. The method `known` returns the earliest time for which the
// book still has the tariffs.
func (m *meters) known(market messages.Name) messages.Time {
	if s := m.spells[market]; len(s) == keptSpells {
		return s[0].Until
	}
	return 0
}

// forgive subtracts an attempt that the site ended, because the job need not pay for it. It subtracts the attempt's
// slot time from the stage's meter, and the same part of the cost: for a tenth of the slot time, a tenth of the cost.
// The meter must be up to date.
func (m *meters) forgive(j *Job, stage int, had messages.Duration) {
	if j.Active() {
		j.Stages[stage].Meter.forgive(had)
	}
}

func (m *meters) setTariffs(market messages.Name, tariffs []Tariff) {
	if m.tariffs[market] == nil {
		m.enlistAll(market)
	}
	before := spell{m.clock.now, m.tariffs[market]}
	kept := m.spells[market]
	m.spells[market] = append(slices.Clone(kept[max(0, len(kept)+1-keptSpells):]), before)
	m.changes++
	unread, next := m.unread[market], change{spell: before, number: m.changes}
	if n := len(unread); n > 0 {
		next.follow(&unread[n-1])
	}
	m.unread[market] = append(unread, next)
	if len(unread)+1 >= mostUnread || next.uneven >= mostUneven {
		m.catchUpAll(market)
	}
	m.tariffs[market] = tariffs
}

func (m *meters) enlistAll(market messages.Name) {
	var began []messages.JobID
	m.jobs.byID.all(false, func(j *Job) bool {
		if j.Spec.Market == market && j.Active() && j.Started != 0 {
			began = append(began, j.ID)
		}
		return true
	})
	for _, id := range began { // jobs are independent here, so the order does not matter
		m.enlist(m.jobs.own(id))
	}
}

func (m *meters) catchUpAll(market messages.Name) {
	for id := range m.metered[market] {
		m.jobs.own(id)
	}
	delete(m.unread, market)
}

// The method `used` returns the cost of a job's slots until now, and the total time of these slots. The cost is rounded
// half to even, to a microcredit. It is at most the job's bid multiplied by the slot time, unless the market scales
// prices by length.
//
// This bound is needed when the site ends an attempt. The attempt's cost is then subtracted, computed as the mean cost
// of the stage. The true cost of the attempt may be higher, so the cost that remains may be too high. See
// TestNoJobPaysMoreThanItBid.
func (m *meters) used(j *Job, now messages.Time) (cost messages.Credits, slotTime messages.Duration) {
	var sum Meter
	for i := range j.Stages {
		stage := j.Stages[i].Meter
		if j.Active() {
			m.read(j, i, max(now, m.clock.now), &stage)
		}
		sum.plus(&stage)
	}
	if bid := j.Spec.Rate; bid > 0 && !sum.Scaled {
		sum.bound(bid)
	}
	return sum.credits(), messages.Duration(sum.Micros) * 1000
}

// keep drops the tariffs of all markets for which the function returns false.
func (m *meters) keep(keep func(market messages.Name) bool) {
	for name := range m.tariffs {
		if !keep(name) {
			m.catchUpAll(name)
			for id := range m.metered[name] {
				m.jobs.own(id).metered = 0
			}
			delete(m.tariffs, name)
			delete(m.spells, name)
			delete(m.metered, name)
		}
	}
}

func (m *meters) stop(j *Job) {
	for i := range j.Stages {
		m.meter(j, i)
	}
	delete(m.metered[j.Spec.Market], j.ID)
	j.metered = 0
}
