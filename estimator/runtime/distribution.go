package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Distribution has the possible run times of a job, in ascending order, with their probabilities. It is immutable.
type Distribution struct {
	atoms []atom // probabilities sum to 1
	// Runs is how many runs of equal weight would be worth as much as the observed runs (the effective number of Kish).
	// It is a mean over the levels of similarity. It is at most 9, because old runs count less.
	Runs   float64
	Source string // the level from which most of the estimate comes
}

// An atom is a value with its probability. newDistribution sorts the atoms by value, and scales their probabilities so
// that they sum to 1. It changes the given list. It returns nil if all probabilities are 0.
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

// Quantile returns the smallest time that a run does not exceed with a probability of at least `part`. For 0.5, this
// time is the median, which is the best single estimate.
func (d *Distribution) Quantile(part float64) float64 {
	sum := 0.0
	for _, a := range d.atoms {
		if sum += a.part; sum >= part*(1-1e-12) {
			return a.value
		}
	}
	return d.atoms[len(d.atoms)-1].value
}

// Mean returns the mean run time.
func (d *Distribution) Mean() float64 {
	sum := 0.0
	for _, a := range d.atoms {
		sum += a.part * a.value
	}
	return sum
}

// Samples returns n run times with equal probabilities: it divides the distribution into n equally probable parts, and
// returns the median of each part. It takes O(atoms+n).
func (d *Distribution) Samples(n int) []float64 {
	out := make([]float64, 0, n)
	sum := 0.0
	for _, a := range d.atoms {
		sum += a.part
		for len(out) < n && (float64(len(out))+0.5)/float64(n) <= sum*(1+1e-12) {
			out = append(out, a.value)
		}
	}
	for len(out) < n { // needed only because of rounding
		out = append(out, d.atoms[len(d.atoms)-1].value)
	}
	return out
}

// Divergence returns a radius in nats. The estimate is treated as if it came from a number of runs, d.Runs, of the true
// distribution. Then the true distribution is within this radius of the estimate with a probability of 95 %. The radius
// is half of the 95 % quantile of χ² with one degree of freedom, divided by Runs (Owen, empirical likelihood).
func (d *Distribution) Divergence() float64 { return 1.92 / max(1, d.Runs) }

// Robust returns a run time that a job does not exceed with a probability of at least `part`. The distribution d may be
// wrong. So the probability must be at least `part` also for each distribution p with a Kullback-Leibler divergence
// D(p‖d) of at most delta. Such a p has the same possible times as d, with other probabilities. Robust returns the
// smallest such time.
func (d *Distribution) Robust(part, delta float64) (float64, error) {
	if !(part > 0 && part < 1) {
		return 0, messages.Errorf(messages.Invalid, "part: must be above 0 and below 1, is %g", part)
	}
	if !(delta >= 0 && delta <= math.MaxFloat64) {
		return 0, messages.Errorf(messages.Invalid, "divergence: must be 0 or above and finite, is %g", delta)
	}
	return d.Quantile(needed(part, delta)), nil
}

// needed considers an event that has the probability q, and all distributions whose divergence is at most delta. It
// returns the smallest q with which the event has at least the probability `part` under each of these distributions. By
// bisection, it finds the q ≥ part with part·ln(part/q) + (1−part)·ln((1−part)/(1−q)) = delta.
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

// divergence returns the Kullback-Leibler divergence between coins of probabilities p and q, for 0 < p ≤ q < 1.
func divergence(p, q float64) float64 {
	return p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q))
}
