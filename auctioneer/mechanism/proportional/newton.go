package proportional

import "math"

// leastNewtonAlpha is a limit for the exponent alpha. Below it, the fixed point is computed by rounds of best answers,
// and otherwise by Newton's method. Below the limit, rounds are as fast, because each round reduces the changes by
// about the factor alpha. They are also more precise: Newton's method uses logarithms of sub-budgets, which lose digits
// as 1/alpha grows.
const leastNewtonAlpha = 0.05

// dominance is a share of a class. If a job's share s is larger, its answer is computed from the sum of the other jobs'
// powers. If it were computed from the total, the difference 1−s would lose digits.
const dominance = 0.9

// In each class j, jobs compete through powers of their bids. newton computes the fields: for each class, the sum of
// powers with which a job competes. The bids follow from the fields. T_j is the sum of the powers p_ij of all jobs i in
// class j. Given all T_j, job i has one best answer b_i(T): the bids for which its marginal utilities per credit are
// equal. At the fixed point, the powers of all best answers sum to T. These are m equations, for any number of jobs,
// and Newton's method solves them. Each best answer is computed with its exact derivative.
//
// A job that wants a single class always bids its whole budget there. A job with nearly all of a class is called
// dominant. In this class the job faces the sum Q_j of the other jobs' powers instead of T_j, so the class has a second
// unknown. Field j is T_j, and field m+j is Q_j.
//
// Each pass adds up these equations in `sum`, and their derivatives in `jacobian`:
//
//	class without a dominant job:  Σ_i p_ij − T_j = 0                      (row j)
//	class with dominant job d:     Q_j + p_dj − T_j = 0                    (row j)
//	                               Σ_{i≠d} p_ij − Q_j = 0                  (row m+j)
type newton struct {
	auction   *auction
	ready     bool      // the fields belong to an outcome, so the next search can start from them
	fields    []float64 // 2m: the totals T of all classes, then the sums Q
	before    []float64 // 2m: fields before the last step
	dominant  []int     // m: the job with nearly all of the class, or −1
	dominated bool      // some class has a dominant job
	sum       []float64 // 2m: left sides of the equations
	jacobian  []float64 // 2m·2m: derivative of sum by the logarithms of the fields
	matrix    []float64 // 2m·2m, scratch of the linear solve
	step      []float64 // 2m: change of the logarithms of the fields
	loose     float64   // relative error of the spending that an answer may have before its correction
	guess     []float64 // n: each job's multiplier in the pass before; if alpha ≠ 1/2 its logarithm
	row       answer
}

// answer is how one job divides its budget among the classes, with the derivatives. The answer is computed from a field
// f for each class: the competition that the job faces there. Two functions of the fields are computed once: 1/f² (for
// alpha = 1/2) and ln(f)/alpha.
type answer struct {
	p, pg, ph []float64 // the power; its derivative by ln λ; its derivative by ln f with fixed λ
	b, bg, bh []float64 // the same for the sub-budget; p and b are the solver's rows
	z, c      []float64 // scratch
	inverse   []float64 // 2m: 1/f²
	logarithm []float64 // 2m: ln(f)/alpha
}

func (w *newton) reset() {
	n, m := w.auction.n, w.auction.m
	for _, v := range []*[]float64{&w.fields, &w.before, &w.sum, &w.step, &w.row.inverse, &w.row.logarithm} {
		*v = resize(*v, 2*m)
	}
	a := &w.row
	for _, v := range []*[]float64{&a.pg, &a.ph, &a.bg, &a.bh, &a.z, &a.c} {
		*v = resize(*v, m)
	}
	w.jacobian = resize(w.jacobian, 4*m*m)
	w.matrix = resize(w.matrix, 4*m*m)
	w.dominant = resize(w.dominant, m)
	w.guess = resize(w.guess, n)
}

const (
	mostPasses  = 200   // maximum number of passes over the jobs for one exponent
	mostClimb   = 5000  // maximum number of passes for all exponents of the method climb together
	longestStep = 2.0   // largest change of a field's logarithm in a step
	rounding    = 1e-11 // a difference of the fields that may be a rounding error
	farOff      = 0.2   // first value of loose for a cold start
)

// Newton's method searches for the fields, the competition in each class. keepFields reports whether this search can
// start with the fields that the last search found. If so, it prepares the search to start from them.
func (w *newton) keepFields() bool {
	for j, c := range w.auction.contenders {
		if c > 1 && !(w.fields[j] > 0) {
			return false
		}
		w.dominant[j] = -1
	}
	w.dominated = false
	return true
}

// fieldsFromBids computes the fields from the powers of the present bids. It also decides which jobs are dominant: a
// dominant job has nearly the whole total of a class, and needs the sum of the other jobs as a separate field.
func (w *newton) fieldsFromBids() {
	w.dominated = false
	w.auction.addUp()
	for j, t := range w.auction.totals {
		w.fields[j], w.dominant[j] = t, -1
	}
	if !w.dominable() {
		return
	}
	for i := range w.auction.n {
		for j, p := range w.auction.powers[i*w.auction.m : (i+1)*w.auction.m] {
			if p > dominance*w.auction.totals[j] && w.auction.wanted[i] > 1 {
				w.dominant[j], w.dominated = i, true
				w.fields[w.auction.m+j] = max(w.auction.sumOthers(i, j), 1e-18*w.auction.totals[j]) // at alpha = 1 the sum may be 0
			}
		}
	}
}

