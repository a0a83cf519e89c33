package utility

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/messages/job"
)

// triangular draws a triangular system. Sometimes its columns are linearly dependent, or one column is zero.
func triangular(r *rand.Rand, m int) (matrix, z []float64) {
	matrix, z = make([]float64, m*m), make([]float64, m)
	row := make([]float64, m)
	kind := r.IntN(4)
	for range m + r.IntN(5) {
		for j := range row {
			row[j] = r.NormFloat64()
			if kind == 1 && j > 0 && j%2 == 1 {
				row[j] = row[j-1] * 2
			}
			if kind == 2 && j == m/2 {
				row[j] = 0
			}
			if kind == 3 {
				row[j] = math.Abs(row[j])
			}
		}
		turn(matrix, z, row, r.NormFloat64())
	}
	return matrix, z
}

// The problem is convex, so the conditions of Karush, Kuhn and Tucker are sufficient for an optimum. There are three
// conditions. No weight is negative. A larger weight for a column does not make the residual smaller. For the columns
// with a positive weight, the gradient of the residual is 0.
func TestNonnegativeIsOptimal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 20_000 {
		m := 1 + r.IntN(8)
		matrix, z := triangular(r, m)
		w, ok := nonnegative(matrix, z)
		if !ok {
			t.Fatalf("instance %d: no end", n)
		}
		left := append([]float64{}, z...)
		for i := range left {
			for j := i; j < m; j++ {
				left[i] -= matrix[i*m+j] * w[j]
			}
		}
		for j, v := range w {
			gradient := 0.0
			for i := range j + 1 {
				gradient += matrix[i*m+j] * left[i]
			}
			if !(v >= 0) || gradient > 1e-9 || v > 0 && gradient < -1e-9 {
				t.Fatalf("instance %d: w[%d] = %v, gradient %v", n, j, v, gradient)
			}
		}
	}
}

// The result must be as good as the best result over all subsets of the columns.
func TestNonnegativeIsBestSubset(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for n := range 3000 {
		m := 1 + r.IntN(5)
		matrix, z := triangular(r, m)
		w, ok := nonnegative(matrix, z)
		if got, want := residual(matrix, z, w), bestSubset(matrix, z); !ok || got > want+1e-9 || got < want-1e-9 {
			t.Fatalf("instance %d: residual %v of %v, want %v", n, got, w, want)
		}
	}
}

func bestSubset(matrix, z []float64) float64 {
	m := len(z)
	best := math.Inf(1)
	for set := range 1 << m {
		s := &activeSet{m: m, r: matrix, z: z}
		for j := range m {
			if set>>j&1 == 1 {
				s.use = append(s.use, j)
			}
		}
		v, ok := s.solve()
		w := make([]float64, m)
		for i, j := range s.use {
			if ok {
				w[j] = v[i]
				ok = v[i] >= 0
			}
		}
		if ok {
			best = min(best, residual(matrix, z, w))
		}
	}
	return best
}

// With more runs, the default must have a smaller share in the estimated weights, and the weights must be nearer to the
// truth. Without noise, a few runs must be enough.
func TestEstimateGoesFromTheDefaultToTheFit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	truth, fallback := []float64{6, 1, 2}, []float64{1, 1, 1}
	for _, noise := range []float64{0, 0.1} {
		part, off := 1.1, math.Inf(1)
		for _, k := range []int{0, 1, 3, 10, 100, 1000} {
			g := learn(t, job.Linear, 3, 0, history(r, job.Linear, truth, k, noise))
			e, err := g.Estimate(fallback)
			if err != nil {
				t.Fatal(err)
			}
			sum, distance := 0.0, 0.0
			for _, w := range e.Weights {
				sum += w
			}
			for j, w := range e.Weights {
				distance += math.Abs(w/sum - truth[j]/9)
			}
			if e.Default >= part || k >= 10 && distance > off || k == 0 && e.Default != 1 {
				t.Errorf("noise %v, %d runs: %v, the default's part %.4f after %.4f, off by %.4f after %.4f", noise, k, e.Weights, e.Default, part, distance, off)
			}
			part, off = e.Default, distance
		}
		if part > 0.01 || off > 0.03 {
			t.Errorf("noise %v: the default's part is %.4f, off by %.4f", noise, part, off)
		}
	}
}

// The test multiplies all utilities by a factor, or all default weights. The ratios of the estimated weights must stay
// the same. Weights must never be negative, and never all zero.
func TestEstimateHasNoUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for range 1000 {
		m := 1 + r.IntN(4)
		truth, fallback, scaled := make([]float64, m), make([]float64, m), make([]float64, m)
		for j := range truth {
			truth[j], fallback[j] = 4*r.Float64()-1, float64(r.IntN(3))
			fallback[0] = 1
			scaled[j] = 1000 * fallback[j]
		}
		form := []Form{job.Linear, job.Log}[r.IntN(2)]
		runs := history(r, form, truth, r.IntN(10), 0.1)
		a, err := learn(t, form, m, 0, runs).Estimate(fallback)
		for i := range runs {
			runs[i].utility *= 1e-6
		}
		b, err2 := learn(t, form, m, 0, runs).Estimate(scaled)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		sa, sb := 0.0, 0.0
		for j := range m {
			if !(a.Weights[j] >= 0) {
				t.Fatalf("weights %v", a.Weights)
			}
			sa += a.Weights[j]
			sb += b.Weights[j]
		}
		for j := range m {
			if !(sa > 0) || !near(a.Weights[j]/sa, b.Weights[j]/sb, 1e-7) || !near(a.Default, b.Default, 1e-7) {
				t.Fatalf("weights %v (default %v), in another unit %v (%v)", a.Weights, a.Default, b.Weights, b.Default)
			}
		}
	}
}
