package karma

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

const (
	first   = 1_000_000 * One                       // the karma of the first member
	most    = 1 << 50                               // the most karma that an account can have, or owe
	absence = messages.Duration(7 * 24 * 3600e9)    // an account without jobs for this time is no member any more
	quantum = messages.Duration(60 * 1_000_000_000) // default length of a quantum

	microsecond = messages.Duration(1000)
)

// Member is an account that shares the slots. The caller sets Demand, the number of slots that the account's tasks ask
// for, and Held, the number that they have. Share sets Given, the number that the account gets.
type Member struct {
	Name         messages.Name
	Karma        int64
	Demand, Held int
	Given        int
	seen         messages.Time // when the member last had a job
	// The field `asked` is the slot time that the member asked for. The field `had` is the slot time that it held. Both
	// are in slot-microseconds since the last quantum ended, minus the rounding errors of earlier quanta.
	asked, had int64
}

// Ledger has the karma of the accounts that share one class of slots.
type Ledger struct {
	Alpha   float64
	Quantum messages.Duration
	Slots   int
	Members []*Member     // ordered by name
	since   messages.Time // start of the present quantum
	looked  messages.Time // time up to which asked and had are counted, or 0 if nothing was counted yet
	users   []User
}

// NewLedger returns a ledger without members. The argument `of` is the length of a quantum (the unit of time in which
// slots are shared); 0 means the default.
func NewLedger(alpha float64, of messages.Duration) *Ledger {
	return &Ledger{Alpha: alpha, Quantum: cmp.Or(of, quantum)}
}

// Join returns the member with the given name. If there is none, it adds one.
func (l *Ledger) Join(name messages.Name, now messages.Time) *Member {
	at, known := slices.BinarySearchFunc(l.Members, name, func(m *Member, name messages.Name) int { return cmp.Compare(m.Name, name) })
	if !known {
		l.Members = slices.Insert(l.Members, at, &Member{Name: name, Karma: l.mean()})
	}
	l.Members[at].seen = now
	return l.Members[at]
}

// mean returns the mean karma of the members, for a new member.
func (l *Ledger) mean() (sum int64) {
	if len(l.Members) == 0 {
		return first
	}
	for _, m := range l.Members {
		sum += m.Karma / int64(len(l.Members))
	}
	return sum
}

// Pass ends the quanta that are over. In each quantum, members pay and earn karma for two mean numbers: how many slots
// they held, and how many slots they asked for. Pass reports whether a quantum ended. Demand and Held must not have
// changed since the last call.
func (l *Ledger) Pass(now messages.Time) bool {
	l.count(now)
	if l.since == 0 {
		l.since = now
		return false
	}
	times := int64(now.Sub(l.since) / l.Quantum)
	if times <= 0 {
		return false
	}
	l.since = l.since.Add(messages.Duration(times) * l.Quantum)
	span := times * int64(l.Quantum/microsecond)
	free := l.load(func(m *Member) (demand, held, most int) {
		held = average(&m.had, span)
		return average(&m.asked, span), held, held
	})
	Quantum(l.Slots, Guaranteed(l.Slots, len(l.users), l.Alpha), l.users)
	times = min(times, 1<<20)
	for k, m := range l.Members {
		m.Karma = max(-most, min(most, m.Karma+times*max(-1<<40, min(1<<40, free+l.users[k].Karma-m.Karma))))
	}
	l.Members = slices.DeleteFunc(l.Members, func(m *Member) bool {
		return m.Demand == 0 && m.Held == 0 && now.Sub(m.seen) > absence
	})
	return true
}

// Each member holds some slots and asks for some. Share computes from these numbers how many slots each member gets
// now, and stores it in Given.
func (l *Ledger) Share() {
	l.load(func(m *Member) (demand, held, most int) { return m.Demand, m.Held, max(m.Demand, m.Held) })
	Quantum(l.Slots, Guaranteed(l.Slots, len(l.users), l.Alpha), l.users)
	for k, m := range l.Members {
		m.Given = l.users[k].Given
	}
}

func (l *Ledger) count(now messages.Time) {
	const longest = 1 << 42 // 50 days, so that the product with a million slots does not overflow
	passed := int64(now - l.looked)
	if l.looked == 0 || passed < 0 {
		passed = 0
	}
	l.looked = max(l.looked, now)
	for _, m := range l.Members {
		m.asked += min(passed, longest) * int64(max(m.Demand, m.Held))
		m.had += min(passed, longest) * int64(m.Held)
	}
}

// average divides `sum`, a sum of slots over time, by the time `over`. It returns the mean number of slots, rounded to
// a whole number. The rounding error stays in `sum`, so that the next quantum corrects it.
func average(sum *int64, over int64) int {
	slots := max(0, (*sum+over/2)/over)
	*sum -= slots * over
	return int(slots)
}

// load fills l.users, the users of the next quantum, with one user for each member. It returns how much karma each user
// gets for free in this quantum.
func (l *Ledger) load(of func(m *Member) (demand, held, most int)) int64 {
	l.users = l.users[:0]
	for _, m := range l.Members {
		demand, held, most := of(m)
		l.users = append(l.users, User{Karma: m.Karma, Demand: max(demand, held), Least: held, Most: most})
	}
	n := len(l.users)
	return Free(l.Slots, n, Guaranteed(l.Slots, n, l.Alpha))
}
