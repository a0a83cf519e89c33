package proportional

import "math"

// rounds computes the bids of an auction by the rounds of the paper's algorithm. In a round, each job divides its
// budget again, as the best answer to the bids of the other jobs.
type rounds struct {
	auction *auction
	values  []float64 // m temporary values of a row
	others  []float64 // m temporary values of a row
}

func (r *rounds) reset(a *auction) {
	r.auction, r.values, r.others = a, resize(r.values, a.m), resize(r.others, a.m)
}

// round updates the rows of all jobs once, in order (the paper's algorithms 1 and 2). A row has the sub-budgets of a
// job. The new row of a job is computed from the new rows of the jobs before it and the old rows of the jobs after it.
// With damping, the row changes only by the part theta of the difference to its new value. round returns the largest
// change of a sub-budget without damping, relative to the job's budget.
//
// Cost: O(n·m); at alpha = 1/2 a square root and two divisions for each entry.
func (r *rounds) round(theta float64) float64 {
	a := r.auction
	a.addUp() // computed again in every round, so that rounding errors do not accumulate
	if a.alpha == 0.5 && theta == 1 {
		return r.roundHalf()
	}
	move := 0.0
	for i, budget := range a.p.Budgets {
		if sum := r.appraise(i); sum > nothing {
			move = max(move, r.apply(i, budget, sum, theta))
		}
		k := i * a.m
		for j, rest := range r.others {
			a.totals[j] = rest + a.powers[k+j]
		}
	}
	return move
}

// If the sum of a row's values is at most `nothing`, the row is not changed: dividing a budget by such a sum would
// overflow. The sum is at most `nothing` if all values are 0, or if the bids have become almost 0.
const nothing = 1e-200

// appraise computes two numbers of job i for each class, where s is the job's share of the class. It stores
// (∂u/∂s)·s·(1−s) in `values`, and the sum of the powers of all other jobs in `others`. It returns the sum of `values`.
// If the job has more than half of a class, appraise adds up the powers of the other jobs one by one, because a
// subtraction would lose digits.
func (r *rounds) appraise(i int) float64 {
	a, k := r.auction, i*r.auction.m
	w, p := a.weights[k:k+a.m], a.powers[k:k+a.m]
	isLog, sum := a.p.log(i), 0.0
	for j, t := range a.totals {
		rest := t - p[j]
		if rest < p[j] {
			rest = a.sumOthers(i, j)
			t = rest + p[j]
		}
		r.others[j] = rest
		v := 0.0
		if w[j] > 0 && t > 0 {
			v = w[j] * (rest / t)
			if !isLog {
				v *= p[j] / t
			}
		}
		r.values[j] = v
		sum += v
	}
	return sum
}

// apply moves the sub-budgets of job i towards a target. The target is the job's budget, divided in proportion to
// r.values. With theta = 0 the sub-budgets stay as they are, and with theta = 1 they become equal to the target. apply
// returns the largest change of a sub-budget that theta = 1 would make, as a fraction of the budget.
func (r *rounds) apply(i int, budget, sum, theta float64) float64 {
	a, k := r.auction, i*r.auction.m
	b, p := a.subbudgets[k:k+a.m], a.powers[k:k+a.m]
	scale, most := budget/sum, 0.0
	for j, v := range r.values {
		d := v*scale - b[j]
		most = max(most, math.Abs(d))
		if theta == 1 {
			b[j] = v * scale
		} else {
			b[j] += theta * d
		}
		p[j] = power(b[j], a.alpha)
	}
	return most / budget
}

// roundHalf does the same as round(1) for alpha = 1/2, but reads and writes the rows in the memory only once.
func (r *rounds) roundHalf() float64 {
	a, m, move := r.auction, r.auction.m, 0.0
	totals, values, others := a.totals[:m], r.values[:m], r.others[:m]
	for i, budget := range a.p.Budgets {
		lo, hi := i*m, i*m+m
		w, p, b := a.weights[lo:hi], a.powers[lo:hi], a.subbudgets[lo:hi]
		p, b, values, others, totals = p[:len(w)], b[:len(w)], values[:len(w)], others[:len(w)], totals[:len(w)]
		isLog, sum := a.p.log(i), 0.0
		for j, weight := range w {
			t, rest := totals[j], totals[j]-p[j]
			if rest < p[j] {
				rest = a.sumOthers(i, j)
				t = rest + p[j]
			}
			others[j] = rest
			v := 0.0
			if t > 0 {
				inverse := 1 / t
				v = weight * rest * inverse
				if !isLog {
					v *= p[j] * inverse
				}
			}
			values[j] = v
			sum += v
		}
		if sum > nothing {
			scale, most := budget/sum, 0.0
			for j, v := range values {
				next := v * scale
				most = max(most, math.Abs(next-b[j]))
				b[j], p[j] = next, math.Sqrt(next)
			}
			if most > move*budget {
				move = most / budget
			}
		}
		for j, rest := range others {
			totals[j] = rest + p[j]
		}
	}
	return move
}

// In a round, each job computes its bids anew. A round visits each bid of each job. mostVisits limits the number of
// visits in all rounds together, and mostRounds limits the number of rounds. If the changes have not become smaller
// over cycleWindow rounds, the rounds are assumed to repeat without end.
const (
	mostVisits  = 1 << 28
	mostRounds  = 20_000
	cycleWindow = 200
)

// settle repeats rounds until the changes are at most Tolerance, and reports whether they became so small. If alpha is
// above 1/2, the rounds may repeat without end. So if the changes have not become smaller over some rounds, each job
// moves only half as far in the next rounds.
func (r *rounds) settle() bool {
	a, theta, least := r.auction, 1.0, math.Inf(1)
	last := a.passes + min(mostRounds, 100+mostVisits/len(a.weights))
	for since := 0; a.passes < last; since++ {
		move := r.round(theta)
		a.passes++
		if move <= Tolerance {
			return true
		}
		if move < 0.999*least {
			least, since = move, 0
		}
		if since >= cycleWindow {
			theta, least, since = max(theta/2, 1.0/1024), math.Inf(1), 0
		}
	}
	return false
}
