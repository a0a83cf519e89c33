package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
)

// The test compares each price with the paper's equation 1, by trying all matchings. The prices must be exactly equal,
// because weights are whole numbers. There are cases with and without ties and zeros.
func TestAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var s Solver
	for range 2000 {
		m := 1 + r.IntN(6)
		w := whole(r, m, []int{1, 3, 20, 1_000_000}[r.IntN(4)])
		got, err := s.Solve(m, w)
		if err != nil {
			t.Fatal(err)
		}
		if want := enumerate(m, w, casetest.Indices(m), casetest.Indices(m)); got.Weight != want {
			t.Fatalf("%v: weight %v, want %v", w, got.Weight, want)
		}
		for j, k := range got.Surrogate {
			if want := equationOne(m, w, j, k); got.Prices[k] != want || got.Replica[k] != j {
				t.Fatalf("%v: pair (%d, %d) costs %v, want %v", w, j, k, got.Prices[k], want)
			}
		}
		if want := optima(m, w, got.Weight) == 1; s.Unique() != want {
			t.Fatalf("%v: unique is %v", w, !want)
		}
	}
}

func optima(m int, w []float64, weight float64) (n int) {
	permutations(m, func(p []int) {
		if worth(m, w, p) == weight {
			n++
		}
	})
	return n
}

func permutations(m int, visit func([]int)) {
	p := casetest.Indices(m)
	var next func(at int)
	next = func(at int) {
		if at == m {
			visit(p)
			return
		}
		for i := at; i < m; i++ {
			p[at], p[i] = p[i], p[at]
			next(at + 1)
			p[at], p[i] = p[i], p[at]
		}
	}
	next(0)
}

func worth(m int, w []float64, surrogate []int) (sum float64) {
	for j, k := range surrogate {
		sum += w[j*m+k]
	}
	return sum
}

func TestPricesAreThoseOfEveryOptimalMatching(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var s Solver
	several := 0
	for range 500 {
		m := 2 + r.IntN(4)
		w := whole(r, m, 3)
		got, _ := s.Solve(m, w)
		if !s.Unique() {
			several++
		}
		permutations(m, func(p []int) {
			if worth(m, w, p) != got.Weight {
				return
			}
			for j, k := range p {
				if want := equationOne(m, w, j, k); got.Prices[k] != want {
					t.Fatalf("%v: surrogate %d costs %v, in matching %v %v", w, k, got.Prices[k], p, want)
				}
			}
		})
	}
	if several < 100 {
		t.Errorf("only %d instances had several optimal matchings", several)
	}
}

// Solve must give the same results as the Hungarian method of the textbooks. The sizes are chosen so that the solver
// has one block or many blocks of columns. For each kind of weights, the solver takes a different shortcut.
func TestAgainstTheTextbook(t *testing.T) {
	var s Solver
	for _, m := range []int{2, 31, 32, 33, 64, 97, 200} {
		for _, kind := range []string{"random", "whole", "binary", "near", "spread", "late", "grid", "equal", "ordered"} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%d/%s/%d", m, kind, seed), func(t *testing.T) {
					w := instance(m, kind, seed)
					total, surrogate := hungarian(m, w)
					want := pricesOf(m, w, surrogate)
					got, err := s.Solve(m, w)
					if err != nil {
						t.Fatal(err)
					}
					tolerance := 0.0
					if !s.integral {
						tolerance = 1e-12 * total
					}
					near(t, "weight", []float64{got.Weight}, []float64{total}, tolerance)
					near(t, "prices", got.Prices, want, tolerance)
				})
			}
		}
	}
}

func instance(m int, kind string, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, uint64(m)))
	switch kind {
	case "random":
		return uniform(r, m, 100)
	case "whole":
		return whole(r, m, 1_000_000)
	case "binary":
		return whole(r, m, 1)
	case "equal":
		return slices.Repeat([]float64{7}, m*m)
	case "ordered": // all replicas have the same order of preference, so every surrogate but the last has a price
		w := make([]float64, m*m)
		for i := range w {
			w[i] = float64((i/m + 1) * (m - i%m))
		}
		return w
	default:
		return sigmoids(r, m, kind)
	}
}

// All weights are integers near 2^48. float64 adds integers of this size exactly, so the results must be exact.
func TestMoneyIsNotLostInLargeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var s Solver
	const m = 5
	for range 300 {
		w := make([]float64, m*m)
		for i := range w {
			w[i] = float64(1<<48 + r.Int64N(1<<48))
		}
		got, err := s.Solve(m, w)
		if err != nil || !s.integral {
			t.Fatal(err, s.integral)
		}
		for j, k := range got.Surrogate {
			if want := equationOne(m, w, j, k); got.Prices[k] != want {
				t.Fatalf("%v: %v, want %v", w, got.Prices[k], want)
			}
		}
	}
}

