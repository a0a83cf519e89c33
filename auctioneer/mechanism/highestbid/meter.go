package highestbid

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// meter bills running jobs in integers alone, by their numbers in the market. The
// same tariffs, slots and times give the same amounts to the microcredit, in
// whatever pieces time is cut. A change of tariff costs O(log n), and so does a
// change of what a job runs.
type meter struct {
	rule     Rule
	reserve  messages.Credits
	now      messages.Time // up to which all is billed
	tariff   mechanism.Tariff
	level    wide
	key      float64
	accounts *accounts[wide]
	jobs     []metered
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

func newMeter(r Rule, reserve messages.Credits) *meter {
	m := &meter{rule: r, reserve: reserve, accounts: newAccounts[wide](r)}
	m.set(mechanism.Tariff{})
	return m
}

// set makes a tariff hold from now on.
func (m *meter) set(t mechanism.Tariff) {
	length := m.rule.microseconds(t.Length)
	m.tariff, m.level, m.key = t, levelOf(uint64(t.Rate), length), float64(t.Rate)/float64(length)
}

// enter gives a number to a job without slots that owes nothing.
func (m *meter) enter(id int32, rate messages.Credits, length messages.Duration) {
	m.jobs = resize(m.jobs, id)
	m.jobs[id] = metered{rate: rate, length: m.rule.microseconds(length)}
}

// resize returns v, longer where it has no place for a number yet.
func resize[T any](v []T, id int32) []T {
	return append(v, make([]T, max(int(id)+1-len(v), 0))...)
}

// run says that from now on a job has so many slots running; 0: it is suspended,
// or waits.
func (m *meter) run(id int32, slots int) {
	j := &m.jobs[id]
	if slots == j.slots {
		return
	}
	if j.slots > 0 {
		j.past = j.past.plus(by(m.accounts.close(j.open), j.slots))
	}
	if j.slots = slots; slots > 0 {
		j.open = m.accounts.open(float64(j.rate) / float64(j.length))
	}
}

// owed is what a job owes by now.
func (m *meter) owed(id int32) messages.Credits {
	j := &m.jobs[id]
	b := j.past
	if j.slots > 0 {
		b = b.plus(by(m.accounts.read(j.open), j.slots))
	}
	reserve := m.reserve
	if m.rule.Capped {
		reserve = min(reserve, j.rate)
	}
	return charge(b, j.rate, reserve, j.length)
}

// advance bills the time until now at the tariff.
func (m *meter) advance(now messages.Time) error {
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
