package proportional

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// workload draws budgets and weights from the paper's ranges: U[50, 200] and
// U[0.5, 2].
func workload(n, m int, alpha, logs float64) *Problem {
	r := rand.New(rand.NewPCG(1, 2))
	p := &Problem{Alpha: alpha, Classes: m, Log: make([]bool, n)}
	for i := range n {
		p.Log[i] = r.Float64() < logs
		p.Budgets = append(p.Budgets, 50+150*r.Float64())
		for range m {
			p.Weights = append(p.Weights, 0.5+1.5*r.Float64())
		}
	}
	return p
}

func BenchmarkSolve(b *testing.B) {
	for _, n := range []int{128, 10_000, 1_000_000} {
		for _, logs := range []float64{0, 1} {
			b.Run(fmt.Sprintf("%dx4/log=%v", n, logs), func(b *testing.B) {
				p := workload(n, 4, 0.5, logs)
				var s Solver
				rounds := 0
				if _, err := s.Solve(p); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					r, _ := s.Solve(p)
					rounds = r.Rounds
				}
				b.ReportMetric(float64(rounds), "passes")
			})
		}
	}
}

// BenchmarkRound compares one of the paper's rounds with a bare loop that does
// the same arithmetic on the same layout and nothing else.
func BenchmarkRound(b *testing.B) {
	p := workload(1_000_000, 4, 0.5, 0)
	var s Solver
	if _, err := s.Rounds(p, 1); err != nil {
		b.Fatal(err)
	}
	b.Run("round", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.rounds.round(1)
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			bareRound(p, s.auction.subbudgets, s.auction.powers, s.auction.totals)
		}
	})
}

func bareRound(p *Problem, subbudgets, powers, totals []float64) {
	var t [4]float64
	copy(t[:], totals)
	for i, budget := range p.Budgets {
		w, q, b := p.Weights[i*4:i*4+4], powers[i*4:i*4+4], subbudgets[i*4:i*4+4]
		var r, v [4]float64
		sum := 0.0
		for j := range 4 {
			r[j] = t[j] - q[j]
			inverse := 1 / t[j]
			v[j] = w[j] * r[j] * inverse * q[j] * inverse
			sum += v[j]
		}
		scale := budget / sum
		for j := range 4 {
			b[j] = v[j] * scale
			q[j] = math.Sqrt(b[j])
			t[j] = r[j] + q[j]
		}
	}
	copy(totals, t[:])
}

// BenchmarkArrival: one job comes to 100,000, and the fields are brought up to
// date; then another goes.
func BenchmarkArrival(b *testing.B) {
	p := workload(100_001, 4, 0.5, 0.3)
	k := filled(b, p, 100_000)
	row := make([]float64, 4)
	b.Run("arrive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := k.Arrive(p.Budgets[100_000], false, p.Weights[400_000:]); err != nil {
				b.Fatal(err)
			}
			k.Refresh()
			k.Row(100_000, nil, row)
			b.StopTimer()
			k.Depart(100_000)
			k.Refresh()
			b.StartTimer()
		}
	})
	b.Run("full", func(b *testing.B) {
		for b.Loop() {
			k.solve()
		}
	})
}

func filled(t testing.TB, p *Problem, n int) *Market {
	k, err := NewMarket(p.Alpha, p.Classes, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := k.Arrive(p.Budgets[i], p.log(i), p.Weights[i*p.Classes:(i+1)*p.Classes]); err != nil {
			t.Fatal(err)
		}
	}
	k.Refresh()
	return k
}

// BenchmarkLive: one job comes to a live market of 100,000, told as a change
// or found in the whole view, and goes.
func BenchmarkLive(b *testing.B) {
	p := workload(100_001, 4, 0.5, 0.3)
	c, err := New(messages.Market{Name: "main", Classes: []messages.Name{"a", "b", "c", "d"}})
	if err != nil {
		b.Fatal(err)
	}
	v := &mechanism.View{Classes: make([]mechanism.Class, 4)}
	for i, budget := range p.Budgets {
		credits, _ := messages.RoundCredits(budget)
		v.Jobs = append(v.Jobs, &mechanism.Job{Pending: []int{1, 1, 1, 1}, Running: make([]int, 4),
			Bid: &mechanism.Bid{Job: messages.JobID(i + 1), Budget: credits, Form: messages.Linear, Weights: p.Weights[i*4 : i*4+4]}})
	}
	all, last := v.Jobs, v.Jobs[100_000]
	v.Jobs = all[:100_000]
	c.Allocate(v)
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			c.Update(v, []*mechanism.Job{last}, nil)
			c.Update(v, nil, []messages.JobID{last.Job})
		}
	})
	b.Run("allocate", func(b *testing.B) {
		for b.Loop() {
			v.Jobs = all
			c.Allocate(v)
			v.Jobs = all[:100_000]
			c.Allocate(v)
		}
	})
}
