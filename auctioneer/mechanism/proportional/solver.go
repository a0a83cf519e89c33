package proportional

import (
	"math"
	"slices"
)

// Tolerance is the accuracy of the solver. The solver stops when one more round would change no sub-budget by more than
// this part of the budget.
const Tolerance = 1e-12

// mostAmbiguous is a limit for auctions whose alpha is above 1/2. With at most this number of entries, an auction is
// solved as if it could have several fixed points; see doc.go.
const mostAmbiguous = 2048

// Result is a fixed point that a Solver has found. Its slices belong to the Solver, and are valid until the Solver's
// next call.
type Result struct {
	Subbudgets []float64 // n·m, in the unit of the budgets
	Shares     []float64 // n·m, in [0, 1]; each class sums to 1
	Rounds     int       // number of passes over the jobs
	Converged  bool
}

// Solver finds fixed points. Its zero value is ready to use. It keeps its memory: a problem no larger than an earlier
// one is solved without allocation. It is not safe for concurrent use.
type Solver struct {
	auction auction
	rounds  rounds
	newton  newton
	shares  []float64 // n·m
	start   []float64 // n·m: saved sub-budgets
	beyond  bool      // the outcome needed more digits than float64 has
	result  Result
}

// Solve finds the fixed point of p from the even split. Cost: about 6 passes at alpha = 1/2, each O(n·m²).
func (s *Solver) Solve(p *Problem) (*Result, error) {
	return s.solve(p, false)
}

// Resolve finds the fixed point of the problem p. It starts from the class totals of the last call. The problem of the
// last call must have had the same alpha and the same number of classes. The result equals the result of Solve within
// Tolerance. Resolve needs fewer rounds, because its start is nearer to the fixed point.
func (s *Solver) Resolve(p *Problem) (*Result, error) {
	return s.solve(p, true)
}

// Rounds does k rounds exactly as in the paper's algorithm 1. It begins with budgets that are split evenly between
// classes. In each round, each job in turn takes one step of algorithm 2. Rounds stops earlier if nothing changes by
// more than Tolerance. Sometimes bids repeat in a circle; Rounds then does not make the steps smaller, as Solve would.
// It treats all classes alike.
func (s *Solver) Rounds(p *Problem, k int) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s.reset(p)
	a, r := &s.auction, &s.result
	copy(a.weights, p.Weights)
	a.splitEvenly()
	for a.passes < k && !r.Converged {
		r.Converged = s.rounds.round(1) <= Tolerance
		a.passes++
	}
	r.Rounds = a.passes
	s.divide()
	return r, nil
}

func (s *Solver) solve(p *Problem, warm bool) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	a := &s.auction
	warm = warm && s.newton.ready && a.m == p.Classes && a.alpha == p.Alpha
	s.reset(p)
	a.contest()
	converged := true
	switch {
	case a.n == 0:
	case p.Alpha == 0 || a.n == 1:
		a.splitEvenly()
		s.rounds.round(1)
		a.passes = 1
	case p.Alpha < leastNewtonAlpha:
		a.splitByWeight()
		converged = s.rounds.settle()
	case p.Alpha > 0.5 && len(p.Weights) <= mostAmbiguous:
		converged = s.byRounds()
	default:
		converged = s.fixedPoint(warm)
	}
	s.result.Rounds, s.result.Converged = a.passes, converged
	s.divide()
	s.uncontested()
	return &s.result, nil
}

func (s *Solver) reset(p *Problem) {
	s.auction.reset(p)
	s.rounds.reset(&s.auction)
	s.newton.auction, s.newton.ready, s.beyond = &s.auction, false, false
	s.shares = resize(s.shares, len(p.Weights))
	s.result = Result{Subbudgets: s.auction.subbudgets, Shares: s.shares}
}

// fixedPoint solves the auction, or returns false. If `warm` is true, it starts from the fields of the last outcome.
func (s *Solver) fixedPoint(warm bool) bool {
	a, w := &s.auction, &s.newton
	// if the number of jobs is the same, the jobs and their multipliers are usually nearly the same too
	same := len(w.guess) == a.n
	w.reset()
	if !same {
		clear(w.guess)
	}
	if warm && w.keepFields() && w.iterate(closeEnough) {
		return true
	}
	a.splitByWeight()
	return s.fromBids()
}

// An auction may have several fixed points. byRounds finds the one that the paper's rounds reach from this start: each
// job splits its budget evenly over the classes. If the rounds take too long, Newton's method continues from the bids
// that they have reached.
func (s *Solver) byRounds() bool {
	a := &s.auction
	a.splitEvenly()
	for i, n := range a.wanted {
		if n == 0 {
			clear(a.subbudgets[i*a.m : (i+1)*a.m])
			clear(a.powers[i*a.m : (i+1)*a.m])
		}
	}
	settled := s.rounds.settle()
	s.newton.reset()
	if settled {
		s.polish()
		return true
	}
	return s.fromBids()
}

// fromBids finds the fixed point by Newton's method, which starts from the present bids. If they are too far from the
// fixed point, it first solves the auction with smaller exponents alpha. If float64 has too few digits, it uses numbers
// with more digits.
func (s *Solver) fromBids() bool {
	a, w := &s.auction, &s.newton
	clear(w.guess)
	w.fieldsFromBids()
	reached := a.alpha
	if !w.iterate(farOff) {
		reached = s.climb()
	}
	if reached == a.p.Alpha {
		if a.alpha < leastPolished {
			return true
		}
		s.start = append(s.start[:0], a.subbudgets...)
		if s.atRest() {
			return true
		}
	}
	return s.beyondDoubles(reached)
}

