package reservation

// ledger collects what is needed to compute the outcome of a set of schedules: the best schedule and the prices.
// Schedules can be added in any order, and two ledgers can be joined into one.
type ledger struct {
	amounts []int64
	best    int64 // value of the best schedule
	which   int   // the lowest number of a candidate with this value, or −1 if none yet
	start   []int // starts of the best schedule
	// without[i] is the largest value so far of a schedule without bid i. It is either the value of a schedule that
	// does not serve bid i, or the value of the other bids in a schedule that serves bid i. The method settle adds the
	// second kind: the best schedule for each bid i in it.
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

// add enters a schedule and its value. If the value is the largest so far, the schedule becomes the best one. The
// element i of l.without is the largest value of an added schedule that does not serve bid i. It is only a lower bound
// of the best value without bid i, because the best such schedule may not have been added.
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

// join merges another ledger into this one, as if all schedules of the other ledger had been added here.
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

// settle completes l.without: for each bid, the value of the best schedule without this bid. If the best schedule
// serves the bid, this value is at least the best schedule's value minus the bid's own value. So no price is below
// zero.
func (l *ledger) settle() {
	l.best = max(l.best, 0)
	for i, at := range l.start {
		if at != Lost {
			l.without[i] = max(l.without[i], l.best-l.amounts[i])
		}
	}
}
