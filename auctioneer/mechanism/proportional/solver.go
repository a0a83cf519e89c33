package proportional

import (
	"math"
	"slices"
)

// Tolerance is how far a sub-budget may still move, relative to the job's
// budget, when the solver stops.
const Tolerance = 1e-12

// mostAmbiguous is the number of entries up to which an auction with alpha above
// 1/2 is taken to have perhaps several fixed points; see doc.go.
const mostAmbiguous = 2048

// Result is an outcome. Its slices belong to the solver and hold until its
// next call.
type Result struct {
	Subbudgets []float64 // n·m, in the unit of the budgets
	Shares     []float64 // n·m, in [0, 1]; each class sums to 1
	Rounds     int       // passes over the jobs
	Converged  bool
}

// Solver finds fixed points. Its zero value is ready; it keeps its memory, so
// that a problem no larger than an earlier one is solved without allocation.
// It is not safe for concurrent use.
type Solver struct {
	p          *Problem
	n, m       int
	alpha      float64
	weights    []float64 // n·m: the problem's, 0 in classes without a contest
	contenders []int     // m: jobs with a weight in the class
	wanted     []int32   // n: classes in which the job's weight counts
	subbudgets []float64 // n·m
	powers     []float64 // n·m: sub-budget^alpha
	totals     []float64 // m: sum of the powers of a class
	shares     []float64 // n·m
	largest    float64   // the largest budget
	values     []float64 // m, scratch of a row
	others     []float64 // m, scratch of a row
	newton     newton
	reached    float64 // the exponent that climb reached
	beyond     bool    // the outcome took more digits than doubles have
	result     Result
}

// Solve finds the fixed point of p from the even split. Cost: about 6 passes
// at alpha = 1/2, each O(n·m²).
func (s *Solver) Solve(p *Problem) (*Result, error) {
	return s.solve(p, false)
}

// Resolve finds the fixed point of p starting from the class totals of the
// call before, which may have been about other jobs of the same market: same
// alpha, same classes. The result is Solve's, within Tolerance, in fewer passes.
func (s *Solver) Resolve(p *Problem) (*Result, error) {
	return s.solve(p, true)
}

// Rounds does k rounds exactly as the paper's algorithm 1 with one step of
// algorithm 2 for each job in turn, from the even split, and fewer if nothing
// moves by more than Tolerance any more. It does not damp cycles, and treats
// classes without a contest like any other.
func (s *Solver) Rounds(p *Problem, k int) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s.reset(p)
	copy(s.weights, p.Weights)
	s.splitEvenly()
	r := &s.result
	for r.Rounds < k && !r.Converged {
		r.Converged = s.round(1) <= Tolerance
		r.Rounds++
	}
	s.divide()
	return r, nil
}

func (s *Solver) solve(p *Problem, warm bool) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	warm = warm && s.newton.ready && s.m == p.Classes && s.alpha == p.Alpha
	s.reset(p)
	s.contest()
	switch {
	case s.n == 0:
		s.result.Converged = true
	case p.Alpha == 0 || s.n == 1:
		s.splitEvenly()
		s.round(1)
		s.result.Rounds, s.result.Converged = 1, true
	case p.Alpha < leastNewtonAlpha:
		s.splitByWeight()
		s.settle()
	case p.Alpha > 0.5 && len(p.Weights) <= mostAmbiguous:
		s.byRounds()
	default:
		s.fixedPoint(warm)
	}
	s.divide()
	s.uncontested()
	return &s.result, nil
}

// reset takes a problem and makes room for it.
func (s *Solver) reset(p *Problem) {
	s.p, s.n, s.m, s.alpha = p, len(p.Budgets), p.Classes, p.Alpha
	for _, v := range []*[]float64{&s.weights, &s.subbudgets, &s.powers, &s.shares} {
		*v = resize(*v, s.n*s.m)
	}
	for _, v := range []*[]float64{&s.totals, &s.values, &s.others} {
		*v = resize(*v, s.m)
	}
	s.contenders = resize(s.contenders, s.m)
	s.wanted = resize(s.wanted, s.n)
	s.newton.ready, s.beyond = false, false
	s.result = Result{Subbudgets: s.subbudgets, Shares: s.shares}
}

// resize returns v with length n and unspecified content, in its own memory if
// there is room.
func resize[T any](v []T, n int) []T {
	return slices.Grow(v[:0], n)[:n]
}

