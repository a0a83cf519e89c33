package reservation

import (
	"slices"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// Orders makes a schedule for each of the given orders of the bids. The orders must not depend on the values of bids.
// It returns the schedules, and the index of the best one: the first with the highest value. It also returns the
// outcome of the best schedule. The prices of the outcome are computed from all these schedules.
func Orders(p *Problem, orders [][]int) (placed []Placement, best int, o *Outcome, err error) {
	if !p.wide() {
		return nil, 0, nil, messages.Errorf(messages.Invalid, "N: is missing: give the number of nodes, because the field orders is only for bids of any width")
	}
	if err := p.Check(); err != nil {
		return nil, 0, nil, err
	}
	if len(orders) == 0 {
		return nil, 0, nil, messages.Errorf(messages.Invalid, "orders: give at least one")
	}
	a, m := newPlacer(p), newMoney(p.Bids)
	for k, order := range orders {
		if err := a.check("orders["+strconv.Itoa(k)+"]", order); err != nil {
			return nil, 0, nil, err
		}
	}
	l := newLedger(m)
	for k, order := range orders {
		a.place(order)
		value := l.value(a.start)
		l.add(k, value, a.start)
		placed = append(placed, Placement{Start: slices.Clone(a.start), Accepted: met(a.start), Value: m.float(value)})
	}
	l.settle()
	return placed, l.which, newOutcome(m, l.start, l.best, l.without), nil
}
