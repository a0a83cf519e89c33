package proportional

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// exact solves the problem of the market's jobs from the beginning.
func exact(t testing.TB, k *Market) *Result {
	t.Helper()
	var s Solver
	r, err := s.Solve(&k.problem)
	if err != nil || !r.Converged {
		t.Fatalf("converged %v, error %v", r.Converged, err)
	}
	return r
}

// worst returns the largest relative error of a share in the market's rows.
func worst(t testing.TB, k *Market) float64 {
	r, m, most := exact(t, k), k.problem.Classes, 0.0
	row := make([]float64, m)
	for i := range k.Len() {
		k.Row(i, nil, row)
		for j, s := range row {
			want := r.Shares[i*m+j]
			if want == 0 && s == 0 {
				continue
			}
			most = max(most, math.Abs(s/want-1))
		}
	}
	return most
}

// One job arrives in a market with 99,999 jobs. Afterwards all shares must be right, and the mechanism must not have
// gone through all jobs to compute them.
func TestArrivalAmong100000(t *testing.T) {
	p := workload(100_000, 4, 0.5, 0.3)
	k := filled(t, p, 99_999)
	full := k.full
	if err := k.Arrive(p.Budgets[99_999], p.log(99_999), p.Weights[4*99_999:]); err != nil {
		t.Fatal(err)
	}
	if k.Refresh() || k.full != full {
		t.Fatal("one arrival took a full solution")
	}
	if e := worst(t, k); e > 1e-8 || e > max(k.drift, 1e-10) {
		t.Fatalf("error %g, estimate %g", e, k.drift)
	}
	k.Depart(5)
	if k.Refresh() {
		t.Fatal("one departure took a full solution")
	}
	if e := worst(t, k); e > 1e-8 {
		t.Fatalf("error %g after a departure, estimate %g", e, k.drift)
	}
}

// Jobs of all sizes arrive, depart and change; some jobs are as large as all others together. The market estimates its
// own error. The true error must stay below this estimate.
func TestMarketStaysTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alpha := rapid.SampledFrom([]float64{0, 0.3, 0.5, 0.5, 0.8}).Draw(rt, "alpha")
		p := workload(300, 3, alpha, 0.4)
		k := filled(t, p, 300)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			w := []float64{rapid.Float64Range(0.01, 3).Draw(rt, "w"), 1, rapid.SampledFrom([]float64{0, 2}).Draw(rt, "v")}
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				k.Depart(rapid.IntRange(0, k.Len()-1).Draw(rt, "who"))
			case 1:
				if err := k.Replace(rapid.IntRange(0, k.Len()-1).Draw(rt, "who"), w); err != nil {
					rt.Fatal(err)
				}
			default:
				budget := math.Pow(10, rapid.Float64Range(0, 5).Draw(rt, "size"))
				if err := k.Arrive(budget, rapid.Bool().Draw(rt, "log"), w); err != nil {
					rt.Fatal(err)
				}
			}
			k.Refresh()
			if e := worst(t, k); e > 1e-6 || e > max(k.drift, 1e-9) {
				rt.Fatalf("error %g, estimate %g, %d jobs, alpha %v", e, k.drift, k.Len(), alpha)
			}
		}
	})
}

func TestMarketFromNothingAndBack(t *testing.T) {
	k, err := NewMarket(0.5, 2, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	p := workload(400, 2, 0.5, 0.5)
	for i := range 400 {
		if err := k.Arrive(p.Budgets[i], p.log(i), p.Weights[2*i:2*i+2]); err != nil {
			t.Fatal(err)
		}
		k.Refresh()
	}
	for k.Len() > 0 {
		if k.Len()%37 == 0 {
			if e := worst(t, k); e > 1e-3 {
				t.Fatalf("%d jobs: error %g", k.Len(), e)
			}
		}
		k.Depart(k.Len() / 2)
		k.Refresh()
	}
	if k.full > 500 { // with up to 192 jobs the market is solved anew for each change; with more jobs only for few changes
		t.Errorf("%d full solutions", k.full)
	}
}

func TestMarketRefusesBadRowsWhole(t *testing.T) {
	k := filled(t, workload(10, 2, 0.5, 0), 10)
	for _, w := range [][]float64{{1}, {1, math.NaN()}, {-1, 1}, {1, math.Inf(1)}} {
		if k.Arrive(1, false, w) == nil || k.Replace(3, w) == nil {
			t.Errorf("weights %v were taken", w)
		}
	}
	if k.Len() != 10 || worst(t, k) > 1e-9 {
		t.Error("a refused row changed the market")
	}
}