// The fields are the competition in each class. iterate searches for them by Newton's method. For given fields, each
// job has a best answer, and the powers of all answers sum to new fields. iterate reports whether it found fields that
// equal these sums. It shortens a step if the largest relative difference between the fields and the sums would grow.
// The argument `loose` is the first value of newton.loose: the relative error of the spending that an answer may have.
func (w *newton) iterate(loose float64) bool {
	length, last := 1.0, math.Inf(1)
	w.loose = loose
	for range mostPasses {
		gap := w.pass()
		if !(gap < last) { // the gap is larger, or a job cannot spend its budget: make a shorter step
			if math.IsInf(last, 1) {
				return false
			}
			if last < rounding && w.loose <= closeEnough {
				copy(w.fields, w.before)
				return !math.IsNaN(w.pass()) && w.accept()
			}
			if length /= 2; length < 1e-9 {
				return false
			}
			w.move(length)
			continue
		}
		if w.redominate() {
			length, last, w.loose = 1, math.Inf(1), farOff
			continue
		}
		last, length = gap, 1
		if !w.direction() {
			return false
		}
		if w.nextMove() <= Tolerance/4 && w.loose <= closeEnough {
			return w.accept()
		}
		w.loose = min(w.loose, max(closeEnough, gap))
		copy(w.before, w.fields)
		w.move(1)
	}
	return false
}

// accept takes the bids that the last pass computed as the outcome. In this outcome, each job spends its budget with a
// relative error of at most 1e-13.
func (w *newton) accept() bool {
	w.ready, w.loose = true, closeEnough
	return true
}

// move changes the logarithm of each field by `length` times the step. It starts from the fields as they were before
// the step.
func (w *newton) move(length float64) {
	for f, d := range w.step {
		w.fields[f] = w.before[f] * math.Exp(length*d)
	}
}

// A step of Newton's method changes the sub-budgets. nextMove estimates the largest of these changes, as a part of the
// job's budget.
func (w *newton) nextMove() float64 {
	most := 0.0
	for _, d := range w.step {
		most = max(most, math.Abs(d))
	}
	return most * sensitivity(w.auction.alpha)
}

// sensitivity estimates how much a bid b changes with a field f: the largest |d ln b/d ln f|. The estimate is
// 1/(alpha·k) with k = min(1, 1/alpha − 1), but at most 20. It is wrong for bids that are almost 0.
func sensitivity(alpha float64) float64 {
	return 1 / max(alpha*min(1, 1/alpha-1), 0.05)
}

// A job dominates a class if its share of the class is above the constant dominance. dominable reports whether the job
// with the largest budget could dominate a class. The test is quick, and rarely returns true.
func (w *newton) dominable() bool {
	largest := power(w.auction.largest, w.auction.alpha)
	for j, c := range w.auction.contenders {
		if c > 1 && largest > dominance*w.fields[j] {
			return true
		}
	}
	return false
}

// The last pass has changed the bids. redominate reports whether other jobs are dominant now. If so, it computes the
// fields again from the new bids.
func (w *newton) redominate() bool {
	if !w.dominated && !w.dominable() {
		return false
	}
	for k, p := range w.auction.powers {
		i, j := k/w.auction.m, k%w.auction.m
		gone := w.dominant[j] == i && p < dominance*dominance*w.fields[j]
		come := w.dominant[j] < 0 && p > dominance*w.fields[j] && w.auction.wanted[i] > 1
		if gone || come {
			w.fieldsFromBids()
			return true
		}
	}
	return false
}

// direction computes the step of Newton's method, or returns false if its equations are singular.
func (w *newton) direction() bool {
	m := w.auction.m
	size, fields := 2*m, 2*m
	if !w.dominated {
		fields = m
		clear(w.step[m:])
	}
	for f := range fields {
		row := w.matrix[f*fields : (f+1)*fields]
		if !w.active(f) {
			clear(row)
			row[f], w.step[f] = 1, 0
			continue
		}
		scale := 1 / w.fields[f]
		for g, d := range w.jacobian[f*size : f*size+fields] {
			row[g] = -d * scale
		}
		row[f]++
		w.step[f] = w.sum[f]*scale - 1
		if f < m && w.dominant[f] >= 0 {
			row[m+f] -= w.fields[m+f] * scale
			w.step[f] += w.fields[m+f] * scale
		}
	}
	if !eliminate(w.matrix[:fields*fields], w.step[:fields]) {
		return false
	}
	w.shorten()
	return true
}

func (w *newton) active(f int) bool {
	if f < w.auction.m {
		return w.auction.contenders[f] > 1
	}
	return w.dominant[f-w.auction.m] >= 0
}

func (w *newton) shorten() {
	most := 0.0
	for _, d := range w.step {
		most = max(most, math.Abs(d))
	}
	if most > longestStep {
		for f := range w.step {
			w.step[f] *= longestStep / most
		}
	}
}

// eliminate solves the equations A·y = x by Gaussian elimination with partial pivoting, and replaces x by y. The
// argument `a` is the matrix A, row by row, with len(x)² entries. It is overwritten. If A is singular, eliminate
// returns false.
func eliminate(a, x []float64) bool {
	n := len(x)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r*n+c]) > math.Abs(a[pivot*n+c]) {
				pivot = r
			}
		}
		if d := a[pivot*n+c]; d == 0 || math.IsNaN(d) {
			return false
		}
		if pivot != c {
			for k := range n {
				a[c*n+k], a[pivot*n+k] = a[pivot*n+k], a[c*n+k]
			}
			x[c], x[pivot] = x[pivot], x[c]
		}
		for r := c + 1; r < n; r++ {
			factor := a[r*n+c] / a[c*n+c]
			if factor == 0 {
				continue
			}
			for k := c; k < n; k++ {
				a[r*n+k] -= factor * a[c*n+k]
			}
			x[r] -= factor * x[c]
		}
	}
	for r := n - 1; r >= 0; r-- {
		for k := r + 1; k < n; k++ {
			x[r] -= a[r*n+k] * x[k]
		}
		x[r] /= a[r*n+r]
	}
	return true
}
