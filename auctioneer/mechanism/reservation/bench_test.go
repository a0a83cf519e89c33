package reservation

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// thesis draws bids as chapter 5 and 7 of the thesis do: uniform lengths,
// deadlines, values and widths.
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

// BenchmarkSolve: the schedule and all payments on a whole machine.
func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct{ bids, horizon int }{{2000, 1440}, {10_000, 10_080}} {
		b.Run(fmt.Sprintf("%d bids, %d granules", c.bids, c.horizon), func(b *testing.B) {
			p := thesis(1, c.bids, 0, c.horizon, 100)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Solve(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOrders: what 10,000 random orders give, with payments, as a search
// by the thesis' method has it.
func BenchmarkOrders(b *testing.B) {
	for _, c := range shapes {
		b.Run(c.String(), func(b *testing.B) {
			p := c.problem(1)
			value := 0.0
			for b.Loop() {
				value = randomOrders(p, 10_000)
			}
			b.ReportMetric(value, "value")
		})
	}
}

// BenchmarkFind: the search, with as many candidates and with a tenth of them.
func BenchmarkFind(b *testing.B) {
	for _, candidates := range []int{10_000, 1000} {
		for _, c := range shapes {
			b.Run(fmt.Sprintf("%d/%v", candidates, c), func(b *testing.B) {
				p := c.problem(1)
				value := 0.0
				for b.Loop() {
					r, err := Find(p, Search{Candidates: candidates, Seed: 1})
					if err != nil {
						b.Fatal(err)
					}
					value = r.Value
				}
				b.ReportMetric(value, "value")
			})
		}
	}
}

// kind of instance: uniform values, or values by size times a lognormal price.
type instance struct {
	bids, nodes, horizon, longest int
	bySize                        bool
}

var shapes = []instance{{2000, 64, 96, 16, false}, {2000, 64, 96, 16, true}, {2000, 128, 1440, 100, false}, {2000, 128, 1440, 100, true}}

func (c instance) String() string {
	values := "uniform"
	if c.bySize {
		values = "by size"
	}
	return fmt.Sprintf("%d bids, %d nodes, %d granules, %s", c.bids, c.nodes, c.horizon, values)
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

// randomOrders is the value of the best of so many random orders.
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
