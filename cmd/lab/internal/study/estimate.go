package study

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over seeds, with half of the width of its 95 % confidence interval by Student's distribution. For
// a single value, the interval is infinite.
type Estimate struct {
	Mean, Half float64
}

// Estimated returns the estimate from the values of some runs.
func Estimated(values []float64) Estimate {
	n := len(values)
	if n < 2 {
		return Estimate{Mean: stat.Mean(values, nil), Half: math.Inf(1)}
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	return Estimate{Mean: mean, Half: t * deviation / math.Sqrt(float64(n))}
}

// Holds reports whether x is in the interval, or at most `rounding` outside of it. This is allowed because a paper
// prints rounded numbers.
func (e Estimate) Holds(x, rounding float64) bool {
	return math.Abs(x-e.Mean) <= e.Half+rounding
}

func (e Estimate) String() string { return fmt.Sprintf("%.3f ± %.4f", e.Mean, e.Half) }
