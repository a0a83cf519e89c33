package proportional

import (
	"math"
	"math/big"
)

func (x *precise) field(i, j int) int {
	if x.dominant[j] == i {
		return x.auction.m + j
	}
	return j
}

// respond computes the new bids of job i for the current values of `fields`. It returns false if the job cannot spend
// its budget at these values.
func (x *precise) respond(i int) bool {
	m := x.auction.m
	if x.wanted[i] < 2 {
		zero := x.number(0)
		for j := range x.row {
			x.row[j] = entry{zero, zero, zero, zero, zero, zero}
			if x.wanted[i] == kept {
				x.row[j].b = x.bids[i*m+j]
			} else if x.weights[i*m+j] != nil {
				x.row[j].b = x.budgets[i]
			}
			x.row[j].p = x.power(x.row[j].b)
		}
	} else if !x.affordable(i) || !x.spendAll(i) {
		return false
	}
	for j, e := range x.row {
		x.bids[i*m+j], x.powers[i*m+j] = e.b, e.p
	}
	return true
}

func (x *precise) affordable(i int) bool {
	room := x.number(0)
	for j := range x.row {
		if x.weights[i*x.auction.m+j] == nil {
			continue
		}
		if x.dominant[j] == i {
			return true
		}
		room.Add(room, x.exp(x.logs[j]))
	}
	return less(x.budgets[i], room)
}

// spendAll does the same as newton.answerAny, but with more digits.
func (x *precise) spendAll(i int) bool {
	ell := x.guess[i]
	if ell == nil {
		ell = x.firstGuess(i)
	}
	enough := math.Ldexp(1, -2*x.spread-100)
	var low, high *big.Float
	before := math.Inf(1)
	for range 20 * mostSteps {
		total, slope := x.spend(i, ell)
		off := x.number(math.Inf(1))
		if total.Sign() > 0 {
			off = minus(over(x.budgets[i], total), x.one)
		}
		if math.Abs(double(off)) <= enough {
			x.guess[i] = ell
			return true
		}
		if off.Sign() > 0 {
			low = ell
		} else {
			high = ell
		}
		next := x.bracketed(ell, low, high, off, total, slope, before)
		if next.Cmp(ell) == 0 {
			return false
		}
		before = math.Abs(double(minus(next, ell)))
		ell = next
	}
	return false
}

// bracketed returns the next guess of ln λ after the guess `ell`. The argument `off` is the wanted total minus the
// total at `ell`. Usually the next guess comes from a Newton step on the logarithm of the total. This step must end
// between `low` and `high`, and be at most half as long as the step before it. If it does not, the next guess is the
// middle of `low` and `high`. If `low` or `high` is not known, the next guess comes from a step of bounded size.
func (x *precise) bracketed(ell, low, high, off, total, slope *big.Float, before float64) *big.Float {
	const far = 40
	step := x.number(math.Inf(1))
	if slope.Sign() > 0 {
		if short := double(off); math.Abs(short) > 1e-3 {
			off = x.number(math.Log1p(min(short, math.MaxFloat64)))
		}
		step = over(times(off, total), slope)
	}
	length := double(step)
	switch {
	case high == nil && !(length < far):
		return plus(ell, x.number(far))
	case low == nil && !(length > -far):
		return minus(ell, x.number(far))
	case low == nil || high == nil:
		return plus(ell, step)
	}
	if math.Abs(length) <= before/2 {
		if next := plus(ell, step); less(low, next) && less(next, high) {
			return next
		}
	}
	return over(plus(low, high), x.two)
}

// firstGuess returns a first guess of ln λ for job i. With this λ, the largest bid of job i is equal to its present
// bid.
func (x *precise) firstGuess(i int) *big.Float {
	m, at := x.auction.m, -1
	for j := range x.row {
		if k := i*m + j; x.weights[k] != nil && (at < 0 || less(x.bids[i*m+at], x.bids[k])) {
			at = j
		}
	}
	others := minus(x.fields[at], x.power(x.bids[i*m+at]))
	if x.dominant[at] == i {
		others = x.fields[m+at]
	}
	if others.Sign() <= 0 || x.bids[i*m+at].Sign() == 0 {
		return x.number(0)
	}
	share := minus(x.one, over(others, x.fields[at]))
	ell := minus(x.log(x.bids[i*m+at]), x.logWeights[i*m+at])
	ell = minus(ell, x.log(over(others, x.fields[at])))
	if !x.auction.p.log(i) && share.Sign() > 0 {
		ell = minus(ell, x.log(share))
	}
	return ell
}

