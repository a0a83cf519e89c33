package reservation

// ledger has the numbers from which the outcome of a set of schedules is computed. Schedules can be added in any order,
// and two ledgers can be joined.
type ledger struct {
	amounts []int64
	best    int64 // value of the best schedule
	which   int   // the lowest number of a candidate with this value, or −1 if none yet
	start   []int // starts of the best schedule
	// without[i] is the highest value so far of the other bids in a schedule: bid i is not in the schedule, or its own
	// value is not counted. The method settle adds the best schedule for each bid i that is in it.
	without []int64
}

func newLedger(m *money) *ledger {
	return &ledger{amounts: m.amounts, best: -1, which: -1, start: make([]int, len(m.amounts)), without: make([]int64, len(m.amounts))}
}

func (l *ledger) value(start []int) (sum int64) {
	for i, at := range start {
		if at != Lost {
			sum += l.amounts[i]
		}
	}
	return sum
}

// add adds a schedule. This may be the best one of several schedules. It raises without[i] for each bid i that the
// schedule does not serve. If the best of several schedules serves bid i, the others may not serve it, and without[i]
// is then only a lower bound.
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

// settle completes the values without each bid. For a bid that the best schedule serves, the value without it is at
// least that schedule's value less the bid's own value. So no price is below zero.
func (l *ledger) settle() {
	l.best = max(l.best, 0)
	for i, at := range l.start {
		if at != Lost {
			l.without[i] = max(l.without[i], l.best-l.amounts[i])
		}
	}
}
