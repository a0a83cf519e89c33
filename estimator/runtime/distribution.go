package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Distribution is the distribution of a job's run time: atoms in ascending order. It does not
// change.
type Distribution struct {
	atoms []atom // parts sum to 1
	// Runs is the effective number of runs of equal weight (Kish), on average over the levels:
	// at most 9, because old runs fade.
	Runs   float64
	Source string // the source of most of the estimate
}

// newDistribution sorts atoms, which it takes over, and scales their parts to sum to 1. It
// returns nil if all parts are 0.
func newDistribution(atoms []atom) *Distribution {
	slices.SortFunc(atoms, func(a, b atom) int { return cmp.Compare(a.value, b.value) })
	sum := 0.0
	for _, a := range atoms {
		sum += a.part
	}
	if !(sum > 0) {
		return nil
	}
	for i := range atoms {
		atoms[i].part /= sum
	}
	return &Distribution{atoms: atoms}
}

// Quantile returns the smallest time that suffices with a probability of at least part; 0.5 is
// the median, which is the estimate to use.
func (d *Distribution) Quantile(part float64) float64 {
	sum := 0.0
	for _, a := range d.atoms {
		if sum += a.part; sum >= part*(1-1e-12) {
			return a.value
		}
	}
	return d.atoms[len(d.atoms)-1].value
}

// Mean returns the expected time.
func (d *Distribution) Mean() float64 {
	sum := 0.0
	for _, a := range d.atoms {
		sum += a.part * a.value
	}
	return sum
}

// Samples returns n times that are equally likely: the quantiles in the middle of n equal
// parts. O(atoms+n).
func (d *Distribution) Samples(n int) []float64 {
	out := make([]float64, 0, n)
	sum := 0.0
	for _, a := range d.atoms {
		sum += a.part
		for len(out) < n && (float64(len(out))+0.5)/float64(n) <= sum*(1+1e-12) {
			out = append(out, a.value)
		}
	}
	for len(out) < n { // rounding
		out = append(out, d.atoms[len(d.atoms)-1].value)
	}
	return out
}

// Divergence returns the radius, in nats, of a ball around the distribution that contains the
// truth 19 times of 20, assuming that the distribution is as good as Runs runs drawn from the
// truth: half the 95 % quantile of χ² with one degree of freedom, divided by the runs (Owen,
// empirical likelihood).
func (d *Distribution) Divergence() float64 { return 1.92 / max(1, d.Runs) }

// Robust returns the smallest time that suffices with a probability of at least part, in (0,
// 1), under every distribution p with D(p‖this) ≤ delta. These have the same times as this one,
// with other probabilities.
func (d *Distribution) Robust(part, delta float64) (float64, error) {
	if !(part > 0 && part < 1) {
		return 0, messages.Errorf(messages.Invalid, "part: must be above 0 and below 1, is %g", part)
	}
	if !(delta >= 0 && delta <= math.MaxFloat64) {
		return 0, messages.Errorf(messages.Invalid, "divergence: must be 0 or above and finite, is %g", delta)
	}
	return d.Quantile(needed(part, delta)), nil
}

// needed returns the smallest q such that an event of probability q has at least probability
// part under every distribution within delta. It is the q ≥ part with part·ln(part/q) +
// (1−part)·ln((1−part)/(1−q)) = delta, found by bisection.
func needed(part, delta float64) float64 {
	if delta == 0 {
		return part
	}
	low, high := part, 1.0
	for range 100 {
		q := low + (high-low)/2
		if q == low || q == high {
			break
		}
		if divergence(part, q) < delta {
			low = q
		} else {
			high = q
		}
	}
	return high
}

// divergence returns the Kullback-Leibler divergence from a coin of probability q to one of p,
// for 0 < p ≤ q < 1.
func divergence(p, q float64) float64 {
	return p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q))
}
