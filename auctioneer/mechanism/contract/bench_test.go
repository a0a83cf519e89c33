package contract

import (
	"fmt"
	"math/rand/v2"
	"testing"
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
