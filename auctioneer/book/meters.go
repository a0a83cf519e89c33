package book

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"

	"github.com/candor-grid/candor/messages"
)

// Tariff is what a second on a slot costs each job of a market's class from now
// on. It is whole microcredits a second for each job.
type Tariff struct {
	Class messages.Name
	// Price is what everybody pays, but where OwnBid says that each pays the own
	// bid, or Length that the price is of a job of that length and each pays in
	// proportion to the own, rounded half to even.
	Price  messages.Credits
	OwnBid bool
	Length messages.Duration
	Capped bool // nobody pays above the own bid
	// Contention: Price is no price, but the part of a slot-second that is contended,
	// in millionths.
	Contention bool
}

// spell is a time in which other tariffs of a market held.
type spell struct {
	Until   messages.Time
	Tariffs []Tariff
}

// keptSpells is how many spells of a market are kept: the slot time of a moment ago has
// the price of then.
const keptSpells = 16

// Meter counts the slot time of a stage and its cost.
type Meter struct {
	Since  messages.Time
	Micros uint64 // slot-microseconds up to Since
	// Cost is Hi·2⁶⁴ + Lo, in 10⁻¹² credits: prices are microcredits a second, times
	// are microseconds.
	Hi, Lo uint64
}

// A job may be behind mostUnread changes of tariffs, of which mostUneven are not in the sums.
var mostUnread, mostUneven = 1024, 32

// meters count what slots cost at the tariffs in force. Tariffs can change with each decision
// while thousands of jobs run, so a change is noted once, and each job is metered for it when a
// command is to change the job, or after mostUnread changes.
type meters struct {
	tariffs map[messages.Name][]Tariff                // by market
	spells  map[messages.Name][]spell                 // by market, the latest last
	metered map[messages.Name]map[messages.JobID]bool // by market with tariffs: jobs that have had a task claimed
	unread  unread
	changes uint64 // how often tariffs have changed since the book was made, plus 1
	jobs    *jobs
	clock   *clock
}

// unread is, by market, the last changes of tariffs, for which jobs may not be metered yet.
type unread map[messages.Name][]change

// change is the end of a spell.
type change struct {
	spell
	number uint64 // as of meters.changes
	// What a slot of each class had in the unread spells up to this one, but for the first. Spells
	// whose price depends on more of a job than its bid are not in the sums.
	sums   []sum
	uneven int // spells that are not in the sums
}

// sum is the price of a slot in some spells.
type sum struct {
	class messages.Name
	cost  Meter  // what is the same for all jobs
	own   uint64 // microseconds at the own bid
}

// follow adds a spell to the sums of the change before.
func (c *change) follow(before *change) {
	c.sums, c.uneven = slices.Clone(before.sums), before.uneven
	if slices.ContainsFunc(c.Tariffs, func(t Tariff) bool { return t.Capped || t.Length > 0 && !t.OwnBid }) {
		c.uneven++
		return
	}
	micros := uint64(max(0, c.Until-before.Until))
	for i, t := range c.Tariffs {
		if slices.ContainsFunc(c.Tariffs[:i], func(o Tariff) bool { return o.Class == t.Class }) {
			continue // the first one holds
		}
		at := slices.IndexFunc(c.sums, func(s sum) bool { return s.class == t.Class })
		if at < 0 {
			at, c.sums = len(c.sums), append(c.sums, sum{class: t.Class})
		}
		if t.OwnBid {
			c.sums[at].own += micros
		} else {
			c.sums[at].cost.add(micros, t.of(nil))
		}
	}
}

// sum is the sum of a class.
func (c *change) sum(class messages.Name) (s sum) {
	for i := range c.sums {
		if c.sums[i].class == class {
			return c.sums[i]
		}
	}
	return s
}

// mostPrice bounds a price, so that slots times price stays within 64 bits.
const mostPrice = 1 << 43

// of is the price of a slot-second to a job.
func (t *Tariff) of(spec *messages.JobSpec) messages.Credits {
	price := t.Price
	switch {
	case t.OwnBid:
		price = spec.Rate
	case t.Length > 0:
		price = scaled(price, spec.Length, t.Length)
	}
	if t.Capped {
		price = min(price, spec.Rate)
	}
	return min(max(price, 0), mostPrice)
}

