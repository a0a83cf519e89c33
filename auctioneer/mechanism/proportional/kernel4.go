package proportional

import "math"

// sums4 are newton's sums for four classes without a dominant job.
type sums4 struct {
	sum      [4]float64
	jacobian [4][4]float64
}

// pass4 is the pass over linear and logarithmic jobs alike for the commonest
// market, alpha = 1/2 and four classes; arrays of a known length spare the
// bounds checks and stay in registers.
func (w *newton) pass4() bool {
	var a sums4
	bids := w.auction
	fields, inverse := (*[4]float64)(w.fields), (*[4]float64)(w.row.inverse)
	for i, budget := range bids.p.Budgets {
		if bids.p.log(i) || bids.wanted[i] < 2 {
			if !w.respond(i) {
				return false
			}
			w.accumulatePlain(1)
			continue
		}
		k := i * 4
		if w.guess[i] == 0 {
			w.guess[i] = firstLinear(budget, bids.weights[k:k+4], w.row.inverse)
		}
		lambda := a.linear(budget, w.guess[i], w.loose, (*[4]float64)(bids.weights[k:]), fields, inverse,
			(*[4]float64)(bids.powers[k:]), (*[4]float64)(bids.subbudgets[k:]))
		if !(lambda > 0) {
			return false
		}
		w.guess[i] = lambda
	}
	for j := range 4 {
		w.sum[j] += a.sum[j]
		for k := range 4 {
			w.jacobian[j*8+k] += a.jacobian[j][k]
		}
	}
	return true
}

// linear is answerHalfLinear, finishLinear and accumulatePlain in one; it
// returns the multiplier, 0 if there is none. The derivatives are those before
// the last correction: they steer the search and need not be exact.
func (a *sums4) linear(budget, lambda, loose float64, w, fields, inverse, p, b *[4]float64) float64 {
	var rest [4]float64
	for range mostSteps {
		total, slope := 0.0, 0.0
		for j := range 4 {
			x := lambda * w[j] * inverse[j]
			r := 1 / (1 + x)
			power := fields[j] * x * r
			spent := power * power
			rest[j], p[j], b[j] = r, power, spent
			total += spent
			slope += spent * r
		}
		off := budget - total
		if math.Abs(off) < loose*budget {
			a.add(0.5/slope, off, &rest, p, b)
			return lambda * (1 + 0.5*off/slope)
		}
		factor := 1 + (math.Sqrt(budget/total)-1)*total/slope
		lambda *= min(max(factor, 0.1), 10)
	}
	return 0
}

// add corrects the answer for what is off, and accumulates it; inverse is
// 1/Σ bg.
func (a *sums4) add(inverse, off float64, rest, p, b *[4]float64) {
	change := off * inverse
	var bh [4]float64
	for k, r := range rest {
		bh[k] = 2 * b[k] * (1 - 2*r) * inverse
	}
	for j, r := range rest {
		pg, row := p[j]*r, &a.jacobian[j]
		row[j] += p[j] - 2*pg
		row[0] -= pg * bh[0]
		row[1] -= pg * bh[1]
		row[2] -= pg * bh[2]
		row[3] -= pg * bh[3]
		p[j] += pg * change
		b[j] += 2 * b[j] * r * change
		a.sum[j] += p[j]
	}
}
