package book

import (
	"math/bits"
	"slices"

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
}

// Meter counts the slot time of a stage, and what it costs.
type Meter struct {
	Since  messages.Time
	Micros uint64 // slot-microseconds up to Since
	// Cost is Hi·2⁶⁴ + Lo, in 10⁻¹² credits: prices are microcredits a second, times
	// are microseconds.
	Hi, Lo uint64
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

// going is the number of a stage's claims that run.
func (s *Stage) going() int { return s.Running - s.Suspended - s.Gathering - s.Leaving }

// meter counts the time since it was last called for a stage. It is to be
// called before what goes, or what that costs, changes.
func (b *Book) meter(j *Job, stage int) {
	s := &j.Stages[stage]
	if j.Active() {
		b.read(j, stage, b.now, &s.Meter)
		if b.tariffs[j.Spec.Market] != nil {
			b.enlist(j)
		}
	}
	s.Meter.Since = b.now
}

// enlist has a job metered when its market's tariffs change.
func (b *Book) enlist(j *Job) {
	jobs := b.metered[j.Spec.Market]
	if jobs == nil {
		jobs = map[messages.JobID]*Job{}
		b.metered[j.Spec.Market] = jobs
	}
	jobs[j.ID] = j
}

// read adds the time from m.Since to now.
func (b *Book) read(j *Job, stage int, now messages.Time, m *Meter) {
	n, micros := j.Stages[stage].going(), now-m.Since
	if n <= 0 || micros <= 0 {
		return
	}
	m.Micros += uint64(n) * uint64(micros)
	t := b.tariff(j.Spec.Market, j.Spec.Stages[stage].Class)
	if t == nil {
		return
	}
	hi, lo := bits.Mul64(uint64(t.of(j.Spec))*uint64(n), uint64(micros))
	var carry uint64
	m.Lo, carry = bits.Add64(m.Lo, lo, 0)
	m.Hi, _ = bits.Add64(m.Hi, hi, carry)
}

func (b *Book) tariff(market, class messages.Name) *Tariff {
	tariffs := b.tariffs[market]
	if i := slices.IndexFunc(tariffs, func(t Tariff) bool { return t.Class == class }); i >= 0 {
		return &tariffs[i]
	}
	return nil
}

// Tariffs are those in force in a market. They must not be changed.
func (b *Book) Tariffs(market messages.Name) []Tariff { return b.tariffs[market] }

// setTariffs makes tariffs hold from now on.
func (b *Book) setTariffs(market messages.Name, tariffs []Tariff) {
	if b.tariffs[market] == nil {
		for _, j := range b.jobs {
			if j.Spec.Market == market && j.Active() && j.Started != 0 {
				b.enlist(j)
			}
		}
	}
	for _, j := range b.metered[market] { // each on its own: the order does not matter
		for i := range j.Stages {
			b.meter(j, i)
		}
	}
	b.tariffs[market] = tariffs
}

// Used returns what the slots a job has had come to by now, at the tariffs that
// held, rounded half to even to the microcredit, and their time in all.
func (b *Book) Used(j *Job, now messages.Time) (cost messages.Credits, slotTime messages.Duration) {
	var sum Meter
	for i := range j.Stages {
		m := j.Stages[i].Meter
		if j.Active() {
			b.read(j, i, max(now, b.now), &m)
		}
		var carry uint64
		sum.Lo, carry = bits.Add64(sum.Lo, m.Lo, 0)
		sum.Hi += m.Hi + carry
		sum.Micros += m.Micros
	}
	return sum.credits(), messages.Duration(sum.Micros) * 1000
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
