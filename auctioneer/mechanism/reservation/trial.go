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
	without []int64 // by bid: the value of its lane's schedule without this bid
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

// For each bid i, without[i] is the value of the best known schedule that does not serve bid i. price tries to raise
// this value for each bid i that the best schedule serves. The candidate w divides the nodes into lanes, each with some
// bids. If bid i is removed, only the schedule of the lane with this bid changes, so price computes only this lane
// again.
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

// without[i] is the largest value so far of a schedule without bid i. matters reports whether a candidate of the given
// value has a larger value for one of the bids in `bids` that the best schedule serves.
func matters(value int64, bids, best []int, without []int64) bool {
	for _, i := range bids {
		if best[i] != Lost && value > without[i] {
			return true
		}
	}
	return false
}