// contest finds the classes that at least two jobs want, and the weights that
// count: at alpha = 0 and for a job alone in the market, all.
func (s *Solver) contest() {
	clear(s.contenders)
	s.largest = 0
	for i, budget := range s.p.Budgets {
		s.largest = max(s.largest, budget)
		s.wanted[i] = 0
		for j, w := range s.p.Weights[i*s.m : (i+1)*s.m] {
			if w > 0 {
				s.contenders[j]++
				s.wanted[i]++
			}
		}
	}
	copy(s.weights, s.p.Weights)
	if s.alpha == 0 || !slices.Contains(s.contenders, 1) {
		return
	}
	for i := range s.wanted {
		row := s.weights[i*s.m : (i+1)*s.m]
		for j, c := range s.contenders {
			if c < 2 {
				row[j] = 0
			}
		}
		s.wanted[i] = count(row)
	}
}

// count is the number of positive weights of a row.
func count(row []float64) (n int32) {
	for _, w := range row {
		if w > 0 {
			n++
		}
	}
	return n
}

// splitEvenly is the start of the paper's algorithm 1: b_ij = b_i/m.
func (s *Solver) splitEvenly() {
	for i, budget := range s.p.Budgets {
		row := s.subbudgets[i*s.m : (i+1)*s.m]
		for j := range row {
			row[j] = budget / float64(s.m)
		}
	}
	s.total()
}

// splitByWeight starts every job from its budget split in proportion to the
// weights that count. At alpha = 1/2 that is half-way, on a logarithmic scale,
// between what a linear job would bid if all bid alike and if all bid evenly.
func (s *Solver) splitByWeight() {
	for i, budget := range s.p.Budgets {
		lo, hi := i*s.m, (i+1)*s.m
		w, b, p := s.weights[lo:hi], s.subbudgets[lo:hi], s.powers[lo:hi]
		sum := 0.0
		for _, x := range w {
			sum += x
		}
		scale := 0.0
		if sum > 0 {
			scale = budget / sum
		}
		for j, x := range w {
			b[j] = x * scale
			p[j] = power(b[j], s.alpha)
		}
	}
}

// total works the powers and totals out anew from the sub-budgets.
func (s *Solver) total() {
	for k, b := range s.subbudgets {
		s.powers[k] = power(b, s.alpha)
	}
	s.addUp()
}

func (s *Solver) addUp() {
	clear(s.totals)
	for k := 0; k < len(s.powers); k += s.m {
		for j, p := range s.powers[k : k+s.m] {
			s.totals[j] += p
		}
	}
}

// power is b^alpha with 0^0 = 1.
func power(b, alpha float64) float64 {
	switch alpha {
	case 0.5:
		return math.Sqrt(b)
	case 1:
		return b
	default:
		return math.Pow(b, alpha)
	}
}

// divide is equation 1: shares from powers. A class without a sub-budget is
// split evenly.
func (s *Solver) divide() {
	if s.newton.ready && !s.newton.dominated {
		copy(s.totals, s.newton.sum) // the last pass added them up
	} else {
		s.addUp()
	}
	inverse := s.values
	for j, t := range s.totals {
		inverse[j] = 1 / t // infinite for a class without a sub-budget
	}
	for k := 0; k < len(s.powers); k += s.m {
		p, shares := s.powers[k:k+s.m], s.shares[k:k+s.m]
		for j, x := range inverse {
			shares[j] = p[j] * x
		}
	}
	for j, t := range s.totals {
		for k := j; t == 0 && k < len(s.shares); k += s.m {
			s.shares[k] = 1 / float64(s.n)
		}
	}
}

// uncontested gives each class that one job alone wants to that job, whose
// money is free for its other classes; if it has no others, its even split
// stands. Money on such a class changes nobody's share.
func (s *Solver) uncontested() {
	if s.alpha == 0 || s.n == 1 || !slices.Contains(s.contenders, 1) {
		return
	}
	for i, budget := range s.p.Budgets {
		lo, hi := i*s.m, (i+1)*s.m
		free := !slices.ContainsFunc(s.weights[lo:hi], positive)
		for j, w := range s.p.Weights[lo:hi] {
			if s.contenders[j] != 1 {
				continue
			}
			s.shares[lo+j] = 0
			if w > 0 {
				s.shares[lo+j] = 1
			}
			if w > 0 && free {
				s.subbudgets[lo+j] = budget / float64(s.m)
			}
		}
	}
}

func positive(x float64) bool { return x > 0 }
