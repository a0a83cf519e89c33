package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Distribution is of the run time of a job: atoms in ascending order. It does
// not change.
type Distribution struct {
	atoms []atom // parts sum to 1
	// Runs is as how many runs of the same weight those of a level count (Kish), on
	// average over the levels: 9 at most, as old ones fade.
	Runs   float64
	Source string // where most of it comes from
}

// newDistribution sorts atoms, which it takes over, and scales their parts to 1.
// nil if there are none of any part.
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

// Quantile is the smallest time that is enough with a probability of at least
// part; 0.5 is the median, which is the estimate to go by.
func (d *Distribution) Quantile(part float64) float64 {
	sum := 0.0
	for _, a := range d.atoms {
		if sum += a.part; sum >= part*(1-1e-12) {
			return a.value
		}
	}
	return d.atoms[len(d.atoms)-1].value
}

// Mean is the expected time.
func (d *Distribution) Mean() float64 {
	sum := 0.0
	for _, a := range d.atoms {
		sum += a.part * a.value
	}
	return sum
}

// Samples returns n times that are equally likely: the quantiles in the middle
// of n equal parts. O(atoms+n).
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

// Divergence is the radius, in nats, of the ball around the distribution that
// has the truth in it 19 times of 20, if it is as good as so many runs drawn from
// the truth: half the 95 % quantile of χ² with one degree of freedom, over the
// runs (Owen, empirical likelihood).
func (d *Distribution) Divergence() float64 { return 1.92 / max(1, d.Runs) }

// Robust is the smallest time that is enough with a probability of at least part,
// in (0, 1), under every distribution p with D(p‖this) ≤ delta: none of them has
// a time that this one has not, all may have the long ones more often.
func (d *Distribution) Robust(part, delta float64) (float64, error) {
	if !(part > 0 && part < 1) {
		return 0, messages.Errorf(messages.Invalid, "part: must be above 0 and below 1, is %g", part)
	}
	if !(delta >= 0 && delta <= math.MaxFloat64) {
		return 0, messages.Errorf(messages.Invalid, "divergence: must be 0 or above and finite, is %g", delta)
	}
	return d.Quantile(needed(part, delta)), nil
}

// needed is the least probability q such that an event of probability q has one
// of at least part under every distribution within delta: the q ≥ part with
// part·ln(part/q) + (1−part)·ln((1−part)/(1−q)) = delta, by bisection.
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

// divergence is the Kullback-Leibler divergence of a coin of probability p from one of q,
// for 0 < p ≤ q < 1.
func divergence(p, q float64) float64 {
	return p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q))
}
