package reservation

import (
	"math/rand/v2"
)

// thesis draws bids with the distributions of chapters 5 and 7 of the thesis: uniform lengths, deadlines, values and
// widths.
func thesis(seed uint64, bids, nodes, horizon, longest int) *Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &Problem{Nodes: nodes, Horizon: horizon}
	for range bids {
		b := Bid{Length: 1 + r.IntN(longest), Deadline: 1 + r.IntN(horizon), Value: float64(1 + r.IntN(1000))}
		if nodes > 0 {
			b.Width = 1 + r.IntN(nodes)
		}
		p.Bids = append(p.Bids, b)
	}
	return p
}

// instance is a kind of problem. If bySize is true, the value of a bid is its size multiplied by a random price.
// Otherwise the values of bids are uniform.
type instance struct {
	bids, nodes, horizon, longest int
	bySize                        bool
}

func (c instance) problem(seed uint64) *Problem {
	p := thesis(seed, c.bids, c.nodes, c.horizon, c.longest)
	if c.bySize {
		r := rand.New(rand.NewPCG(seed, 8))
		for i := range p.Bids {
			b := &p.Bids[i]
			b.Value = float64(int(float64(b.Length*b.Width) * (0.1 + r.ExpFloat64()) * 10))
		}
	}
	return p
}

// randomOrders tries the given number of random orders, and returns the value of the best schedule.
func randomOrders(p *Problem, orders int) float64 {
	r := rand.New(rand.NewPCG(1, 1))
	a, m := newPlacer(p), newMoney(p.Bids)
	l := newLedger(m)
	for k := range orders {
		a.place(r.Perm(len(p.Bids)))
		l.add(k, l.value(a.start), a.start)
	}
	return m.float(l.best)
}
