package highestbid

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Meter says what each job owes for the time it ran at the tariffs that held,
// in integers alone. The same tariffs, slots and times give the same amounts to
// the microcredit, in whatever pieces time is cut: a book that commits
// tariffs as they change, and when tasks start and stop, can keep a meter, or
// make one anew from what it committed. A change of tariff costs O(log n), and
// so does a change of what a job runs.
type Meter struct {
	rule     Rule
	reserve  messages.Credits
	now      messages.Time
	tariff   mechanism.Tariff
	level    wide
	key      float64
	accounts *accounts[wide]
	jobs     map[messages.JobID]*metered
}

// metered is a job on a meter.
type metered struct {
	rate   messages.Credits
	length uint64 // microseconds; 1 where the length does not count
	slots  int
	open   int32      // the number of its bill while it has slots
	past   bill[wide] // of times gone by
}

// MostRate is the largest bid for a slot-second: up to it microcredits are
// exact as float64.
const MostRate messages.Credits = 1 << 53

// MostSlots is the largest number of slots that a job may have.
const MostSlots = 1 << 31

// NewMeter returns a meter at tariff zero, the reserve.
func NewMeter(r Rule, reserve messages.Credits) (*Meter, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if reserve < 0 || reserve > MostRate {
		return nil, messages.Errorf(messages.Invalid, "reserve: must be from 0 to %v credits, is %v", MostRate, reserve)
	}
	m := &Meter{rule: r, reserve: reserve, accounts: newAccounts[wide](r), jobs: map[messages.JobID]*metered{}}
	m.adopt(mechanism.Tariff{})
	return m, nil
}

// Set makes a tariff hold from now on.
func (m *Meter) Set(now messages.Time, t mechanism.Tariff) error {
	if t.Rate < 0 || t.Rate > MostRate || t.Length < 0 || t.Basis > mechanism.AtLevel {
		return messages.Errorf(messages.Invalid, "tariff: %+v is out of range: rates are from 0 to %v credits, lengths not negative", t, MostRate)
	}
	if err := m.advance(now); err != nil {
		return err
	}
	m.adopt(t)
	return nil
}

func (m *Meter) adopt(t mechanism.Tariff) {
	length := m.rule.microseconds(t.Length)
	m.tariff, m.level, m.key = t, levelOf(uint64(t.Rate), length), float64(t.Rate)/float64(length)
}

// Run says that from now on a job that bids rate for a slot-second has so many
// slots running; 0: it is suspended, or waits. Rate and length are those of the
// first call.
func (m *Meter) Run(now messages.Time, id messages.JobID, rate messages.Credits, length messages.Duration, slots int) error {
	if rate < 0 || rate > MostRate || slots < 0 || slots > MostSlots || length < 0 {
		return messages.Errorf(messages.Invalid, "job %d: rate %v, length %v, slots %d: must not be negative, the rate at most %v credits", id, rate, length, slots, MostRate)
	}
	if err := m.advance(now); err != nil {
		return err
	}
	j := m.jobs[id]
	if j == nil {
		j = &metered{rate: rate, length: m.rule.microseconds(length)}
		m.jobs[id] = j
	}
	if slots == j.slots {
		return nil
	}
	if j.slots > 0 {
		j.past = j.past.plus(by(m.accounts.close(j.open), j.slots))
	}
	if j.slots = slots; slots > 0 {
		j.open = m.accounts.open(float64(j.rate) / float64(j.length))
	}
	return nil
}

// Owed is what a job owes by now; 0 for a job never run.
func (m *Meter) Owed(now messages.Time, id messages.JobID) (messages.Credits, error) {
	if err := m.advance(now); err != nil {
		return 0, err
	}
	j := m.jobs[id]
	if j == nil {
		return 0, nil
	}
	b := j.past
	if j.slots > 0 {
		b = b.plus(by(m.accounts.read(j.open), j.slots))
	}
	reserve := m.reserve
	if m.rule.Capped {
		reserve = min(reserve, j.rate)
	}
	return charge(b, j.rate, reserve, j.length), nil
}

// Forget stops a job, returns what it owes, and drops its bill.
func (m *Meter) Forget(now messages.Time, id messages.JobID) (messages.Credits, error) {
	owed, err := m.Owed(now, id)
	if j := m.jobs[id]; err == nil && j != nil {
		if j.slots > 0 {
			m.accounts.close(j.open)
		}
		delete(m.jobs, id)
	}
	return owed, err
}

// advance bills the time until now at the tariff.
func (m *Meter) advance(now messages.Time) error {
	if now < m.now {
		return messages.Errorf(messages.Invalid, "time: %v is before %v, up to which the meter has billed", now, m.now)
	}
	if now > m.now {
		span := uint64(now - m.now)
		m.accounts.pass(m.tariff.Basis, m.key, wide{span}, m.level.times(span))
		m.now = now
	}
	return nil
}

// microseconds is the length by which bids are divided, at least 1; 1 where
// the rule does not divide them.
func (r Rule) microseconds(length messages.Duration) uint64 {
	if !r.byLength() {
		return 1
	}
	return uint64(max(length/messages.Duration(time.Microsecond), 1))
}

// by is the bill of so many slots.
func by(b bill[wide], slots int) bill[wide] {
	n := uint64(slots)
	return bill[wide]{b.own.times(n), b.reserve.times(n), b.level.times(n)}
}
