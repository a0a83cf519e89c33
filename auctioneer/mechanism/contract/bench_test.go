package contract

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// BenchmarkSolve finds the matching and all prices. Beside it, `random` takes
// scipy's linear_sum_assignment 0.3 ms, 57 ms and 2.1 s without prices, and the
// sigmoids 1.1 ms, 454 ms and 43.6 s.
func BenchmarkSolve(b *testing.B) {
	for _, m := range []int{100, 1000, 4000} {
		for _, kind := range []string{"random", "near", "spread", "late", "grid"} {
			b.Run(fmt.Sprintf("M=%d/%s", m, kind), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				w := uniform(r, m, 100)
				if kind != "random" {
					w = sigmoids(r, m, kind)
				}
				var s Solver
				if _, err := s.Solve(m, w); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					s.Solve(m, w)
				}
			})
		}
	}
}

// BenchmarkMarket: a quote of 100 replicas, and an order, among 1,000 jobs that
// have contracts.
func BenchmarkMarket(b *testing.B) {
	m, view := market(b, messages.Market{}), grid(64, 8)
	r := rand.New(rand.NewPCG(3, 4))
	draw := Valid(paperType)
	for id := range messages.JobID(1000) {
		surrogate, _ := draw(r)
		bid := bidOf(id+1, view.Now, 1+r.IntN(20))
		bid.Contract = &messages.Contract{Surrogate: surrogate, Replica: surrogate}
		view.Jobs = append(view.Jobs, &mechanism.Job{Bid: bid, Pending: []int{bid.Tasks}, Running: []int{0}})
	}
	b.Run("quote", func(b *testing.B) {
		for b.Loop() {
			quote(b, m, view, bidOf(2000, view.Now, 9), 1)
		}
	})
	b.Run("allocate", func(b *testing.B) {
		for b.Loop() {
			m.Allocate(view)
		}
	})
}