// spend computes the row of a job for the given ln λ, the argument `ell`. It returns the sum of the sub-budgets in this
// row, and the derivative of the sum by ln λ.
func (x *precise) spend(i int, ell *big.Float) (total, slope *big.Float) {
	total, slope = x.number(0), x.number(0)
	var lambda *big.Float
	if x.unit {
		lambda = x.exp(ell)
	}
	zero := x.number(0)
	for j := range x.row {
		k, e := i*x.auction.m+j, &x.row[j]
		switch {
		case x.weights[k] == nil:
			*e = entry{zero, zero, zero, zero, zero, zero}
		case x.unit:
			x.atOne(e, x.auction.p.log(i), x.dominant[j] == i, times(lambda, x.weights[k]), x.fields[x.field(i, j)])
		default:
			x.below(e, i, j, plus(ell, x.logWeights[k]))
		}
		total.Add(total, e.b)
		slope.Add(slope, e.bg)
	}
	return total, slope
}

// atOne computes the answer at alpha = 1. There the bid is b = s·T = s/(1−s)·Q, where s is the share, T the total of
// all bids, and Q the sum of the other bids. It solves one of these equations, where a is λ·w:
//
//	linear: 1 = a·(1−s)/T; b = 0 if the right side is below 1 even for s = 0
//	log:    b = a·(1−s)
func (x *precise) atOne(e *entry, isLog, dominant bool, a, f *big.Float) {
	switch {
	case isLog && dominant: // b² + b·Q = a·Q
		e.b = over(minus(root(plus(times(f, f), times(x.number(4), times(a, f)))), f), x.two)
		d := plus(times(x.two, e.b), f)
		e.bg, e.bh = over(times(f, a), d), over(times(minus(a, e.b), f), d)
	case isLog:
		d := plus(a, f)
		e.b = over(times(a, f), d)
		e.bg, e.bh = over(times(e.b, f), d), over(times(e.b, a), d)
	case !less(f, a):
		zero := x.number(0)
		e.b, e.bg, e.bh = zero, zero, zero
	case dominant:
		half := over(root(times(a, f)), x.two)
		e.b, e.bg, e.bh = minus(plus(half, half), f), half, minus(half, f)
	default:
		spared := over(times(f, f), a)
		e.b, e.bg = minus(f, spared), spared
		e.bh = minus(e.b, spared)
	}
	e.p, e.pg, e.ph = e.b, e.bg, e.bh
}

// The method `below` computes the best answer of a job if alpha is below 1. It uses the logit of the job's share; see
// newton.answerAny.
func (x *precise) below(e *entry, i, j int, c *big.Float) {
	a, k := x.one, x.inverse
	if !x.auction.p.log(i) {
		k = x.rest
	}
	f := x.field(i, j)
	if f != j {
		a = plus(x.one, x.inverse)
	}
	z := x.invert(a, k, minus(c, x.logs[f]))
	odds := x.exp(z)
	spare := over(x.one, plus(x.one, odds)) // 1 − s
	logBid := plus(x.logs[f], times(z, x.inverse))
	g := over(x.one, plus(times(a, minus(x.one, spare)), times(k, spare)))
	if f == j {
		logBid = minus(logBid, times(x.softplus(z), x.inverse))
		g = times(g, spare)
	}
	e.b, e.p = x.exp(logBid), x.exp(times(logBid, x.alpha))
	g = times(g, x.inverse)
	h := minus(x.inverse, times(g, x.inverse))
	e.bg, e.bh = times(e.b, g), times(e.b, h)
	e.pg, e.ph = times(e.p, times(x.alpha, g)), times(e.p, times(x.alpha, h))
}

// invert returns the z with a·sp(z) − k·sp(−z) = y, where sp(z) = ln(1 + eᶻ). It first computes z in float64, and then
// improves it by Newton's method.
func (x *precise) invert(a, k, y *big.Float) *big.Float {
	rough := curve{double(a), double(k)}.search(double(y))
	z := x.number(rough)
	for range 8 {
		positive := x.softplus(z)
		share := over(x.one, plus(x.one, x.exp(new(big.Float).Neg(z))))
		value := minus(times(a, positive), times(k, minus(positive, z)))
		slope := plus(times(a, share), times(k, minus(x.one, share)))
		d := over(minus(y, value), slope)
		z = plus(z, d)
		if math.Abs(double(d)) <= math.Ldexp(1, -int(x.bits)/2)*max(1, math.Abs(rough)) {
			break
		}
	}
	return z
}

// search finds the point at which the curve has the value y. The curve must rise (its field k is above 0). search
// starts with an interval that contains the point, and halves the interval again and again. Newton's method is not
// used, because it could leave the interval.
func (c curve) search(y float64) float64 {
	low, high := -1.0, 1.0
	for c.at(low) > y {
		low *= 2
	}
	for c.at(high) < y {
		high *= 2
	}
	for range 200 {
		if mid := low + (high-low)/2; c.at(mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
