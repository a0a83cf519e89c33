package proportional

import (
	"math"
	"math/big"
	"slices"
)

// precise solves problems that need more digits than float64 has. Example: alpha is near 1 and budgets are very
// different, so the bids of a poor job depend on the 18th digit of a rich job's bid. It uses the same method as newton,
// but with more digits. In each class, it treats the largest bidder as dominant. precise takes several hundred times as
// long as newton.
type precise struct {
	*digits
	auction              *auction
	spread               int          // number of binary orders of magnitude between the largest and the smallest number
	unit                 bool         // alpha is 1
	alpha, inverse, rest *big.Float   // alpha, 1/alpha, 1/alpha − 1
	dominant             []int        // m: the largest bidder of the class; −1 without a contest
	contenders           []int        // m: number of jobs that still compete in the class
	wanted               []int32      // n: number of classes that the job still wants
	fields, before, logs []*big.Float // 2m: fields and before as in newton; logs has ln(f)/alpha
	sum, step            []*big.Float // 2m elements
	jacobian             []*big.Float // 2m·2m elements
	weights, logWeights  []*big.Float // n·m; nil if the weight is 0
	budgets              []*big.Float // n elements
	hopeless             *big.Float   // if all other jobs together have less than this part of a class, its contest is over
	guess                []*big.Float // n: ln λ in the pass before; nil if there is none
	bids, powers         []*big.Float // n·m elements
	row                  []entry      // m elements
}

// entry is a job's best answer to the other bids in one class: the sub-budget b, and its power p. bg and pg are the
// derivatives of b and p by ln λ. bh and ph are the derivatives by ln f, with fixed λ. λ is the job's multiplier. The
// field f is the competition that the job faces in the class.
type entry struct{ p, pg, ph, b, bg, bh *big.Float }

// solvePrecisely finds the fixed point of an auction for its exponent. It moves the exponent from 1 − `near` to the
// auction's own exponent, in several steps if needed. At the call, the rows of `a` must have the fixed point for 1 −
// `near`.
func solvePrecisely(a *auction, near float64) bool {
	x := newPrecise(a)
	goal := 1 - a.p.Alpha
	if x.attempt(goal) {
		return true
	}
	factor := 0.03
	for last := a.passes + x.patience(); factor < 0.99 && a.passes < last; {
		next := max(goal, near*factor)
		if !x.attempt(next) {
			factor = math.Sqrt(factor)
			continue
		}
		x.concede()
		if next == goal || goal == 0 && x.attempt(0) {
			return true
		}
		near, factor = next, factor*factor
	}
	return false
}

// attempt calls solve. If solve fails, attempt sets the bids back to what they were before.
func (x *precise) attempt(short float64) bool {
	before := slices.Clone(x.bids)
	if !x.solve(short) {
		x.bids = before
		return false
	}
	if short == 1-x.auction.p.Alpha {
		for k, b := range x.bids {
			x.auction.subbudgets[k], x.auction.powers[k] = double(b), double(x.powers[k])
		}
	}
	return true
}

// Alpha is moved to its value in several steps. mostTries is the largest number of passes for one step. The method
// `patience` gives the largest number of passes for all steps together, so that the total time depends only on the
// number of jobs and classes.
const mostTries = 30

func (x *precise) patience() int { return min(max(2_000_000/len(x.bids), 20), 1000) }

func newPrecise(a *auction) *precise {
	n, m := a.n, a.m
	spread := orders(a.p.Budgets, a.weights)
	d := newDigits(uint(3*spread + 192))
	x := &precise{digits: d, auction: a, spread: spread,
		hopeless:   new(big.Float).SetMantExp(d.one, -800),
		dominant:   make([]int, m),
		contenders: slices.Clone(a.contenders),
		wanted:     slices.Clone(a.wanted),
		fields:     d.numbers(2 * m),
		before:     d.numbers(2 * m),
		logs:       d.numbers(2 * m),
		sum:        d.numbers(2 * m),
		step:       d.numbers(2 * m),
		jacobian:   d.numbers(4 * m * m),
		weights:    make([]*big.Float, n*m),
		logWeights: make([]*big.Float, n*m),
		budgets:    d.numbers(n),
		guess:      make([]*big.Float, n),
		bids:       d.numbers(n * m),
		powers:     d.numbers(n * m),
		row:        make([]entry, m),
	}
	for i := range n {
		x.take(i)
	}
	return x
}

