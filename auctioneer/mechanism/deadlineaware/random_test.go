package deadlineaware

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// curveOf makes a curve of a valuation that must be valid.
func curveOf(t testing.TB, v job.Valuation) valuation.Curve {
	t.Helper()
	c, err := valuation.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hard(t testing.TB, most, deadline float64) valuation.Curve {
	return curveOf(t, job.Valuation{Class: job.Hard, Max: most, Deadline: deadline})
}

// falling draws a valuation that only falls, from its best value to 0. It falls within a time similar to the horizon.
func falling(r *rand.Rand, horizon float64) job.Valuation {
	v := job.Valuation{Class: job.Sigmoidal, Max: 1 + 99*r.Float64(),
		Mu: horizon * r.Float64(), Delta: horizon * (0.2 + 2*r.Float64())}
	if r.IntN(2) == 0 {
		v.Class = job.LinearDecay
	}
	return v
}

// anyValuation draws a valuation of any class. Its parameters often come from a few fixed values, so different
// valuations often have equal parameters.
func anyValuation(r *rand.Rand, horizon float64) job.Valuation {
	switch r.IntN(6) {
	case 0:
		return job.Valuation{Class: job.Hard, Max: float64(r.IntN(4)), Deadline: horizon * float64(r.IntN(5)) / 4}
	case 1:
		return job.Valuation{Class: job.Recurrent, Max: 5, Workload: horizon * r.Float64(), SecondsPerUnit: 1}
	case 2:
		v := job.Valuation{Class: job.Custom, Max: 1 + 9*r.Float64()}
		for at, part := 0.0, 1.0; len(v.Points) < 4; at, part = at+horizon*r.Float64()/2+1e-3, part*float64(r.IntN(4))/3 {
			v.Points = append(v.Points, job.ValuationPoint{At: at, Part: part})
		}
		return v
	default:
		return falling(r, horizon)
	}
}

// randomProblem draws jobs and their valuations. The time in which the slots can do the work of all jobs is about the
// time in which the valuations fall.
func randomProblem(t testing.TB, r *rand.Rand, jobs int, draw func(*rand.Rand, float64) job.Valuation) *Problem {
	p := &Problem{Slots: 1 + r.IntN(6), Jobs: make([]Job, jobs)}
	total := 0.0
	for i := range p.Jobs {
		tasks := 1 + r.IntN(12)
		p.Jobs[i] = Job{Tasks: tasks, Demand: float64(tasks) * (0.1 + r.ExpFloat64())}
		total += p.Jobs[i].Demand
	}
	horizon := 2 * total / float64(p.Slots) * r.Float64()
	for i := range p.Jobs {
		p.Jobs[i].Valuation = curveOf(t, draw(r, horizon))
		if r.IntN(3) == 0 {
			p.Jobs[i].Elapsed = horizon * r.Float64() / 4
		}
	}
	return p
}

func schedule(t testing.TB, p *Problem) *Schedule {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// near reports whether two numbers are about equal. The permitted difference is `part` times the larger absolute value,
// or `part` if both absolute values are smaller than 1.
func near(a, b, part float64) bool {
	return math.Abs(a-b) <= part*max(1, math.Abs(a), math.Abs(b))
}
