package proportional

import "math"

// mostSteps is the maximum number of steps of the search for the multiplier λ of one job.
const mostSteps = 60

// The search for a job's multiplier λ looks for bids that spend the whole budget. It stops when the relative error of
// the spent amount is at most closeEnough. A last correction to first order then reduces the error to about its square.
// While the competition in the classes is known only roughly, the search stops at a larger error (newton.loose).
const closeEnough = 3e-7

// answerHalfLinear computes how job i divides its budget at alpha = 1/2, if its utility is linear. In each class, b is
// the job's bid, s its share, w its weight and T the competition, and λ is the same in all classes. From the equations
// b = λ·w·s·(1−s) and s = √b/T it follows that s = x/(1+x) with x = λ·w/T². So only λ is unknown. It is found by
// Newton's method on √(Σ b), which is nearly linear in λ. If the method fails, answerHalfLinear returns false.
func (w *newton) answerHalfLinear(i int) bool {
	m := w.auction.m
	a, weights := &w.row, w.auction.weights[i*m:i*m+m]
	budget, lambda := w.auction.p.Budgets[i], w.guess[i]
	if lambda == 0 {
		lambda = firstLinear(budget, weights, a.inverse)
	}
	rest, p, b := a.z[:len(weights)], a.p[:len(weights)], a.b[:len(weights)]
	inverse, fields := a.inverse[:len(weights)], w.fields[:len(weights)]
	for range mostSteps {
		total, slope := 0.0, 0.0
		for j, weight := range weights {
			x := lambda * weight * inverse[j]
			r := 1 / (1 + x)
			power := fields[j] * x * r
			rest[j], p[j], b[j] = r, power, power*power
			total += b[j]
			slope += b[j] * r
		}
		off := budget - total
		if math.Abs(off) < w.loose*budget {
			w.guess[i] = lambda * (1 + 0.5*off/slope)
			a.finishLinear(0.5 * off / slope)
			return true
		}
		factor := 1 + (math.Sqrt(budget/total)-1)*total/slope
		lambda *= min(max(factor, 0.1), 10)
	}
	return false
}

// firstLinear returns a first guess of the multiplier λ of a job with linear utility. If all shares of the job are
// small, the guess is exact.
func firstLinear(budget float64, w, inverse []float64) float64 {
	sum := 0.0
	for j, weight := range w {
		sum += weight * weight * inverse[j]
	}
	return math.Sqrt(budget / sum)
}

// finishLinear corrects the answer after ln λ has changed by a small amount. It uses the first derivative only. It also
// sets the derivatives of the answer.
func (a *answer) finishLinear(change float64) {
	rest, p, b := a.z, a.p[:len(a.z)], a.b[:len(a.z)]
	pg, ph, bg, bh := a.pg[:len(rest)], a.ph[:len(rest)], a.bg[:len(rest)], a.bh[:len(rest)]
	for j, r := range rest {
		p[j] += p[j] * r * change
		b[j] += 2 * b[j] * r * change
		pg[j], ph[j] = p[j]*r, p[j]*(1-2*r)
		bg[j], bh[j] = 2*b[j]*r, 2*b[j]*(1-2*r)
	}
}

// answerHalfLog computes how job i divides its budget at alpha = 1/2, if its utility is logarithmic. A class has the
// weight w and the sum of powers T, and the job has the share s and the sub-budget b there. The equations b = λ·w·(1−s)
// and s = √b/T give s²/(1−s) = y with y = λ·w/T². So only λ is unknown. It is found by Newton's method, because the sum
// of all b is nearly linear in λ. If the method fails, answerHalfLog returns false.
func (w *newton) answerHalfLog(i int) bool {
	m := w.auction.m
	a, weights := &w.row, w.auction.weights[i*m:i*m+m]
	budget, lambda := w.auction.p.Budgets[i], w.guess[i]
	if lambda == 0 {
		lambda = firstLog(budget, weights)
	}
	share, p, b, g := a.z[:len(weights)], a.p[:len(weights)], a.b[:len(weights)], a.c[:len(weights)]
	inverse, fields := a.inverse[:len(weights)], w.fields[:len(weights)]
	for range mostSteps {
		total, slope := 0.0, 0.0
		for j, weight := range weights {
			y := lambda * weight * inverse[j]
			x := 2 / (1 + math.Sqrt(1+4/y)) // 0 if y is 0
			power := fields[j] * x
			share[j], p[j], b[j] = x, power, power*power
			g[j] = (1 - x) / (1 - 0.5*x)
			total += b[j]
			slope += b[j] * g[j]
		}
		off := budget - total
		if math.Abs(off) < w.loose*budget {
			w.guess[i] = lambda * (1 + off/slope)
			a.finishLog(off / slope)
			return true
		}
		lambda *= min(max(1+off/slope, 0.1), 10)
	}
	return false
}

// firstLog guesses the multiplier λ of a job with a logarithmic utility, as if all its shares were small.
func firstLog(budget float64, w []float64) float64 {
	sum := 0.0
	for _, weight := range w {
		sum += weight
	}
	return budget / sum
}

// finishLog corrects the answer for a logarithmic utility after ln λ has changed by a small amount. It also sets the
// derivatives of the answer. Element j of the slice a.c is d ln b/d ln λ for class j.
func (a *answer) finishLog(change float64) {
	share, g, p, b := a.z, a.c[:len(a.z)], a.p[:len(a.z)], a.b[:len(a.z)]
	for j, x := range share {
		p[j] += 0.5 * p[j] * g[j] * change
		b[j] += b[j] * g[j] * change
		h := x / (1 - 0.5*x)
		a.pg[j], a.ph[j] = 0.5*p[j]*g[j], 0.5*p[j]*h
		a.bg[j], a.bh[j] = b[j]*g[j], b[j]*h
	}
}