// orders compares the smallest and the largest positive number of each vector. It returns an upper bound of the largest
// ratio between them, in binary orders of magnitude.
func orders(vectors ...[]float64) int {
	most := 0
	for _, v := range vectors {
		low, high := math.Inf(1), 0.0
		for _, y := range v {
			if y > 0 {
				low, high = min(low, y), max(high, y)
			}
		}
		if high > 0 {
			most = max(most, math.Ilogb(high)-math.Ilogb(low))
		}
	}
	return most + 8
}

// take copies job i from the solver. Then it scales the job's bids, so that their sum is exactly the budget.
func (x *precise) take(i int) {
	m := x.auction.m
	x.budgets[i].SetFloat64(x.auction.p.Budgets[i])
	total := x.number(0)
	for k := i * m; k < (i+1)*m; k++ {
		x.bids[k].SetFloat64(x.auction.subbudgets[k])
		total.Add(total, x.bids[k])
		if w := x.auction.weights[k]; w > 0 {
			x.weights[k] = x.number(w)
			x.logWeights[k] = x.log(x.weights[k])
		}
	}
	for k := i * m; k < (i+1)*m && total.Sign() > 0; k++ {
		x.bids[k].Mul(x.bids[k], over(x.budgets[i], total))
	}
}

func (d *digits) numbers(n int) []*big.Float {
	out := make([]*big.Float, n)
	for i := range out {
		out[i] = d.number(0)
	}
	return out
}

// solve runs Newton's method for alpha = 1 − `short`, and starts at the present bids. After a step, each job answers
// the fields with new bids, and these bids give new fields. The error of the step is the largest difference between a
// field and its new value. If a step does not reduce this error, a line search shortens the step.
func (x *precise) solve(short float64) bool {
	x.unit = short == 0
	x.alpha = minus(x.one, x.number(short))
	x.inverse = over(x.one, x.alpha)
	x.rest = minus(x.inverse, x.one)
	clear(x.guess)
	x.start()
	enough := math.Ldexp(1, -2*x.spread-60)
	last, length := math.Inf(1), 1.0
	for range mostTries {
		gap := x.pass()
		switch {
		case gap <= enough:
			return true
		case gap < last:
			last, length = gap, 1
			if !x.direction() {
				return false
			}
			for f, y := range x.fields {
				x.before[f].Set(y)
			}
		default:
			if length /= 2; math.IsInf(last, 1) || length < 0.03 {
				return false
			}
		}
		for f, d := range x.step {
			x.fields[f] = times(x.before[f], x.exp(times(d, x.number(length))))
		}
	}
	return false
}

// concede ends contests for a class that are decided. A contest is decided if one job has the whole class, except for
// at most the part x.hopeless. Then the row of this job is fixed: the job keeps its bids. The other jobs stop bidding
// for all classes of this job. Such contests occur if alpha is near 1 and poor jobs can have a class to themselves. The
// poor jobs then bid almost everything in this class, and their bids in other classes become too small to compute.
func (x *precise) concede() {
	m := x.auction.m
	for j, d := range x.dominant {
		if d < 0 || less(x.hopeless, over(x.fields[m+j], x.fields[j])) {
			continue
		}
		x.wanted[d] = kept
		for k := range m {
			if x.weights[d*m+k] != nil {
				x.abandon(d, k)
			}
		}
	}
}

func (x *precise) abandon(d, j int) {
	m := x.auction.m
	for i := range x.auction.n {
		if k := i*m + j; i != d && x.weights[k] != nil {
			x.weights[k], x.bids[k] = nil, x.number(0)
			x.wanted[i]--
		}
	}
	x.contenders[j], x.dominant[j] = 1, -1
}

// For each job, the list x.wanted has the number of classes that the job wants. If the bids of a job are not computed
// again, its element in the list is the constant kept.
const kept = -1

func (x *precise) start() {
	m := x.auction.m
	for j := range x.dominant {
		x.dominant[j] = -1
		if x.contenders[j] < 2 {
			continue
		}
		d := j
		for k := j; k < len(x.bids); k += m {
			if less(x.bids[d], x.bids[k]) {
				d = k
			}
		}
		x.dominant[j] = d / m
		others := x.number(0)
		for k := j; k < len(x.bids); k += m {
			if k != d {
				others.Add(others, x.power(x.bids[k]))
			}
		}
		x.fields[m+j], x.fields[j] = others, plus(others, x.power(x.bids[d]))
	}
}

