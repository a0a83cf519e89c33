package proportional

import "math"

// round visits every job once in order, each seeing the new rows of those
// before it (the paper's algorithms 1 and 2), and returns the largest move of
// a sub-budget relative to its job's budget, before damping: a job goes the
// part theta of the way to its new row.
//
// Cost: O(n·m); at alpha = 1/2 a square root and two divisions an entry.
func (s *Solver) round(theta float64) float64 {
	s.addUp() // anew in every round: rounding does not pile up
	if s.alpha == 0.5 && theta == 1 {
		return s.roundHalf()
	}
	move := 0.0
	for i, budget := range s.p.Budgets {
		if sum := s.appraise(i); sum > nothing {
			move = max(move, s.apply(i, budget, sum, theta))
		}
		k := i * s.m
		for j, r := range s.others {
			s.totals[j] = r + s.powers[k+j]
		}
	}
	return move
}

// nothing is the sum of values up to which a row stays as it is: next to it a
// budget would overflow. It is 0 but for bids that have died away.
const nothing = 1e-200

// appraise fills values with (∂u/∂s)·s·(1−s) for each class of job i, and
// others with the powers of all other jobs there; it returns the sum of the
// values. Where the job has most of a class, 1−s comes from the sum of the
// others: subtraction would lose its digits.
func (s *Solver) appraise(i int) float64 {
	k := i * s.m
	w, p := s.weights[k:k+s.m], s.powers[k:k+s.m]
	isLog, sum := s.p.log(i), 0.0
	for j, t := range s.totals {
		r := t - p[j]
		if r < p[j] {
			r = s.sumOthers(i, j)
			t = r + p[j]
		}
		s.others[j] = r
		v := 0.0
		if w[j] > 0 && t > 0 {
			v = w[j] * (r / t)
			if !isLog {
				v *= p[j] / t
			}
		}
		s.values[j] = v
		sum += v
	}
	return sum
}

// apply moves job i towards the row proportional to values and returns the
// largest whole move relative to the budget.
func (s *Solver) apply(i int, budget, sum, theta float64) float64 {
	k := i * s.m
	b, p := s.subbudgets[k:k+s.m], s.powers[k:k+s.m]
	scale, most := budget/sum, 0.0
	for j, v := range s.values {
		d := v*scale - b[j]
		most = max(most, math.Abs(d))
		if theta == 1 {
			b[j] = v * scale
		} else {
			b[j] += theta * d
		}
		p[j] = power(b[j], s.alpha)
	}
	return most / budget
}

// sumOthers adds up the powers of all jobs but i in class j. Only a job with
// most of a class needs it: at most one for each class at a time.
func (s *Solver) sumOthers(i, j int) float64 {
	sum := 0.0
	for k := j; k < i*s.m; k += s.m {
		sum += s.powers[k]
	}
	for k := (i+1)*s.m + j; k < len(s.powers); k += s.m {
		sum += s.powers[k]
	}
	return sum
}

// roundHalf is round(1) at alpha = 1/2, in one pass over the memory.
func (s *Solver) roundHalf() float64 {
	m, move := s.m, 0.0
	totals, values, others := s.totals[:m], s.values[:m], s.others[:m]
	for i, budget := range s.p.Budgets {
		lo, hi := i*m, i*m+m
		w, p, b := s.weights[lo:hi], s.powers[lo:hi], s.subbudgets[lo:hi]
		p, b, values, others, totals = p[:len(w)], b[:len(w)], values[:len(w)], others[:len(w)], totals[:len(w)]
		isLog, sum := s.p.log(i), 0.0
		for j, weight := range w {
			t, r := totals[j], totals[j]-p[j]
			if r < p[j] {
				r = s.sumOthers(i, j)
				t = r + p[j]
			}
			others[j] = r
			v := 0.0
			if t > 0 {
				inverse := 1 / t
				v = weight * r * inverse
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
		for j, r := range others {
			totals[j] = r + p[j]
		}
	}
	return move
}

// Limits of settle: entries visited in all and the rounds that takes at most,
// and the rounds in which the moves must have become smaller, else they are
// going in a circle.
const (
	mostVisits  = 1 << 28
	mostRounds  = 20_000
	cycleWindow = 200
)

// settle does rounds until nothing moves. When the moves have not shrunk at all
// over a window the jobs are chasing one another, which the plain round robin
// can do for ever above alpha = 1/2: then each goes half as far as before.
func (s *Solver) settle() {
	s.newton.ready, s.result.Converged = false, false
	theta, least := 1.0, math.Inf(1)
	last := s.result.Rounds + min(mostRounds, 100+mostVisits/len(s.weights))
	for since := 0; s.result.Rounds < last; since++ {
		move := s.round(theta)
		s.result.Rounds++
		if move <= Tolerance {
			s.result.Converged = true
			return
		}
		if move < 0.999*least {
			least, since = move, 0
		}
		if since >= cycleWindow {
			theta, least, since = max(theta/2, 1.0/1024), math.Inf(1), 0
		}
	}
}
