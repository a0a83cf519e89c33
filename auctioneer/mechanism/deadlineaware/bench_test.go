package deadlineaware

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// sigmoids draws sigmoidal types with the distribution of the paper's experiments. The deadline (Mu) has mean 2000 and
// standard deviation 1000. The time over which the value falls (Delta) has mean 1000 and standard deviation 500. Both
// are normal, but must be positive. Each type is worth 100 credits.
func sigmoids(r *rand.Rand, n int) []valuation.Curve {
	curves := make([]valuation.Curve, 0, n)
	for len(curves) < n {
		c, err := valuation.New(job.Valuation{Class: job.Sigmoidal, Max: 100,
			Mu: 2000 + 1000*r.NormFloat64(), Delta: 1000 + 500*r.NormFloat64()})
		if err == nil {
			curves = append(curves, c)
		}
	}
	return curves
}

// busy returns n jobs of up to 20 tasks each. On 64 slots, the work of all jobs takes about the given number of
// seconds.
func busy(n int, seconds float64) (*Problem, []valuation.Curve) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &Problem{Slots: 64, Jobs: make([]Job, n)}
	total := 0.0
	for i, c := range sigmoids(r, n) {
		tasks := 1 + r.IntN(20)
		p.Jobs[i] = Job{Tasks: tasks, Demand: float64(tasks) * r.ExpFloat64(), Elapsed: 500 * r.Float64(), Valuation: c}
		total += p.Jobs[i].Demand
	}
	for i := range p.Jobs {
		p.Jobs[i].Demand *= seconds * float64(p.Slots) / total
	}
	return p, sigmoids(r, 100)
}

var loads = []struct {
	name    string
	seconds float64
}{{"light", 1000}, {"full", 2000}, {"over", 6000}}

func BenchmarkNew(b *testing.B) {
	for _, load := range loads {
		p, _ := busy(1000, load.seconds)
		b.Run(load.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
