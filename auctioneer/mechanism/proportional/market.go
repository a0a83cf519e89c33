package proportional

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Market keeps the fixed point of a changing set of jobs. Jobs have positions 0…n−1; a departure moves the last job
// into the gap. A Market is not safe for concurrent use.
//
// A field is the total that jobs face in a class. A Market remembers the fields T° of the last full solution, the sum
// of all answers to T°, and the derivative of this sum. An arrival adds the new job's answer to T° and the derivative
// of this answer. A departure subtracts both, exactly. One Newton step over the m classes then gives the new fields,
// with an error of second order in their distance from T°. Rows are functions of the fields, computed on demand. So a
// change costs O(m³) and a row O(m), for any n. When the estimated error exceeds the tolerance, a full solution is
// made, in O(n·m²).
type Market struct {
	tolerance float64
	problem   Problem
	solver    Solver
	stale     bool      // a full solution is needed
	settled   bool      // the fields are up to date with the jobs
	base      []float64 // 2m: the fields T° of sum and jacobian
	drift     float64   // estimated relative error of a share
	full      int       // number of full solutions so far
}

// With at most fewJobs jobs, a full solution is made at each change.
const fewJobs = 192

// NewMarket returns a market without jobs. The argument `tolerance`, at least 1e-9, bounds the estimated relative error
// of a share after Refresh.
func NewMarket(alpha float64, classes int, tolerance float64) (*Market, error) {
	k := &Market{tolerance: max(tolerance, 1e-9), problem: Problem{Alpha: alpha, Classes: classes}, stale: true}
	if err := k.problem.Check(); err != nil {
		return nil, err
	}
	if classes < 1 {
		return nil, messages.Errorf(messages.Invalid, "classes: must be at least 1, is %d", classes)
	}
	k.problem.Log = []bool{}
	return k, nil
}

// Len returns the number of jobs.
func (k *Market) Len() int { return len(k.problem.Budgets) }

func (k *Market) bidders(j int) int {
	if k.Len() == 0 {
		return 0
	}
	return k.solver.auction.contenders[j]
}

// Arrive adds a job after the present ones: its position is the value of Len before the call. The job's weights, one
// for each class, are copied.
func (k *Market) Arrive(budget float64, log bool, weights []float64) error {
	p := &k.problem
	one := Problem{Alpha: p.Alpha, Classes: p.Classes, Budgets: []float64{budget}, Weights: weights}
	if err := one.Check(); err != nil {
		return err
	}
	i := k.Len()
	p.Budgets = append(p.Budgets, budget)
	p.Log = append(p.Log, log)
	p.Weights = append(p.Weights, weights...)
	k.settled = false
	if k.incremental() && k.recount(weights, 1) {
		k.extend()
		k.stale = !k.answerAtBase(i, 1)
	} else {
		k.stale = true
	}
	return nil
}

// Depart removes the job at position i; the last job takes its place.
func (k *Market) Depart(i int) {
	k.settled = false
	if k.incremental() && k.recount(k.weightsOf(i), -1) {
		k.stale = !k.answerAtBase(i, -1)
	} else {
		k.stale = true
	}
	last := k.Len() - 1
	k.swap(i, last)
	p := &k.problem
	p.Budgets, p.Log, p.Weights = p.Budgets[:last], p.Log[:last], p.Weights[:last*p.Classes]
	if !k.stale {
		k.resize(last)
	}
}

// Replace gives the job at position i new weights. It copies the argument `weights`.
func (k *Market) Replace(i int, weights []float64) error {
	p := &k.problem
	one := Problem{Alpha: p.Alpha, Classes: p.Classes, Budgets: p.Budgets[i : i+1], Weights: weights}
	if err := one.Check(); err != nil {
		return err
	}
	row := k.weightsOf(i)
	k.settled = false
	if !k.incremental() || !k.recount(row, -1) || !k.recount(weights, 1) {
		k.stale = true
		copy(row, weights)
		return nil
	}
	gone := k.answerAtBase(i, -1)
	copy(row, weights)
	a := &k.solver.auction
	copy(a.weights[i*p.Classes:], weights)
	k.solver.newton.guess[i], a.wanted[i] = 0, count(weights)
	k.stale = !gone || !k.answerAtBase(i, 1)
	return nil
}

// Refresh updates the fields (the sums of the powers of the bids in each class) by a Newton step. If the error of the
// step could exceed the tolerance, it solves the problem anew and returns true.
func (k *Market) Refresh() bool {
	if k.settled {
		return false
	}
	k.settled = true
	if !k.stale && k.step() && k.drift <= k.tolerance {
		return false
	}
	k.solve()
	return true
}

