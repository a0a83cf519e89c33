package proportional

import "math"

// This file computes a job's best answer at any alpha in (0, 1]. The unknown is the logit z of the job's share s. Let
// sp(z) = ln(1+e^z). Then ln s = −sp(−z) and ln(1−s) = −sp(z). For a job that faces field f, the best bid is b =
// λ·w·s·(1−s) in the linear form, and b = λ·w·(1−s) in the logarithmic form. λ is the job's multiplier and w its
// weight. The logarithm of this condition is
//
//	a·sp(z) − k·sp(−z) = C,   C = ln λ + ln w − ln(f)/alpha.
//
// Here k = 1/alpha − 1 (linear) or 1/alpha (logarithmic). If f is the total T of the class, the job's power is p = s·T,
// and a = 1. If f is the sum Q of the other jobs' powers, then p = Q·e^z, and a = 1 + 1/alpha. The left side increases
// with z. Its slope is between a and k.

// answerAny computes the answer of job i. It finds the multiplier λ by Newton's method on ln Σ b, within a bracket. If
// the steps do not shrink fast, it halves the bracket. It returns false if it finds no answer.
func (w *newton) answerAny(i int) bool {
	w.prepare(i)
	target := math.Log(w.auction.p.Budgets[i])
	if !w.affordable(i, target) {
		return false
	}
	ell, low, high, before := w.guess[i], math.Inf(-1), math.Inf(1), math.Inf(1)
	if ell == 0 {
		ell = w.firstAny(i, target)
	}
	for range 4 * mostSteps {
		total, slope := w.spend(i, ell)
		off := target - math.Log(total)
		if math.Abs(off) <= 4e-15*(1+math.Abs(target)) {
			w.guess[i] = ell
			return true
		}
		if off > 0 {
			low = ell
		} else {
			high = ell
		}
		next := bracketed(ell, off*total/slope, before, low, high)
		before = math.Abs(next - ell)
		if next == ell || next == low || next == high { // no float64 is nearer to the solution
			w.guess[i] = ell
			return math.Abs(off) < 1e-9
		}
		ell = next
	}
	return false
}

// affordable reports whether the amounts that job i can spend in its classes add up to more than its budget; `target`
// is the logarithm of the budget. In a class with the field T, the job can spend at most T^(1/alpha). A field is the
// total of the powers that a job faces in a class.
func (w *newton) affordable(i int, target float64) bool {
	room := 0.0
	for j, c := range w.row.c {
		if math.IsInf(c, -1) {
			continue
		}
		f := w.field(i, j)
		if f >= w.auction.m {
			return true
		}
		room += math.Exp(w.row.logarithm[f] - target)
	}
	return room > 1
}

// bracketed returns the next guess for a solution. A bracket is an interval that contains the solution. The guess is
// the result of a Newton step, if it stays in the bracket and the step is at most half as long as the last step.
// Otherwise the guess is the middle of the bracket. If one side of the bracket is not known yet, bracketed makes a step
// of bounded length.
func bracketed(at, step, before, low, high float64) float64 {
	open := math.IsInf(low, -1) || math.IsInf(high, 1)
	if open {
		const far = 40
		switch {
		case math.IsInf(high, 1) && !(step > 0 && step < far):
			step = far
		case math.IsInf(low, -1) && !(step < 0 && step > -far):
			step = -far
		}
		return at + step
	}
	if next := at + step; math.Abs(step) <= before/2 && next > low && next < high {
		return next
	}
	return low + (high-low)/2
}

// prepare sets row.c, which has a number for each class, for job i. For a class that the job wants, the number is ln w
// − (ln f)/alpha. Here w is the job's weight, and f is the competition in the class that the job sees. For a class that
// the job does not want, the number is −∞.
func (w *newton) prepare(i int) {
	for j, weight := range w.auction.weights[i*w.auction.m : (i+1)*w.auction.m] {
		w.row.c[j] = math.Inf(-1)
		if weight > 0 {
			w.row.c[j] = math.Log(weight) - w.row.logarithm[w.field(i, j)]
		}
		w.row.z[j] = math.NaN() // z is not known yet
	}
}

