package proportional

import (
	"math"
	"slices"
)

// The fields are the competition in each class. pass computes how every job divides its budget under the present
// fields. It adds up the jobs' powers and their derivatives. It returns the largest relative difference between these
// sums and the fields, or NaN if a job cannot spend its budget.
func (w *newton) pass() float64 {
	clear(w.sum)
	clear(w.jacobian)
	w.face()
	w.auction.passes++
	for i := range w.auction.n {
		if !w.respond(i) {
			return math.NaN()
		}
		w.accumulate(i)
	}
	return w.gap()
}

// A field is the competition in a class. The answers of all jobs use two functions of each field x: 1/x² and
// ln(x)/alpha. face computes both functions for the present fields.
func (w *newton) face() {
	for f, x := range w.fields {
		w.row.inverse[f], w.row.logarithm[f] = 0, 0
		if w.active(f) {
			w.row.inverse[f] = 1 / (x * x)
			w.row.logarithm[f] = math.Log(x) / w.auction.alpha
		}
	}
}

func (w *newton) gap() float64 {
	m := w.auction.m
	most := 0.0
	for f, x := range w.fields {
		if !w.active(f) {
			continue
		}
		sum := w.sum[f]
		if f < m && w.dominant[f] >= 0 {
			sum += w.fields[m+f]
		}
		most = max(most, math.Abs(sum/x-1))
	}
	return most
}

// respond computes the best answer of job i to the present fields, and writes it into the job's rows of sub-budgets and
// powers. It returns false if the job cannot spend its budget at these fields.
func (w *newton) respond(i int) bool {
	bids, a := w.auction, &w.row
	lo, hi := i*bids.m, (i+1)*bids.m
	a.b, a.p = bids.subbudgets[lo:hi:hi], bids.powers[lo:hi:hi]
	switch {
	case bids.wanted[i] < 2:
		a.fixed(bids.weights[lo:hi], bids.p.Budgets[i], bids.alpha)
		return true
	case bids.alpha != 0.5 || w.dominated && slices.Contains(w.dominant, i):
		return w.answerAny(i)
	case bids.p.log(i):
		return w.answerHalfLog(i)
	default:
		return w.answerHalfLinear(i)
	}
}

// fixed computes the answer of a job that wants at most one class: its whole budget goes there.
func (a *answer) fixed(weights []float64, budget, alpha float64) {
	for _, v := range [...][]float64{a.p, a.pg, a.ph, a.b, a.bg, a.bh} {
		clear(v)
	}
	for j, weight := range weights {
		if weight > 0 {
			a.b[j], a.p[j] = budget, power(budget, alpha)
		}
	}
}

// accumulate adds job i to Newton's equations: its powers p_j, and their derivatives
//
//	dp_j/d ln f_k = [j=k]·ph_j − pg_j·bh_k/Σ bg
//
// Here f_k is a field, and b_j is the sub-budget for class j. The suffix g means the derivative of p or b by ln λ,
// where λ is the job's multiplier. The suffix h means the derivative by ln f, with fixed λ. The second term is there
// because λ changes too, so that the sub-budgets still add up to the budget.
func (w *newton) accumulate(i int) {
	a, m, size := &w.row, w.auction.m, 2*w.auction.m
	if !w.dominated {
		w.accumulatePlain(1)
		return
	}
	inverse := a.inverseSlack()
	for j, pg := range a.pg {
		equation, field := j, j
		if d := w.dominant[j]; d == i {
			field = m + j
		} else if d >= 0 {
			equation = m + j
		}
		w.sum[equation] += a.p[j]
		row := w.jacobian[equation*size : (equation+1)*size]
		row[field] += a.ph[j]
		factor := pg * inverse
		for k, bh := range a.bh {
			f := k
			if w.dominant[k] == i {
				f = m + k
			}
			row[f] -= factor * bh
		}
	}
}

// accumulatePlain adds the answer of a job, multiplied by `sign`, to the sums of the Newton step. With the sign −1,
// this subtracts the answer. Like accumulate, it also updates the derivatives. It is faster, but may be used only if no
// class has a dominant job.
func (w *newton) accumulatePlain(sign float64) {
	a, m := &w.row, w.auction.m
	inverse := a.inverseSlack()
	p, ph, bh := a.p[:m], a.ph[:m], a.bh[:m]
	for j, pg := range a.pg[:m] {
		w.sum[j] += sign * p[j]
		row := w.jacobian[j*2*m:]
		row[j] += sign * ph[j]
		factor := sign * pg * inverse
		row = row[:len(bh)]
		for k, x := range bh {
			row[k] -= factor * x
		}
	}
}

// inverseSlack returns 1/Σ x over the numbers x in a.bg. The sum is 0 for a job whose answer does not depend on the
// fields. For such a job, inverseSlack returns 0.
func (a *answer) inverseSlack() float64 {
	slack := 0.0
	for _, x := range a.bg {
		slack += x
	}
	if slack > 0 {
		return 1 / slack
	}
	return 0
}
