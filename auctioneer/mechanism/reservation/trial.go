package reservation

// trial is a worker's memory.
type trial struct {
	plan   *plan
	money  *money
	placer *placer
	ledger *ledger
	sorter sorter
	cut    division
	lane   lane
}

func newTrial(p *plan, problem *Problem, m *money) *trial {
	return &trial{plan: p, money: m, placer: newPlacer(problem), ledger: newLedger(m)}
}

// try adds a candidate to the ledger and returns what it is worth.
func (t *trial) try(c int) (value int64) {
	start := t.placer.start
	for i := range start {
		start[i] = Lost
	}
	if t.plan.isOrder(c) {
		t.placer.place(t.plan.order(c, &t.sorter))
		value = t.ledger.value(start)
	} else {
		t.plan.divide(c, &t.cut)
		for _, bids := range t.cut.bids {
			t.lane.gather(t.placer.problem, t.money, bids)
			value += t.lane.suffix()
			t.lane.trace(nil)
			for _, x := range t.lane.items {
				start[x.bid] = x.start
			}
		}
	}
	t.ledger.add(c, value, start)
	return value
}