// The method `field` returns the index of the field that job i faces in class j. A field is the sum of the powers of
// all jobs in the class. For a dominant job, it is the sum of the powers of the other jobs.
func (w *newton) field(i, j int) int {
	if w.dominant[j] == i {
		return w.auction.m + j
	}
	return j
}

// firstAny returns a first guess of ln λ, the unknown in the search for job i's bids. With this λ, the job would spend
// its whole budget on its best class.
func (w *newton) firstAny(i int, target float64) float64 {
	best, at := math.Inf(-1), 0
	for j, c := range w.row.c {
		if c > best {
			best, at = c, j
		}
	}
	curve := w.curve(i, at)
	share := min(math.Exp((target-w.row.logarithm[w.field(i, at)])*w.auction.alpha), 0.9)
	return curve.at(math.Log(share/(1-share))) - best
}

// spend computes the sub-budgets of job i (the row) for the multiplier λ with ln λ = ell. It returns their sum, and the
// derivative of the sum with respect to ell.
func (w *newton) spend(i int, ell float64) (total, slope float64) {
	a, alpha := &w.row, w.auction.alpha
	for j, c := range a.c {
		curve := w.curve(i, j)
		z := math.Inf(-1)
		if c+ell > 0 || curve.k > 0 && !math.IsInf(c, -1) {
			z = curve.solve(c+ell, a.z[j])
		}
		a.z[j] = z
		f := w.field(i, j)
		logPower := math.Log(w.fields[f]) + z // ln p
		rest := 1 / (1 + math.Exp(z))         // 1 − s
		g := 1 / (curve.a*(1-rest) + curve.k*rest)
		if f < w.auction.m {
			logPower -= softplus(z)
			g *= rest
		}
		if math.IsInf(z, -1) {
			a.p[j], a.pg[j], a.ph[j] = 0, 0, 0
			a.b[j], a.bg[j], a.bh[j] = 0, 0, 0
			continue
		}
		p, b := math.Exp(logPower), math.Exp(logPower/alpha)
		g /= alpha
		h := 1/alpha - g/alpha
		a.p[j], a.pg[j], a.ph[j] = p, alpha*p*g, alpha*p*h
		a.b[j], a.bg[j], a.bh[j] = b, b*g, b*h
		total += b
		slope += b * g
	}
	return total, slope
}

// curve is the function z ↦ a·sp(z) − k·sp(−z), where sp(z) = ln(1+e^z).
type curve struct{ a, k float64 }

func (w *newton) curve(i, j int) curve {
	c := curve{1, 1 / w.auction.alpha}
	if !w.auction.p.log(i) {
		c.k--
	}
	if w.dominant[j] == i {
		c.a += 1 / w.auction.alpha
	}
	return c
}

func (c curve) at(z float64) float64 { return c.a*softplus(z) - c.k*softplus(-z) }

// solve inverts the curve: it returns the z at which the curve has the value `y`. The curve is convex or concave
// everywhere, so Newton's method converges from any start. It starts from the argument `z` if this is finite, and
// otherwise from the result of the method `first`.
func (c curve) solve(y, z float64) float64 {
	if c.k == 0 { // alpha is 1 and the utility is linear: the curve has only positive values
		return math.Log(math.Expm1(y / c.a))
	}
	if math.IsNaN(z) || math.IsInf(z, 0) {
		z = c.first(y)
	}
	for range mostSteps {
		share := 1 / (1 + math.Exp(-z))
		d := (y - c.at(z)) / (c.a*share + c.k*(1-share))
		z += d
		if math.Abs(d) <= 1e-15*max(1, math.Abs(z)) {
			break
		}
	}
	return z
}

// This method returns a first guess of the z at which the curve has the value y. Far from 0 the curve is close to two
// straight lines. The guess is the z at which one of these lines has the value y.
func (c curve) first(y float64) float64 {
	if d := y - (c.a-c.k)*math.Ln2; d > 0 {
		return d / c.a
	} else {
		return d / c.k
	}
}

// softplus returns ln(1+e^z) without overflow.
func softplus(z float64) float64 {
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}