// polish improves the result of the method of rounds with Newton's method. After the rounds, the distance from the
// fixed point is about the last change multiplied by 1/(1 − alpha). polish does nothing if alpha is above mostPolished,
// because float64 then has too few digits. If the improved result is far from the result of the rounds, it belongs to
// another fixed point, and is not used.
func (s *Solver) polish() {
	a := &s.auction
	if a.alpha < leastPolished || a.alpha > mostPolished {
		return
	}
	clear(s.newton.guess)
	s.start = append(s.start[:0], a.subbudgets...)
	s.newton.fieldsFromBids()
	good := s.newton.iterate(closeEnough)
	for k, b := range a.subbudgets {
		good = good && math.Abs(s.start[k]-b) < nearby*a.p.Budgets[k/a.m]
		s.shares[k] = s.start[k] // use shares as scratch memory: the shares are not computed yet
		s.start[k] = b
	}
	if !good || !s.atRest() {
		copy(a.subbudgets, s.shares)
		a.total()
	}
	s.newton.ready = false
}

const (
	leastPolished, mostPolished = 0.9, 0.9999
	nearby                      = 1e-7
)

// climb solves the auction in steps. It begins with an exponent smaller than alpha, for which the auction is easier to
// solve. Each step multiplies 1 − exponent by a factor below 1. The factor is chosen so that Newton's method still
// converges. If alpha is 1, the last step sets the exponent to 1. climb returns the exponent that it reached. The field
// s.start then has the bids for this exponent.
func (s *Solver) climb() float64 {
	a, goal := &s.auction, s.auction.p.Alpha
	a.alpha = min(goal/2, 0.25)
	a.splitByWeight()
	s.rounds.settle()
	s.start = append(s.start[:0], a.subbudgets...)
	at, factor := a.alpha, 0.5
	last := a.passes + mostClimb
	for at < goal && factor < 0.999 && a.passes < last {
		a.alpha = 1 - (1-at)*factor
		if a.alpha > goal-1e-5 {
			a.alpha = goal
		}
		copy(a.subbudgets, s.start)
		a.total()
		s.newton.fieldsFromBids()
		clear(s.newton.guess)
		if !s.newton.iterate(farOff) {
			factor = math.Sqrt(factor)
			continue
		}
		copy(s.start, a.subbudgets)
		at, factor = a.alpha, max(factor*factor, 0.1)
	}
	return at
}

// atRest reports whether one more round of bids would change each bid by at most the tolerance. Near alpha = 1, float64
// may have too few digits for this. The caller must have stored the present bids in s.start.
func (s *Solver) atRest() bool {
	a := &s.auction
	a.addUp()
	move := s.rounds.round(1)
	copy(a.subbudgets, s.start)
	a.total()
	return move <= Tolerance
}

// beyondDoubles continues the solution with numbers of more digits than float64 has. It starts from the bids in
// s.start. These bids are the fixed point for the exponent `reached`.
func (s *Solver) beyondDoubles(reached float64) bool {
	a := &s.auction
	copy(a.subbudgets, s.start)
	a.alpha, s.newton.ready, s.beyond = a.p.Alpha, false, true
	if solvePrecisely(a, 1-reached) {
		return true
	}
	a.total()
	return s.rounds.settle()
}

// divide computes the shares from the powers (equation 1). A class for which no job has a sub-budget is split evenly.
func (s *Solver) divide() {
	a := &s.auction
	if s.newton.ready && !s.newton.dominated {
		copy(a.totals, s.newton.sum) // the last pass has computed the totals
	} else {
		a.addUp()
	}
	inverse := s.rounds.values
	for j, t := range a.totals {
		inverse[j] = 1 / t // infinite for a class without sub-budgets
	}
	for k := 0; k < len(a.powers); k += a.m {
		p, shares := a.powers[k:k+a.m], s.shares[k:k+a.m]
		for j, x := range inverse {
			shares[j] = p[j] * x
		}
	}
	for j, t := range a.totals {
		for k := j; t == 0 && k < len(s.shares); k += a.m {
			s.shares[k] = 1 / float64(a.n)
		}
	}
}

// If only one job wants a class, uncontested gives the whole class to this job, for nothing. The job keeps its whole
// budget for its other classes. If the job has no other class, its budget stays split evenly over its classes. This
// changes no share, because no other job bids in these classes.
func (s *Solver) uncontested() {
	a := &s.auction
	if a.alpha == 0 || a.n == 1 || !slices.Contains(a.contenders, 1) {
		return
	}
	for i, budget := range a.p.Budgets {
		lo, hi := i*a.m, (i+1)*a.m
		free := !slices.ContainsFunc(a.weights[lo:hi], positive)
		for j, w := range a.p.Weights[lo:hi] {
			if a.contenders[j] != 1 {
				continue
			}
			s.shares[lo+j] = 0
			if w > 0 {
				s.shares[lo+j] = 1
			}
			if w > 0 && free {
				a.subbudgets[lo+j] = budget / float64(a.m)
			}
		}
	}
}

func positive(x float64) bool { return x > 0 }