func (x *precise) power(b *big.Float) *big.Float {
	if x.unit || b.Sign() == 0 {
		return b
	}
	return x.exp(times(x.alpha, x.log(b)))
}

// pass computes how every job divides its budget under the present fields, like newton.pass, but with more digits.
func (x *precise) pass() float64 {
	x.auction.passes++
	for _, v := range [...][]*big.Float{x.sum, x.jacobian} {
		for _, y := range v {
			y.SetFloat64(0)
		}
	}
	for f, y := range x.fields {
		if !x.active(f) {
			continue
		}
		if y.Sign() <= 0 || y.IsInf() {
			return math.NaN()
		}
		x.logs[f] = times(x.log(y), x.inverse)
	}
	for i := range x.auction.n {
		if !x.respond(i) {
			return math.NaN()
		}
		x.accumulate(i)
	}
	return x.gap()
}

func (x *precise) active(f int) bool { return x.dominant[f%x.auction.m] >= 0 }

// answered returns the value that field f gets from the bids of all jobs, given the present fields. If no job bids,
// this value would be 0. Then answered returns a tiny part of the field's present value.
func (x *precise) answered(f int) *big.Float {
	sum := x.sum[f]
	if f < x.auction.m {
		sum = plus(sum, x.fields[x.auction.m+f])
	}
	if least := new(big.Float).SetMantExp(x.fields[f], -64); less(sum, least) && x.unit {
		return least
	}
	return sum
}

// residual measures how far field f is from a fixed point. It is the logarithm of the quotient: the new value of the
// field, computed from the answers, divided by the present value. A logarithm is used because bids can be wrong by many
// orders of magnitude.
func (x *precise) residual(f int) *big.Float {
	ratio := over(x.answered(f), x.fields[f])
	if ratio.Sign() <= 0 {
		return x.number(math.Inf(-1))
	}
	return x.log(ratio)
}

func (x *precise) gap() float64 {
	most := 0.0
	for f := range x.fields {
		if x.active(f) {
			most = max(most, math.Abs(double(x.residual(f))))
		}
	}
	return most
}

// accumulate adds job i to Newton's equations, as newton.accumulate does, but with more digits. It uses the general
// equations, which also hold for a class in which one job has most of the total (a dominant job).
func (x *precise) accumulate(i int) {
	m, size := x.auction.m, 2*x.auction.m
	slack := x.number(0)
	for _, e := range x.row {
		slack.Add(slack, e.bg)
	}
	for j, e := range x.row {
		if x.weights[i*m+j] == nil {
			continue
		}
		equation, field := m+j, x.field(i, j)
		if field == m+j {
			equation = j
		}
		x.sum[equation].Add(x.sum[equation], e.p)
		row := x.jacobian[equation*size : (equation+1)*size]
		row[field].Add(row[field], e.ph)
		if slack.Sign() == 0 {
			continue
		}
		factor := over(e.pg, slack)
		for k, other := range x.row {
			f := x.field(i, k)
			row[f].Sub(row[f], times(factor, other.bh))
		}
	}
}

// direction does the same as newton.direction, but computes with more digits.
func (x *precise) direction() bool {
	m, size := x.auction.m, 2*x.auction.m
	matrix := make([]*big.Float, size*size)
	for f := range size {
		row := matrix[f*size : (f+1)*size]
		for g := range row {
			row[g] = x.number(0)
		}
		row[f].SetFloat64(1)
		x.step[f] = x.number(0)
		if !x.active(f) {
			continue
		}
		answered := x.answered(f)
		for g := range row {
			row[g].Sub(row[g], over(x.jacobian[f*size+g], answered))
		}
		if f < m {
			row[m+f].Sub(row[m+f], over(x.fields[m+f], answered))
		}
		x.step[f] = x.residual(f)
		if x.step[f].IsInf() {
			return false
		}
	}
	if !eliminatePrecisely(matrix, x.step) {
		return false
	}
	x.shorten()
	return true
}

// shorten makes the step shorter if a logarithm of a field would change too much. The bound is longestStep, or a
// quarter of the logarithm's absolute value if this is more. Fields grow like a power of 1/(1 − alpha), so their
// logarithms can be large.
func (x *precise) shorten() {
	most := 1.0
	for f, d := range x.step {
		if x.active(f) {
			most = max(most, math.Abs(double(d))/max(longestStep, math.Abs(double(x.logs[f]))/4))
		}
	}
	for _, d := range x.step {
		d.Quo(d, x.number(most))
	}
}