// Row writes the sub-budgets and the shares of the job at position i. After a change, call Refresh before Row. Either
// slice may be nil.
func (k *Market) Row(i int, subbudgets, shares []float64) {
	m, s := k.problem.Classes, &k.solver
	if !k.stale {
		s.newton.respond(i)
		for j := range shares {
			shares[j] = k.share(i, j)
		}
	} else if shares != nil {
		copy(shares, s.shares[i*m:(i+1)*m])
	}
	if subbudgets != nil {
		copy(subbudgets, s.auction.subbudgets[i*m:(i+1)*m])
	}
}

// share returns the part of class j that belongs to the job at position i. It is the job's power divided by the sum of
// all powers in the class.
func (k *Market) share(i, j int) float64 {
	a := &k.solver.auction
	switch {
	case a.contenders[j] > 1:
		return min(a.powers[i*a.m+j]/k.solver.newton.fields[j], 1)
	case a.contenders[j] == 0:
		return 1 / float64(k.Len())
	case k.problem.Weights[i*a.m+j] > 0:
		return 1
	default:
		return 0
	}
}

// incremental reports whether the solution for the present jobs can be computed from the last full solution.
func (k *Market) incremental() bool { return !k.stale && k.Len() > fewJobs }

// recount updates how many jobs compete for each class. It returns false if the auction must be solved again from the
// beginning. This is needed if, in some class, the number of bidders has risen from one to two or fallen from two to
// one.
func (k *Market) recount(weights []float64, by int) bool {
	same := true
	for j, w := range weights {
		if w > 0 {
			c := &k.solver.auction.contenders[j]
			before := *c
			*c += by
			same = same && before > 1 && *c > 1
		}
	}
	return same
}

// k.base has a value for each field, and the solver keeps the sums of all jobs' answers to these values. answerAtBase
// computes the best answer of job i to these values, and the derivative of the answer. It adds both to the sums (sign
// 1), or subtracts both (sign −1). It returns false if the job's part of a class is so large that the sums do not hold
// for the job.
func (k *Market) answerAtBase(i int, sign float64) bool {
	w := &k.solver.newton
	copy(w.before, w.fields)
	copy(w.fields, k.base)
	w.face()
	ok := w.respond(i)
	if ok {
		w.accumulatePlain(sign)
		for j, p := range w.row.p {
			ok = ok && p <= dominance*w.fields[j]
		}
	}
	copy(w.fields, w.before)
	return ok
}

// step does one Newton step. It starts from the fields in k.base, and puts the result into the solver's fields. It
// returns false if the step cannot be computed.
func (k *Market) step() bool {
	w := &k.solver.newton
	copy(w.fields, k.base)
	if !w.direction() {
		return false
	}
	move := w.nextMove()
	k.drift = move * move
	copy(w.before, k.base)
	w.move(1)
	w.face()
	return !math.IsNaN(k.drift)
}

func (k *Market) solve() {
	w := &k.solver.newton
	k.full++
	k.solver.Resolve(&k.problem) // no error: every number was checked when its job arrived
	k.drift = Tolerance
	k.stale = !w.linear() || k.Len() <= fewJobs
	if !k.stale {
		k.base = append(k.base[:0], w.fields...)
		w.face()
	}
}

// linear reports whether no class has a dominant job. Then a job's competition in each class depends only on the total
// of the class.
func (w *newton) linear() bool { return w.ready && !w.dominated }

func (k *Market) weightsOf(i int) []float64 {
	m := k.problem.Classes
	return k.problem.Weights[i*m : (i+1)*m]
}

// extend makes room in the solver for the last job of the problem.
func (k *Market) extend() {
	a, n := &k.solver.auction, k.Len()
	row := k.weightsOf(n - 1)
	k.resize(n)
	copy(a.weights[(n-1)*a.m:], row)
	a.wanted[n-1], k.solver.newton.guess[n-1] = count(row), 0
}

// resize makes room in the solver for n jobs. The first jobs keep their rows.
func (k *Market) resize(n int) {
	a, w := &k.solver.auction, &k.solver.newton
	a.n = n
	for _, v := range []*[]float64{&a.weights, &a.subbudgets, &a.powers, &k.solver.shares} {
		*v = resize(*v, n*a.m)
	}
	w.guess, a.wanted = resize(w.guess, n), resize(a.wanted, n)
}

// swap exchanges the jobs with the indices i and q in the problem. If the solver has a row for each job, it exchanges
// these rows too.
func (k *Market) swap(i, q int) {
	p, a, m := &k.problem, &k.solver.auction, k.problem.Classes
	p.Budgets[i], p.Budgets[q] = p.Budgets[q], p.Budgets[i]
	p.Log[i], p.Log[q] = p.Log[q], p.Log[i]
	copy(p.Weights[i*m:(i+1)*m], p.Weights[q*m:(q+1)*m])
	if !k.stale {
		copy(a.weights[i*m:(i+1)*m], a.weights[q*m:(q+1)*m])
		k.solver.newton.guess[i], a.wanted[i] = k.solver.newton.guess[q], a.wanted[q]
	}
}