// drawn draws an instance with weights of any kind.
func drawn(t *rapid.T) (m int, w []float64) {
	m = rapid.IntRange(1, 40).Draw(t, "m")
	kind := rapid.SampledFrom([]string{"random", "whole", "binary", "near", "spread", "late", "grid"}).Draw(t, "kind")
	return m, instance(m, kind, rapid.Uint64().Draw(t, "seed"))
}

func solved(t *rapid.T, m int, w []float64) *Matching {
	var s Solver
	got, err := s.Solve(m, w)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// All prices must be competitive: 0 ≤ price ≤ weight, and the lowest price is 0. The gain of a row from a column is its
// weight for this column minus the column's price. No row may gain more from another column than from its own.
// TestAgainstEnumeration checks that no lower prices have these properties.
func TestPricesAreCompetitive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		got := solved(t, m, w)
		if slices.Min(got.Prices) != 0 {
			t.Fatalf("the lowest price is %v", slices.Min(got.Prices))
		}
		for j, own := range got.Surrogate {
			row := w[j*m : (j+1)*m]
			utility := row[own] - got.Prices[own]
			if utility < -1e-11 || got.Replica[own] != j {
				t.Fatalf("replica %d pays %v for %v", j, got.Prices[own], row[own])
			}
			for k, x := range row {
				if x-got.Prices[k] > utility+1e-11 && (x-got.Prices[k])/utility > 1+1e-12 {
					t.Fatalf("replica %d gets %v from surrogate %d, and would get %v from %d", j, utility, own, x-got.Prices[k], k)
				}
			}
		}
	})
}

func TestUnitOfMoneyDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		before := slices.Clone(solved(t, m, w).Prices)
		unit := math.Ldexp(1, rapid.IntRange(-60, 60).Draw(t, "unit"))
		for i := range w {
			w[i] *= unit
		}
		for k, p := range solved(t, m, w).Prices {
			if math.Abs(p/unit-before[k]) > 1e-11 {
				t.Fatalf("surrogate %d costs %v, in units of %v %v", k, before[k], unit, p)
			}
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		rows := rapid.Permutation(casetest.Indices(m)).Draw(t, "rows")
		columns := rapid.Permutation(casetest.Indices(m)).Draw(t, "columns")
		moved := make([]float64, m*m)
		for i, x := range w {
			moved[rows[i/m]*m+columns[i%m]] = x
		}
		before, after := solved(t, m, w), solved(t, m, moved)
		if math.Abs(before.Weight-after.Weight) > 1e-9 {
			t.Fatalf("weight %v, moved %v", before.Weight, after.Weight)
		}
		for k, to := range columns {
			if math.Abs(before.Prices[k]-after.Prices[to]) > 1e-10 {
				t.Fatalf("surrogate %d costs %v, moved to %d %v", k, before.Prices[k], to, after.Prices[to])
			}
		}
	})
}

// A few columns matter far more than all others, so the solver's auction algorithm alone would practically never end.
// The solver must stop this algorithm early, and must still find the exact result.
func TestContrivedWeightsEnd(t *testing.T) {
	const m = 200
	w := make([]float64, m*m)
	for i := range w {
		w[i] = 1e-3 * float64((i*7919)%1009)
		if i%m < 3 {
			w[i] = 1e9
		}
	}
	total, surrogate := hungarian(m, w)
	var s Solver
	got, err := s.Solve(m, w)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "weight", []float64{got.Weight}, []float64{total}, 1e-12*total)
	near(t, "prices", got.Prices, pricesOf(m, w, surrogate), 1e-12*total)
}

func TestSolvingAgainTakesNoMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	w := sigmoids(r, 200, "spread")
	var s Solver
	if _, err := s.Solve(200, w); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5, func() { s.Solve(200, w) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A solver that solved larger problems before must return the same as a new one.
func TestSmallerAfterLarger(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	var used Solver
	for _, m := range []int{90, 40, 33, 3, 1, 64} {
		w := uniform(r, m, 10)
		var fresh Solver
		want, _ := fresh.Solve(m, w)
		got, err := used.Solve(m, w)
		if err != nil || got.Weight != want.Weight || !slices.Equal(got.Prices, want.Prices) || !slices.Equal(got.Surrogate, want.Surrogate) {
			t.Fatalf("M=%d: %+v, fresh %+v, %v", m, got, want, err)
		}
	}
}
