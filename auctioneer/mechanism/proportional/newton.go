package proportional

import "math"

// leastNewtonAlpha is the exponent below which plain rounds, which contract by
// about alpha each, are as fast as Newton's method, whose logarithms of
// sub-budgets lose digits as 1/alpha grows.
const leastNewtonAlpha = 0.05

// dominance is the share of a class from which its job is told the sum of the
// others rather than the total: beyond it 1−s would lose digits.
const dominance = 0.9

// newton solves the auction for what the jobs face instead of for what they
// bid. Given the total T_j of the powers in each class, job i has one answer
// b_i(T): the row at which its marginal utilities per credit are equal. The
// fixed point is the T at which the answers' powers add up to T: m equations,
// however many the jobs, solved by Newton's method with the exact derivative,
// which each job's answer yields on the way.
//
// A job that wants one class only bids its budget there whatever it faces. Of
// the others, a job with nearly all of a class faces the sum Q_j of the others there, one
// more unknown for that class. Field j is T_j, field m+j is Q_j.
//
// Equations, as each pass accumulates them into sum and jacobian:
//
//	class without a dominant job:  Σ_i p_ij − T_j = 0                      (row j)
//	class with dominant job d:     Q_j + p_dj − T_j = 0                    (row j)
//	                               Σ_{i≠d} p_ij − Q_j = 0                  (row m+j)
type newton struct {
	ready     bool      // fields are those of an outcome
	fields    []float64 // 2m
	before    []float64 // 2m: fields before the last step
	dominant  []int     // m: the job with nearly all of the class, or −1
	dominated bool      // some class has one
	sum       []float64 // 2m
	jacobian  []float64 // 2m·2m: derivative of sum by the logarithms of the fields
	matrix    []float64 // 2m·2m, scratch of the linear solve
	step      []float64 // 2m: change of the logarithms of the fields
	loose     float64   // relative error of the spending that an answer may have before its correction
	guess     []float64 // n: each job's multiplier in the pass before, its logarithm if alpha ≠ 1/2
	start     []float64 // n·m: sub-budgets at a smaller exponent, for climb
	row       answer
}

// answer is one job's answer and its derivatives, class by class, and what a
// field f needs besides: 1/f² (alpha = 1/2) and ln(f)/alpha.
type answer struct {
	p, pg, ph []float64 // power; its derivative by ln λ, and by ln f at fixed λ
	b, bg, bh []float64 // sub-budget; the same. p and b are the solver's rows
	z, c      []float64 // scratch
	inverse   []float64 // 2m: 1/f²
	logarithm []float64 // 2m: ln(f)/alpha
}

