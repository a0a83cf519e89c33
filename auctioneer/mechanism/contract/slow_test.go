package contract

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile/casetest"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages/job"
)

// enumerate tries all ways to match the given rows to different given columns, and returns the largest weight.
func enumerate(m int, weights []float64, rows, columns []int) float64 {
	if len(rows) == 0 {
		return 0
	}
	best := math.Inf(-1)
	for at, k := range columns {
		rest := slices.Delete(slices.Clone(columns), at, at+1)
		best = max(best, weights[rows[0]*m+k]+enumerate(m, weights, rows[1:], rest))
	}
	return best
}

func without(v []int, x int) []int {
	at := slices.Index(v, x)
	return slices.Delete(slices.Clone(v), at, at+1)
}

// equationOne returns the price of the pair (j, k) by equation 1 of the paper.
func equationOne(m int, weights []float64, j, k int) float64 {
	rows, all := without(casetest.Indices(m), j), casetest.Indices(m)
	return enumerate(m, weights, rows, all) - enumerate(m, weights, rows, without(all, k))
}

// hungarian solves the assignment problem with the Hungarian algorithm as textbooks give it: successive shortest paths
// with potentials, in O(m³) steps.
func hungarian(m int, weights []float64) (total float64, surrogate []int) {
	u, v := make([]float64, m+1), make([]float64, m+1)
	match, way := make([]int, m+1), make([]int, m+1)
	for i := 1; i <= m; i++ {
		match[0] = i
		least, used := make([]float64, m+1), make([]bool, m+1)
		for j := range least {
			least[j] = math.Inf(1)
		}
		j0 := 0
		for ok := true; ok; ok = match[j0] != 0 {
			used[j0] = true
			i0, delta, j1 := match[j0], math.Inf(1), 0
			for j := 1; j <= m; j++ {
				if used[j] {
					continue
				}
				if c := -weights[(i0-1)*m+j-1] - u[i0] - v[j]; c < least[j] {
					least[j], way[j] = c, j0
				}
				if least[j] < delta {
					delta, j1 = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[match[j]] += delta
					v[j] -= delta
				} else {
					least[j] -= delta
				}
			}
			j0 = j1
		}
		for j0 != 0 {
			j1 := way[j0]
			match[j0] = match[j1]
			j0 = j1
		}
	}
	surrogate = make([]int, m)
	for j := 1; j <= m; j++ {
		surrogate[match[j]-1] = j - 1
		total += weights[(match[j]-1)*m+j-1]
	}
	return total, surrogate
}

// pricesOf returns the lowest competitive prices of an optimal matching of rows and columns, by the method of Bellman
// and Ford. What a row gains by a column is the weight minus the column's price. Prices p ≥ 0 are competitive if no row
// would gain more by another column than by its own.
func pricesOf(m int, weights []float64, surrogate []int) []float64 {
	p := make([]float64, m)
	for range m {
		for j, own := range surrogate {
			row := weights[j*m : (j+1)*m]
			for k, w := range row {
				p[k] = max(p[k], w+(p[own]-row[own]))
			}
		}
	}
	return p
}

func uniform(r *rand.Rand, m int, most float64) []float64 {
	w := make([]float64, m*m)
	for i := range w {
		w[i] = most * r.Float64()
	}
	return w
}

// whole draws whole numbers from 0 to most as weights.
func whole(r *rand.Rand, m, most int) []float64 {
	w := make([]float64, m*m)
	for i := range w {
		w[i] = float64(r.IntN(most + 1))
	}
	return w
}

// paperType draws a type with the distribution of the paper's evaluation.
func paperType(r *rand.Rand) job.Valuation {
	return job.Valuation{Class: job.Sigmoidal, Max: 100, Mu: 2000 + 1000*r.NormFloat64(), Delta: 1000 + 500*r.NormFloat64()}
}

// sigmoids draws a valuation and a completion time for each surrogate, and returns the surrogates' weights. `times`
// says how the completion times are distributed: "near" a deadline, "spread" evenly, "late" for many replicas, or on a
// "grid" with many equal times.
func sigmoids(r *rand.Rand, m int, times string) []float64 {
	draw := Valid(paperType)
	x := make([]float64, m)
	for k := range x {
		t, _ := draw(r)
		switch times {
		case "near":
			x[k] = t.Mu + t.Delta*r.Float64()
		case "spread":
			x[k] = 5000 * r.Float64()
		case "late":
			x[k] = 1500 + 5000*r.Float64()
		case "grid":
			x[k] = 100 * math.Floor((t.Mu+t.Delta/2)/100)
		}
	}
	sort.Float64s(x)
	curves := make([]valuation.Curve, m)
	for j := range curves {
		t, _ := draw(r)
		curves[j], _ = valuation.New(t)
	}
	return Weights(curves, x)
}