// scaled is price·own/length, rounded half to even, at most mostPrice.
func scaled(price messages.Credits, own, length messages.Duration) messages.Credits {
	hi, lo := bits.Mul64(uint64(max(price, 0)), uint64(max(own, 0)))
	if hi >= uint64(length) {
		return mostPrice
	}
	quotient, rest := bits.Div64(hi, lo, uint64(length))
	if left := uint64(length) - rest; rest > left || rest == left && quotient%2 == 1 {
		quotient++
	}
	return messages.Credits(min(quotient, mostPrice))
}

// going is how many slots the claims of a stage that run have.
func (j *Job) going(stage int) int {
	s := &j.Stages[stage]
	return (s.OnSlots() - s.Gathering) * j.Spec.Stages[stage].Slots()
}

// meter counts the slot time of a stage since the last call. It must be called before
// the number of running claims or their price changes.
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

// enlist has a job that has started metered when its market's tariffs change.
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

// catchUp meters a job for the changes of tariffs that it is behind. It must be called before
// anything of the job changes.
func (u unread) catchUp(j *Job) {
	if j.metered == 0 {
		return
	}
	behind := u.of(j)
	if len(behind) == 0 {
		return
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Meter.through(behind, j.going(i), j.Spec, i)
	}
	j.metered = behind[len(behind)-1].number
}

// of is the changes that a job is behind.
func (u unread) of(j *Job) []change {
	all := u[j.Spec.Market]
	return all[sort.Search(len(all), func(i int) bool { return all[i].number > j.metered }):]
}

// read adds the time from sum.Since to now.
func (m *meters) read(j *Job, stage int, now messages.Time, sum *Meter) {
	going := j.going(stage)
	if j.metered != 0 {
		sum.through(m.unread.of(j), going, j.Spec, stage)
	}
	sum.upTo(now, going, m.tariffs[j.Spec.Market], j.Spec, stage)
}

// upTo adds the time from Since to an instant, at some tariffs.
func (m *Meter) upTo(now messages.Time, going int, tariffs []Tariff, spec *messages.JobSpec, stage int) {
	if micros := now - m.Since; going > 0 && micros > 0 {
		m.add(uint64(going)*uint64(micros), price(tariffs, spec, stage))
	}
	m.Since = now
}

// through adds the time from Since to the last of some changes of tariffs. All but the first
// spell are added at once where their sums have them: integers come to the same.
func (m *Meter) through(all []change, going int, spec *messages.JobSpec, stage int) {
	if len(all) == 0 {
		return
	}
	first, last := &all[0], &all[len(all)-1]
	m.upTo(first.Until, going, first.Tariffs, spec, stage)
	if going > 0 && last.uneven > first.uneven {
		for i := range all[1:] {
			m.upTo(all[i+1].Until, going, all[i+1].Tariffs, spec, stage)
		}
		return
	}
	if slots, micros := uint64(max(going, 0)), uint64(max(0, last.Until-first.Until)); slots > 0 && micros > 0 {
		from, to := first.sum(spec.Stages[stage].Class), last.sum(spec.Stages[stage].Class)
		own := to.own - from.own
		to.cost.minus(&from.cost)
		hi, lo := bits.Mul64(to.cost.Lo, slots)
		m.plus(&Meter{Micros: slots * (micros - own), Hi: hi + to.cost.Hi*slots, Lo: lo})
		m.add(slots*own, (&Tariff{OwnBid: true}).of(spec))
	}
	m.Since = last.Until
}

// add counts slot-microseconds at a price.
func (m *Meter) add(micros uint64, price messages.Credits) {
	hi, lo := bits.Mul64(uint64(price), micros)
	m.plus(&Meter{Micros: micros, Hi: hi, Lo: lo})
}

func (m *Meter) plus(o *Meter) {
	var carry uint64
	m.Lo, carry = bits.Add64(m.Lo, o.Lo, 0)
	m.Hi += o.Hi + carry
	m.Micros += o.Micros
}

// minus takes off what was counted before. The cost can be less than that of the time
// taken off, where an attempt was forgiven: it becomes 0 then.
func (m *Meter) minus(o *Meter) {
	var less uint64
	m.Micros -= min(o.Micros, m.Micros)
	m.Lo, less = bits.Sub64(m.Lo, o.Lo, 0)
	if m.Hi, less = bits.Sub64(m.Hi, o.Hi, less); less > 0 {
		m.Hi, m.Lo = 0, 0
	}
}

