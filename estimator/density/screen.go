package density

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// Enough is how many samples make an estimate good; only then it is known
	// which of them do not fit (Huang et al., figure 7).
	Enough = 50
	// support is the part of the influence that must be near a sample for it to
	// stay: more than one account in twenty has, lying together.
	support = 0.12
	// falseAlarm is which part of normally distributed samples does not stay.
	falseAlarm = 0.001
)

// screen says which samples to keep; weights are capped, and count is the number of
// samples that d stands for. Below 50 samples, all. Otherwise a sample
// stays if accounts that have 12 % of the influence have samples near it: within
// sqrt(χ²(0.999, L)) − 1.17 standard deviations, in a
// robust measure of the spread of them all. Of normal samples that screens one
// in a thousand; a group apart from the rest goes if it has less than 12 %, and
// keeps all but its fringe if it has a fifth.
// O(n²·L) in the worst case, about a fifth of that as a rule.
func screen(d *Data, weights []float64, count float64) []bool {
	keep := make([]bool, d.Len())
	if count < Enough {
		for k := range keep {
			keep[k] = true
		}
		return keep
	}
	white := robust(d, weights)
	radius := reach(d.Dimensions)
	need := 0.0
	for _, w := range weights {
		need += support * w
	}
	for k := range keep {
		keep[k] = supported(white, weights, d.Dimensions, k, radius*radius, need)
	}
	return keep
}

// reach is how near samples must be. Seen from far out, normal samples that
// have the part support of the weight begin where their projection on the line
// of sight has that tail.
func reach(dimensions int) float64 {
	chi := distuv.ChiSquared{K: float64(dimensions)}
	return math.Sqrt(chi.Quantile(1-falseAlarm)) - distuv.UnitNormal.Quantile(1-support)
}

func supported(white, weights []float64, l, k int, square, need float64) bool {
	x := white[k*l : (k+1)*l]
	near := 0.0
	for i, w := range weights {
		distance := 0.0
		for j, y := range white[i*l : (i+1)*l] {
			distance += (x[j] - y) * (x[j] - y)
		}
		if distance <= square {
			if near += w; near >= need {
				return true
			}
		}
	}
	return false
}
