package utility

import (
	"math"
	"slices"
)

// nonnegative minimises ‖r·w−z‖² over w ≥ 0, where r is upper triangular (Lawson and Hanson's active set method). If a
// column is a combination of the columns in use, its weight stays at 0. Rounding can make the method repeat the same
// steps for ever; then nonnegative returns false.
func nonnegative(r, z []float64) (w []float64, ok bool) {
	m := len(z)
	s := &activeSet{m: m, r: r, z: z, w: make([]float64, m), tolerance: tolerance(r, z)}
	barred := make([]bool, m)
	for range 3*m + 10 {
		enter := s.steepest(barred)
		if enter < 0 {
			return s.w, true
		}
		s.use = append(s.use, enter)
		if !s.descend() || s.w[enter] <= 0 {
			// The new column reduces the residual only by rounding, so it is removed again.
			s.use = slices.DeleteFunc(s.use, func(j int) bool { return j == enter })
			s.w[enter] = 0
			barred[enter] = true
			continue
		}
		clear(barred)
	}
	return nil, false
}

// activeSet is the state of the search for weights that are not negative. It has the columns in use, and the present
// solution.
type activeSet struct {
	m         int
	r, z      []float64
	w         []float64
	use       []int
	tolerance []float64 // by column: gradient below which it counts as 0
}

// The gradient of a column is computed with rounding errors. tolerance returns, for each column, the largest gradient
// that can come from rounding alone.
func tolerance(r, z []float64) []float64 {
	m, length := len(z), 0.0
	for _, v := range z {
		length = math.Hypot(length, v)
	}
	out := make([]float64, m)
	for j := range m {
		for i := range j + 1 {
			out[j] = math.Hypot(out[j], r[i*m+j])
		}
		out[j] *= length * 1e-14 * float64(m)
	}
	return out
}

// steepest returns the unused column along which the residual falls most, relative to the column's length, or −1 if
// there is none.
func (s *activeSet) steepest(barred []bool) int {
	left := slices.Clone(s.z)
	for i := range left {
		for j := i; j < s.m; j++ {
			left[i] -= s.r[i*s.m+j] * s.w[j]
		}
	}
	best, at := 1.0, -1
	for j := range s.m {
		if barred[j] || slices.Contains(s.use, j) {
			continue
		}
		gradient := 0.0
		for i := range j + 1 {
			gradient += s.r[i*s.m+j] * left[i]
		}
		if part := gradient / s.tolerance[j]; part > best { // part is NaN for a column of zeros
			best, at = part, j
		}
	}
	return at
}

// descend moves the weights towards the least-squares solution over the columns in use. Where a weight would become
// negative, it removes the column of this weight and tries again. It returns false if the columns are linearly
// dependent.
func (s *activeSet) descend() bool {
	for len(s.use) > 0 {
		v, ok := s.solve()
		if !ok {
			return false
		}
		step := 1.0
		for i, j := range s.use {
			if v[i] <= 0 {
				step = min(step, s.w[j]/(s.w[j]-v[i]))
			}
		}
		for i, j := range s.use {
			s.w[j] += step * (v[i] - s.w[j])
			if step < 1 && v[i] <= 0 && s.w[j] <= 1e-14*math.Abs(v[i]) {
				s.w[j] = 0
			}
		}
		if step == 1 {
			return true
		}
		s.use = slices.DeleteFunc(s.use, func(j int) bool { return s.w[j] <= 0 })
	}
	return true
}

// solve returns the least-squares solution over the columns in use. It returns false if they are linearly dependent.
func (s *activeSet) solve() ([]float64, bool) {
	k := len(s.use)
	r, z, row := make([]float64, k*k), make([]float64, k), make([]float64, k)
	for i := range s.m {
		for a, j := range s.use {
			row[a] = s.r[i*s.m+j]
		}
		turn(r, z, row, s.z[i])
	}
	for a, j := range s.use {
		length := 0.0
		for i := range s.m {
			length = math.Hypot(length, s.r[i*s.m+j])
		}
		if math.Abs(r[a*k+a]) <= rankTolerance*length {
			return nil, false
		}
	}
	return backward(r, z), true
}