// price is what a slot-second costs a stage at some tariffs.
func price(tariffs []Tariff, spec *messages.JobSpec, stage int) messages.Credits {
	for i := range tariffs {
		if t := &tariffs[i]; t.Class == spec.Stages[stage].Class {
			return t.of(spec)
		}
	}
	return 0
}

// slot is what a stage pays for the slots of one task from an instant until now.
func (m *meters) slot(j *Job, stage int, from messages.Time) (sum Meter) {
	width := uint64(j.Spec.Stages[stage].Slots())
	for _, s := range m.spells[j.Spec.Market] {
		if from < s.Until {
			sum.add(width*uint64(s.Until-from), price(s.Tariffs, j.Spec, stage))
			from = s.Until
		}
	}
	sum.add(width*uint64(m.clock.now-from), price(m.tariffs[j.Spec.Market], j.Spec, stage))
	return sum
}

// known is since when it is known which tariffs a market had.
func (m *meters) known(market messages.Name) messages.Time {
	if s := m.spells[market]; len(s) == keptSpells {
		return s[0].Until
	}
	return 0
}

// Tariffs are the present tariffs of a market. The caller must not change them.
func (m *meters) Tariffs(market messages.Name) []Tariff { return m.tariffs[market] }

// forgive takes the slot time of an attempt that the site broke off the meter of its
// stage, with the part of the cost that it is of the time. The meter is up to date.
func (m *meters) forgive(j *Job, stage int, had messages.Duration) {
	if j.Active() {
		j.Stages[stage].Meter.forgive(had)
	}
}

func (sum *Meter) forgive(had messages.Duration) {
	micros := min(uint64(max(had, 0))/1000, sum.Micros)
	if micros == 0 {
		return
	}
	left := sum.Micros - micros
	cost := new(big.Int).SetUint64(sum.Hi)
	cost.Lsh(cost, 64).Add(cost, new(big.Int).SetUint64(sum.Lo))
	cost.Mul(cost, new(big.Int).SetUint64(left)).Div(cost, new(big.Int).SetUint64(sum.Micros))
	sum.Micros, sum.Lo = left, new(big.Int).And(cost, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	sum.Hi = cost.Rsh(cost, 64).Uint64()
}

// setTariffs makes tariffs hold from now on.
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

// enlistAll has all jobs of a market metered that have started.
func (m *meters) enlistAll(market messages.Name) {
	var began []messages.JobID
	m.jobs.byID.all(false, func(j *Job) bool {
		if j.Spec.Market == market && j.Active() && j.Started != 0 {
			began = append(began, j.ID)
		}
		return true
	})
	for _, id := range began { // each on its own: the order does not matter
		m.enlist(m.jobs.own(id))
	}
}

// catchUpAll meters all jobs of a market for all changes of its tariffs.
func (m *meters) catchUpAll(market messages.Name) {
	for id := range m.metered[market] {
		m.jobs.own(id)
	}
	delete(m.unread, market)
}

// Used returns what the slots a job has had come to by now, at the tariffs that
// held, rounded half to even to the microcredit, and their time in all.
func (m *meters) Used(j *Job, now messages.Time) (cost messages.Credits, slotTime messages.Duration) {
	var sum Meter
	for i := range j.Stages {
		stage := j.Stages[i].Meter
		if j.Active() {
			m.read(j, i, max(now, m.clock.now), &stage)
		}
		sum.plus(&stage)
	}
	return sum.credits(), messages.Duration(sum.Micros) * 1000
}

// keep drops the tariffs of the markets for which keep is false.
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

// stop ends the metering of a job that has ended.
func (m *meters) stop(j *Job) {
	for i := range j.Stages {
		m.meter(j, i)
	}
	delete(m.metered[j.Spec.Market], j.ID)
	j.metered = 0
}

// credits is the cost, rounded half to even, at most MaxCredits.
func (m *Meter) credits() messages.Credits {
	const unit = 1_000_000
	if m.Hi >= unit {
		return messages.MaxCredits
	}
	quotient, rest := bits.Div64(m.Hi, m.Lo, unit)
	if rest > unit/2 || rest == unit/2 && quotient%2 == 1 {
		quotient++
	}
	return messages.Credits(min(quotient, uint64(messages.MaxCredits)))
}