func (w *newton) reset(n, m int) {
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

// Limits of the search.
const (
	mostPasses  = 200   // over the jobs, at one exponent
	mostClimb   = 5000  // passes, over all exponents of a climb
	longestStep = 2.0   // of a field's logarithm
	rounding    = 1e-11 // disagreement of the fields at which rounding is taken to be what stops it
	farOff      = 0.2   // newton.loose from a cold start
)

// fixedPoint solves the auction, warm from the fields of the last outcome; from
// a start too far away by way of smaller exponents.
func (s *Solver) fixedPoint(warm bool) {
	w := &s.newton
	same := len(w.guess) == s.n // then the multipliers are those of about the same jobs
	w.reset(s.n, s.m)
	if !same {
		clear(w.guess)
	}
	if warm && s.keepFields() && s.iterate(closeEnough) {
		return
	}
	clear(w.guess)
	s.splitByWeight()
	s.fieldsFromRows()
	if !s.iterate(farOff) && !s.climb() {
		s.beyondDoubles()
	} else {
		s.verify()
	}
}

// byRounds solves an auction that may have several fixed points: it finds the
// one that the paper's rounds reach from the even split. Should they take too
// long, Newton's method goes on from where they are.
func (s *Solver) byRounds() {
	s.splitEvenly()
	for i, n := range s.wanted {
		if n == 0 {
			clear(s.subbudgets[i*s.m : (i+1)*s.m])
			clear(s.powers[i*s.m : (i+1)*s.m])
		}
	}
	s.settle()
	if s.result.Converged {
		s.polish()
		return
	}
	w := &s.newton
	w.reset(s.n, s.m)
	clear(w.guess)
	s.fieldsFromRows()
	if !s.iterate(farOff) && !s.climb() {
		s.beyondDoubles()
	} else {
		s.verify()
	}
}

// polish takes the rounds' outcome, which is as far from the fixed point as their
// last move times 1/(1 − alpha), to it. Nearer to 1 doubles do not have the
// digits; an outcome elsewhere is another fixed point's.
func (s *Solver) polish() {
	if s.alpha < leastPolished || s.alpha > mostPolished {
		return
	}
	w := &s.newton
	w.reset(s.n, s.m)
	clear(w.guess)
	w.start = append(w.start[:0], s.subbudgets...)
	s.fieldsFromRows()
	good := s.iterate(closeEnough)
	for k, b := range s.subbudgets {
		good = good && math.Abs(w.start[k]-b) < nearby*s.p.Budgets[k/s.m]
		s.shares[k] = w.start[k] // not yet in use
		w.start[k] = b
	}
	if !good || !s.atRest() {
		copy(s.subbudgets, s.shares)
		s.total()
	}
	s.newton.ready, s.result.Converged = false, true
}

// Limits of polish.
const (
	leastPolished, mostPolished = 0.9, 0.9999
	nearby                      = 1e-7
)

// climb reaches the fixed point from that of an easier auction, with a smaller
// exponent, in steps as long as Newton's method can follow: of 1−alpha by a
// factor, down to nothing for alpha = 1.
func (s *Solver) climb() bool {
	goal := s.p.Alpha
	s.alpha = min(goal/2, 0.25)
	s.splitByWeight()
	s.settle()
	w := &s.newton
	w.start = append(w.start[:0], s.subbudgets...)
	at, factor := s.alpha, 0.5
	last := s.result.Rounds + mostClimb
	for at < goal && factor < 0.999 && s.result.Rounds < last {
		s.alpha = 1 - (1-at)*factor
		if s.alpha > goal-1e-5 {
			s.alpha = goal
		}
		copy(s.subbudgets, w.start)
		s.total()
		s.fieldsFromRows()
		clear(w.guess)
		if !s.iterate(farOff) {
			factor = math.Sqrt(factor)
			continue
		}
		copy(w.start, s.subbudgets)
		at, factor = s.alpha, max(factor*factor, 0.1)
	}
	s.reached = at
	s.result.Converged = at == goal
	return at == goal
}

// verify sees that Newton's outcome at an alpha near 1, where doubles may lack
// the digits, is at rest; if not, more digits finish it.
func (s *Solver) verify() {
	if s.alpha < leastPolished {
		return
	}
	w := &s.newton
	w.start = append(w.start[:0], s.subbudgets...)
	if !s.atRest() {
		s.reached = s.alpha
		s.beyondDoubles()
	}
}

// atRest says whether another round leaves everything as it is, which newton.start
// must hold as well.
func (s *Solver) atRest() bool {
	s.addUp()
	move := s.round(1)
	copy(s.subbudgets, s.newton.start)
	s.total()
	return move <= Tolerance
}

// beyondDoubles goes on in more digits from where climb stopped.
func (s *Solver) beyondDoubles() {
	w := &s.newton
	copy(s.subbudgets, w.start)
	near := 1 - s.reached
	s.beyond = true
	s.alpha = s.p.Alpha
	w.ready = false
	if !s.solvePrecisely(near) {
		s.total()
		s.settle()
	}
}

// keepFields checks that the fields of the last outcome can start this one.
func (s *Solver) keepFields() bool {
	for j, c := range s.contenders {
		if c > 1 && !(s.newton.fields[j] > 0) {
			return false
		}
		s.newton.dominant[j] = -1
	}
	s.newton.dominated = false
	return true
}

// fieldsFromRows sets the fields, and who is dominant, from the powers.
func (s *Solver) fieldsFromRows() {
	w := &s.newton
	w.dominated = false
	s.addUp()
	for j, t := range s.totals {
		w.fields[j], w.dominant[j] = t, -1
	}
	if !s.dominable() {
		return
	}
	for i := range s.n {
		for j, p := range s.powers[i*s.m : (i+1)*s.m] {
			if p > dominance*s.totals[j] && s.wanted[i] > 1 {
				w.dominant[j], w.dominated = i, true
				w.fields[s.m+j] = max(s.sumOthers(i, j), 1e-18*s.totals[j]) // at alpha = 1 it may be 0
			}
		}
	}
}

// iterate is Newton's method with a line search on the largest relative
// disagreement between the fields and the answers to them. loose is newton.loose
// to begin with.
func (s *Solver) iterate(loose float64) bool {
	w := &s.newton
	length, last := 1.0, math.Inf(1)
	w.loose = loose
	for range mostPasses {
		gap := s.pass()
		if !(gap < last) { // worse, or a job could not spend its budget: not so far
			if math.IsInf(last, 1) {
				return false
			}
			if last < rounding && w.loose <= closeEnough {
				copy(w.fields, w.before)
				return !math.IsNaN(s.pass()) && s.accept()
			}
			if length /= 2; length < 1e-9 {
				return false
			}
			s.move(length)
			continue
		}
		if s.redominate() {
			length, last, w.loose = 1, math.Inf(1), farOff
			continue
		}
		last, length = gap, 1
		if !s.direction() {
			return false
		}
		if s.nextMove() <= Tolerance/4 && w.loose <= closeEnough {
			return s.accept()
		}
		w.loose = min(w.loose, max(closeEnough, gap))
		copy(w.before, w.fields)
		s.move(1)
	}
	return false
}

// accept takes the answers of the last pass as the outcome. They spend the
// budgets to within 1e-13.
func (s *Solver) accept() bool {
	s.result.Converged, s.newton.ready, s.newton.loose = true, true, closeEnough
	return true
}

// move sets the fields to a part of the step from where they were before.
func (s *Solver) move(length float64) {
	w := &s.newton
	for f, d := range w.step {
		w.fields[f] = w.before[f] * math.Exp(length*d)
	}
}

// nextMove estimates how far, relative to its budget, any sub-budget would
// move in the step.
func (s *Solver) nextMove() float64 {
	most := 0.0
	for _, d := range s.newton.step {
		most = max(most, math.Abs(d))
	}
	return most * s.sensitivity()
}

// sensitivity is about the largest |d ln b/d ln f|: 1/(alpha·k), k the least
// slope of an answer, but where bids are at the edge of nothing.
func (s *Solver) sensitivity() float64 {
	return 1 / max(s.alpha*min(1, 1/s.alpha-1), 0.05)
}

// dominable says whether the largest budget could dominate any class: a quick
// no for most auctions.
func (s *Solver) dominable() bool {
	largest := power(s.largest, s.alpha)
	for j, c := range s.contenders {
		if c > 1 && largest > dominance*s.newton.fields[j] {
			return true
		}
	}
	return false
}

// redominate finds whether who is dominant has changed with the answers of the
// last pass; if so it sets the fields anew from those answers.
func (s *Solver) redominate() bool {
	w := &s.newton
	if !w.dominated && !s.dominable() {
		return false
	}
	changed := false
	for j, d := range w.dominant {
		changed = changed || d >= 0 && s.powers[d*s.m+j] < dominance*dominance*w.fields[j]
	}
	if !changed && !s.newDominant() {
		return false
	}
	s.fieldsFromRows()
	return true
}

func (s *Solver) newDominant() bool {
	w := &s.newton
	for i, k := 0, 0; i < s.n; i, k = i+1, k+s.m {
		for j, p := range s.powers[k : k+s.m] {
			if p > dominance*w.fields[j] && w.dominant[j] < 0 && s.wanted[i] > 1 {
				return true
			}
		}
	}
	return false
}

// direction solves for the step; it returns false if the system is singular.
func (s *Solver) direction() bool {
	w, m := &s.newton, s.m
	size, fields := 2*m, 2*m
	if !w.dominated {
		fields = m
		clear(w.step[m:])
	}
	for f := range fields {
		row := w.matrix[f*fields : (f+1)*fields]
		if !s.active(f) {
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
	s.shorten()
	return true
}

func (s *Solver) active(f int) bool {
	if f < s.m {
		return s.contenders[f] > 1
	}
	return s.newton.dominant[f-s.m] >= 0
}

func (s *Solver) shorten() {
	most := 0.0
	for _, d := range s.newton.step {
		most = max(most, math.Abs(d))
	}
	if most > longestStep {
		for f := range s.newton.step {
			s.newton.step[f] *= longestStep / most
		}
	}
}

// eliminate solves a·x = x in place by Gaussian elimination with partial
// pivoting; it returns false if a is singular. a has len(x)² entries, by rows,
// and is overwritten.
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
		swapRows(a, x, c, pivot)
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

func swapRows(a, x []float64, r, q int) {
	if r == q {
		return
	}
	n := len(x)
	for k := range n {
		a[r*n+k], a[q*n+k] = a[q*n+k], a[r*n+k]
	}
	x[r], x[q] = x[q], x[r]
}
