package proportional

import (
	"math"
	"slices"
)

// pass lets every job answer the fields, adds up the powers and their
// derivatives, and returns the largest relative disagreement: NaN if a job
// cannot spend its budget at these fields.
func (s *Solver) pass() float64 {
	w := &s.newton
	clear(w.sum)
	clear(w.jacobian)
	s.face()
	s.result.Rounds++
	if s.alpha == 0.5 && s.m == 4 && !w.dominated {
		if !s.pass4() {
			return math.NaN()
		}
		return s.gap()
	}
	for i := range s.n {
		if !s.respond(i) {
			return math.NaN()
		}
		s.accumulate(i)
	}
	return s.gap()
}

// face works out what the answers need of the fields.
func (s *Solver) face() {
	w := &s.newton
	for f, x := range w.fields {
		w.row.inverse[f], w.row.logarithm[f] = 0, 0
		if s.active(f) {
			w.row.inverse[f] = 1 / (x * x)
			w.row.logarithm[f] = math.Log(x) / s.alpha
		}
	}
}

func (s *Solver) gap() float64 {
	w, m := &s.newton, s.m
	most := 0.0
	for f, x := range w.fields {
		if !s.active(f) {
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

// respond works out the answer of job i, into its rows of sub-budgets and
// powers; false if it cannot spend its budget at these fields.
func (s *Solver) respond(i int) bool {
	lo, hi := i*s.m, (i+1)*s.m
	a := &s.newton.row
	a.b, a.p = s.subbudgets[lo:hi:hi], s.powers[lo:hi:hi]
	switch {
	case s.wanted[i] < 2:
		return s.answerFixed(i)
	case s.alpha != 0.5 || s.newton.dominates(i):
		return s.answerAny(i)
	case s.p.log(i):
		return s.answerHalfLog(i)
	default:
		return s.answerHalfLinear(i)
	}
}

// answerFixed is the answer of a job that wants one class or none.
func (s *Solver) answerFixed(i int) bool {
	a := &s.newton.row
	for _, v := range [...][]float64{a.p, a.pg, a.ph, a.b, a.bg, a.bh} {
		clear(v)
	}
	for j, w := range s.weights[i*s.m : (i+1)*s.m] {
		if w > 0 {
			a.b[j], a.p[j] = s.p.Budgets[i], power(s.p.Budgets[i], s.alpha)
		}
	}
	return true
}

func (w *newton) dominates(i int) bool { return w.dominated && slices.Contains(w.dominant, i) }

// accumulate adds the job's powers to the equations, and their derivative
//
//	dp_j/d ln f_k = [j=k]·ph_j − pg_j·bh_k/Σ bg,
//
// in which the multiplier λ gives way so that the sub-budgets still add up.
func (s *Solver) accumulate(i int) {
	w, m := &s.newton, s.m
	a, size := &w.row, 2*s.m
	if !w.dominated {
		w.accumulatePlain(m, 1)
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

// accumulatePlain is accumulate where no class has a dominant job; with sign
// −1 it takes the answer away.
func (w *newton) accumulatePlain(m int, sign float64) {
	a := &w.row
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

// inverseSlack is 1/Σ bg, or 0 for a job whose answer does not move.
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
