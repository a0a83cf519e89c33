package book

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Tariff is the price of a second on a slot of a class, from now on, in whole microcredits.
type Tariff struct {
	Class messages.Name
	// Price is the price for all jobs, with two exceptions. If OwnBid is true, each job pays its own bid instead. If
	// Length is not 0, Price is the price for a job of this length; other jobs pay in proportion to their lengths,
	// rounded half to even.
	Price  messages.Credits
	OwnBid bool
	Length messages.Duration
	Capped bool // no job pays more than its own bid
	// With Contention, Price is not an amount of credits. It is the part of a slot-second in which other accounts
	// competed for the slot, in millionths.
	Contention bool
}

// The method `of` returns the price of a slot-second for a job.
func (t *Tariff) of(spec *job.JobSpec) messages.Credits {
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

// scaled returns price·own/length, where `own` and `length` are two lengths of jobs. The result is rounded half to
// even, and at most mostPrice.
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

// scales reports whether a job can have a price above its bid. Such a price is multiplied by a factor for the job's
// length, and is limited neither by the job's own bid nor by the cap.
func (t *Tariff) scales() bool { return t.Length > 0 && !t.OwnBid && !t.Capped }

// price returns the price of a slot-second for a stage under the given tariffs. It also reports whether this price can
// be higher than the job's bid.
func price(tariffs []Tariff, spec *job.JobSpec, stage int) (of messages.Credits, scaled bool) {
	for i := range tariffs {
		if t := &tariffs[i]; t.Class == spec.Stages[stage].Class {
			return t.of(spec), t.scales()
		}
	}
	return 0, false
}

// mostPrice is the maximum price. With this bound, a number of slots multiplied by a price fits in 64 bits.
const mostPrice = 1 << 43

// spell is a past period in which the tariffs of a market did not change.
type spell struct {
	Until   messages.Time
	Tariffs []Tariff
}

// change is a spell (a period of constant tariffs) that has ended because the tariffs changed.
type change struct {
	spell
	number uint64 // value of meters.changes for this change
	// A period is the time between two changes of the tariffs. It is unread if the cost of some job does not contain it
	// yet. The list `sums` has one sum for each class: price × time, over the periods from the second unread period to
	// the period that ends with this change. Periods in which the price depends on a job's length, or is capped by its
	// bid, are left out.
	sums   []sum
	uneven int // number of periods that are not in the sums
}

// The field `sums` of a change has a sum for each class: tariff multiplied by time, over all periods up to this change.
// follow computes these sums from the sums of the previous change: it adds the period between the two changes.
func (c *change) follow(before *change) {
	c.sums, c.uneven = slices.Clone(before.sums), before.uneven
	if slices.ContainsFunc(c.Tariffs, func(t Tariff) bool { return t.Capped || t.Length > 0 && !t.OwnBid }) {
		c.uneven++
		return
	}
	micros := uint64(max(0, c.Until-before.Until))
	for i, t := range c.Tariffs {
		if slices.ContainsFunc(c.Tariffs[:i], func(o Tariff) bool { return o.Class == t.Class }) {
			continue // the first tariff of a class applies
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

func (c *change) sum(class messages.Name) (s sum) {
	for i := range c.sums {
		if c.sums[i].class == class {
			return c.sums[i]
		}
	}
	return s
}

// sum is the total price of a slot of a class over several periods.
type sum struct {
	class messages.Name
	cost  Meter  // the part that is the same for all jobs
	own   uint64 // microseconds in which each job pays its own bid
}

// unread has the latest changes of tariffs for each market. They are kept because the costs of some jobs do not contain
// these changes yet.
type unread map[messages.Name][]change

// Meter adds up the slot time that a stage has taken, and what this slot time costs.
type Meter struct {
	Since  messages.Time
	Micros uint64 // slot-microseconds up to Since
	// The cost is Hi·2⁶⁴ + Lo, in 10⁻¹² credits: prices are in microcredits per second, and times in microseconds.
	Hi, Lo uint64
	Scaled bool // for some of the time, the price may have been more than the bid
}

// upTo adds the slot time from m.Since to now to the meter, at the prices of the tariffs.
func (m *Meter) upTo(now messages.Time, going int, tariffs []Tariff, spec *job.JobSpec, stage int) {
	if micros := now - m.Since; going > 0 && micros > 0 {
		m.count(uint64(going)*uint64(micros), tariffs, spec, stage)
	}
	m.Since = now
}

// through adds to the meter the time from Since to the last change in the list `all`. The changes have running sums of
// the tariffs, multiplied by time. If these sums include all periods between the first change and the last one, through
// adds these periods as one difference of two sums, which is faster. The amounts are integers, so the result is the
// same.
func (m *Meter) through(all []change, going int, spec *job.JobSpec, stage int) {
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

func (m *Meter) count(micros uint64, tariffs []Tariff, spec *job.JobSpec, stage int) {
	price, scaled := price(tariffs, spec, stage)
	m.add(micros, price)
	m.Scaled = m.Scaled || scaled
}

func (m *Meter) add(micros uint64, price messages.Credits) {
	hi, lo := bits.Mul64(uint64(price), micros)
	m.plus(&Meter{Micros: micros, Hi: hi, Lo: lo})
}

func (m *Meter) plus(o *Meter) {
	var carry uint64
	m.Lo, carry = bits.Add64(m.Lo, o.Lo, 0)
	m.Hi += o.Hi + carry
	m.Micros += o.Micros
	m.Scaled = m.Scaled || o.Scaled
}

// minus subtracts the meter o, which is a part of the meter m. If the cost of o is larger than the cost of m, the cost
// of m becomes 0. This can happen after the time of a failed attempt was subtracted from m.
func (m *Meter) minus(o *Meter) {
	var less uint64
	m.Micros -= min(o.Micros, m.Micros)
	m.Lo, less = bits.Sub64(m.Lo, o.Lo, 0)
	if m.Hi, less = bits.Sub64(m.Hi, o.Hi, less); less > 0 {
		m.Hi, m.Lo = 0, 0
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

func (m *Meter) bound(price messages.Credits) {
	if hi, lo := bits.Mul64(uint64(price), m.Micros); m.Hi > hi || m.Hi == hi && m.Lo > lo {
		m.Hi, m.Lo = hi, lo
	}
}

// credits returns the meter's cost in microcredits. The cost is rounded half to even, and is at most MaxCredits.
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
