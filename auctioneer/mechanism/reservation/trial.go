package reservation

// trial tries one candidate after another, and reuses its memory for each of them.
type trial struct {
	problem *Problem
	plan    *plan
	money   *money
	placer  *placer
	ledger  *ledger
	sorter  sorter
	cut     division
	lane    lane
	without []int64 // by bid: value without it, in the lane that serves it
}

// try makes the schedule of a candidate, adds it to the trial's ledger, and returns its value.
func (t *trial) try(c int) (value int64) {
	start := t.placer.start
	for i := range start {
		start[i] = Lost
	}
	if t.plan.isOrder(c) {
		t.placer.place(t.plan.order(c, &t.sorter))
		value = t.ledger.value(start)
	} else {
		value = t.lanes(c, start)
	}
	t.ledger.add(c, value, start)
	return value
}

// lanes finds the best schedule of the candidate c, which divides the machine into lanes. Each lane gets a schedule of
// its own.
func (t *trial) lanes(c int, start []int) (value int64) {
	t.plan.divide(c, &t.cut)
	for _, bids := range t.cut.bids {
		t.lane.gather(t.problem, t.money, bids)
		value += t.lane.suffix()
		t.lane.trace(nil)
		for _, x := range t.lane.items {
			start[x.bid] = x.start
		}
	}
	return value
}

// For each bid i, without[i] is the value of the best known schedule without bid i. price tries to find better ones,
// for each bid i that the best schedule serves. It uses the division into lanes of the present candidate. Without bid
// i, only the lane that has this bid changes.
func (t *trial) price(w worth, best []int, without []int64) {
	t.plan.divide(w.candidate, &t.cut)
	for _, bids := range t.cut.bids {
		if !matters(w.value, bids, best, without) {
			continue
		}
		t.lane.gather(t.problem, t.money, bids)
		value := t.lane.suffix()
		t.lane.trace(t.without)
		for _, x := range t.lane.items {
			if x.start != Lost && best[x.bid] != Lost {
				without[x.bid] = max(without[x.bid], w.value-value+t.without[x.bid])
			}
		}
	}
}

// matters reports whether a candidate with the given value can raise `without[i]` for any i in `bids`.
func matters(value int64, bids, best []int, without []int64) bool {
	for _, i := range bids {
		if best[i] != Lost && value > without[i] {
			return true
		}
	}
	return false
}
