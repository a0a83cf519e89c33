package proportional

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// Problem is one auction of n jobs over m classes. The solver only reads it.
type Problem struct {
	Alpha   float64   // exponent of the shares, in [0, 1]
	Classes int       // number of classes, m
	Budgets []float64 // n; each in [Smallest, Largest]
	Log     []bool    // n: true if the job's utility is Σ w·ln s, false if Σ w·s; nil means false for all
	Weights []float64 // n·m, job by job; each 0 or in [Smallest, Largest]
}

// Smallest and Largest bound budgets and weights, in any unit of money. Within these bounds no intermediate product
// of the solver overflows.
const (
	Smallest = 1e-60
	Largest  = 1e60
)

// Check returns an error about the job and the field if a problem is invalid. A job with only weights of 0 gets nothing
// and does not affect other jobs.
func (p *Problem) Check() error {
	if !(p.Alpha >= 0 && p.Alpha <= 1) {
		return messages.Errorf(messages.Invalid, "alpha: must be from 0 to 1, is %v", p.Alpha)
	}
	n := len(p.Budgets)
	if p.Classes < 1 && n > 0 || p.Classes < 0 {
		return messages.Errorf(messages.Invalid, "classes: must be at least 1, is %d", p.Classes)
	}
	if len(p.Weights) != n*p.Classes {
		return messages.Errorf(messages.Invalid, "weights: %d jobs and %d classes need %d numbers, there are %d",
			n, p.Classes, n*p.Classes, len(p.Weights))
	}
	if p.Log != nil && len(p.Log) != n {
		return messages.Errorf(messages.Invalid, "kinds: must be one for each of the %d jobs, there are %d", n, len(p.Log))
	}
	return p.checkNumbers()
}

func (p *Problem) checkNumbers() error {
	for i, b := range p.Budgets {
		if !(b >= Smallest && b <= Largest) {
			return outOfRange(i, "budget", b, "a positive number")
		}
	}
	for k, w := range p.Weights {
		if w != 0 && !(w >= Smallest && w <= Largest) {
			return outOfRange(k/p.Classes, "weights["+strconv.Itoa(k%p.Classes)+"]", w, "0 or a positive number")
		}
	}
	return nil
}

func outOfRange(job int, field string, x float64, want string) error {
	if x > 0 && !math.IsInf(x, 1) {
		return messages.Errorf(messages.Invalid, "jobs[%d].%s: %g is outside %g to %g: choose another unit",
			job, field, x, Smallest, Largest)
	}
	return messages.Errorf(messages.Invalid, "jobs[%d].%s: must be %s, is %g", job, field, want, x)
}

func (p *Problem) log(i int) bool { return p.Log != nil && p.Log[i] }

// Utility returns the value of shares, one for each class, to job i. A class with weight 0 does not count. With a
// logarithmic utility, a share of 0 has the value −∞.
func (p *Problem) Utility(i int, shares []float64) float64 {
	return utility(p.log(i), p.Weights[i*p.Classes:(i+1)*p.Classes], shares)
}

func utility(log bool, weights, shares []float64) float64 {
	u := 0.0
	for j, w := range weights {
		if w == 0 {
			continue
		}
		if log {
			u += w * math.Log(shares[j])
		} else {
			u += w * shares[j]
		}
	}
	return u
}
