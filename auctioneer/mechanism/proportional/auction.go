package proportional

import (
	"math"
	"slices"
)

// auction is a problem with its bids. All solvers share it.
type auction struct {
	p          *Problem
	n, m       int
	alpha      float64   // the exponent in use: the problem's exponent, or a smaller one in the method climb
	weights    []float64 // n·m: the problem's weights, 0 in classes without a contest
	contenders []int     // m: number of jobs with a weight in the class
	wanted     []int32   // n: number of classes in which the job's weight counts
	largest    float64   // the largest budget
	subbudgets []float64 // n·m elements
	powers     []float64 // n·m: sub-budget^alpha
	totals     []float64 // m: sum of the powers in a class
	passes     int       // number of passes over the jobs
}

func (a *auction) reset(p *Problem) {
	a.p, a.n, a.m, a.alpha, a.passes = p, len(p.Budgets), p.Classes, p.Alpha, 0
	for _, v := range []*[]float64{&a.weights, &a.subbudgets, &a.powers} {
		*v = resize(*v, a.n*a.m)
	}
	a.totals = resize(a.totals, a.m)
	a.contenders = resize(a.contenders, a.m)
	a.wanted = resize(a.wanted, a.n)
}

// resize returns v with length n, in the same memory if there is room. New elements have unspecified values.
func resize[T any](v []T, n int) []T { return slices.Grow(v, max(n-len(v), 0))[:n] }

// contest finds the classes that at least two jobs want. It sets the jobs' weights in the other classes to 0. But all
// weights stay if alpha is 0, or if only one job is in the market.
func (a *auction) contest() {
	clear(a.contenders)
	a.largest = 0
	for i, budget := range a.p.Budgets {
		a.largest = max(a.largest, budget)
		a.wanted[i] = 0
		for j, w := range a.p.Weights[i*a.m : (i+1)*a.m] {
			if w > 0 {
				a.contenders[j]++
				a.wanted[i]++
			}
		}
	}
	copy(a.weights, a.p.Weights)
	if a.alpha == 0 || !slices.Contains(a.contenders, 1) {
		return
	}
	for i := range a.wanted {
		row := a.weights[i*a.m : (i+1)*a.m]
		for j, c := range a.contenders {
			if c < 2 {
				row[j] = 0
			}
		}
		a.wanted[i] = count(row)
	}
}

func count(row []float64) (n int32) {
	for _, w := range row {
		if w > 0 {
			n++
		}
	}
	return n
}

// splitEvenly sets the bids with which the paper's algorithm 1 starts: b_ij = b_i/m.
func (a *auction) splitEvenly() {
	for i, budget := range a.p.Budgets {
		row := a.subbudgets[i*a.m : (i+1)*a.m]
		for j := range row {
			row[j] = budget / float64(a.m)
		}
	}
	a.total()
}

// splitByWeight splits the budget of each job in proportion to its weights. A weight in a class that no other job wants
// counts as 0. For a linear job at alpha = 1/2, the split lies half-way between x and y on a logarithmic scale. Here x
// is the job's best answer if all other jobs split their budgets as it does. y is its best answer if all other jobs
// split their budgets evenly.
func (a *auction) splitByWeight() {
	for i, budget := range a.p.Budgets {
		lo, hi := i*a.m, (i+1)*a.m
		w, b, p := a.weights[lo:hi], a.subbudgets[lo:hi], a.powers[lo:hi]
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
			p[j] = power(b[j], a.alpha)
		}
	}
}

// A job's sub-budget is what it bids in a class. total raises each sub-budget to the power alpha, and adds up the
// results in each class.
func (a *auction) total() {
	for k, b := range a.subbudgets {
		a.powers[k] = power(b, a.alpha)
	}
	a.addUp()
}

func (a *auction) addUp() {
	clear(a.totals)
	for k := 0; k < len(a.powers); k += a.m {
		for j, p := range a.powers[k : k+a.m] {
			a.totals[j] += p
		}
	}
}

// power returns b^alpha, with 0^0 = 1.
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

// sumOthers returns the sum of the powers in class j over all jobs except i. It takes O(n), but it is needed only for a
// job that has most of a class.
func (a *auction) sumOthers(i, j int) float64 {
	sum := 0.0
	for k := j; k < i*a.m; k += a.m {
		sum += a.powers[k]
	}
	for k := (i+1)*a.m + j; k < len(a.powers); k += a.m {
		sum += a.powers[k]
	}
	return sum
}
