package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkRebuild makes a schedule again and again. It takes the jobs in a random order, and gives each job the
// earliest window that ends within a period. A job without such a window is left out. The first case is like a batch
// queue with 64 jobs. The other cases are like a search over orders of 2,000 bids.
func BenchmarkRebuild(b *testing.B) {
	for _, c := range []struct {
		jobs, nodes int
		period      float64
	}{{64, 128, 1e9}, {2000, 128, 200}, {2000, 128, 1000}, {2000, 1024, 1000}, {2000, 128, 1e9}, {100_000, 128, 1e9}} {
		b.Run(fmt.Sprintf("%d jobs/%d nodes/period %g", c.jobs, c.nodes, c.period), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(3, 4))
			length, width := make([]float64, c.jobs), make([]int, c.jobs)
			for i := range length {
				length[i], width[i] = float64(1+rng.IntN(100)), 1+rng.IntN(32)
			}
			p := New(c.nodes)
			for b.Loop() {
				p.Reset(c.nodes)
				for i, l := range length {
					if start, ok := p.Within(0, c.period, l, width[i]); ok {
						p.Insert(start, l, width[i])
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.jobs), "ns/job")
			b.ReportMetric(float64(p.steps), "steps")
		})
	}
}
