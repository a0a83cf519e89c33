package reservation

// ledger keeps of a range of schedules what the outcome depends on. Schedules
// can be added in any order, and ledgers be added together.
type ledger struct {
	amounts []int64
	best    int64 // value of the best schedule
	which   int   // the lowest number of a candidate that has it; −1: none yet
	start   []int // of that schedule
	// without[i] is the value of the best schedule so far, bid i not counted:
	// one that does not meet it, or after settle any.
	without []int64
}

func newLedger(m *money) *ledger {
	return &ledger{amounts: m.amounts, best: -1, which: -1, start: make([]int, len(m.amounts)), without: make([]int64, len(m.amounts))}
}

// value is what a schedule is worth.
func (l *ledger) value(start []int) (sum int64) {
	for i, at := range start {
		if at != Lost {
			sum += l.amounts[i]
		}
	}
	return sum
}

// add adds a schedule, or several of which it is the best: without is exact for
// the bids that it does not meet, and a lower bound for the others.
func (l *ledger) add(which int, value int64, start []int) {
	if value > l.best || value == l.best && which < l.which {
		l.best, l.which = value, which
		copy(l.start, start)
	}
	for i, at := range start {
		if at == Lost && value > l.without[i] {
			l.without[i] = value
		}
	}
}

// join adds all schedules of another ledger.
func (l *ledger) join(other *ledger) {
	if other.which < 0 {
		return
	}
	if l.which < 0 || other.best > l.best || other.best == l.best && other.which < l.which {
		l.best, l.which = other.best, other.which
		copy(l.start, other.start)
	}
	for i, x := range other.without {
		l.without[i] = max(l.without[i], x)
	}
}

// settle counts the best schedule in with each bid that it meets not counted:
// so no price is below zero.
func (l *ledger) settle() {
	l.best = max(l.best, 0)
	for i, at := range l.start {
		if at != Lost {
			l.without[i] = max(l.without[i], l.best-l.amounts[i])
		}
	}
}
