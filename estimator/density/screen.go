package density

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// Enough is the number of samples for a good estimate. With fewer, outliers cannot be recognised (Huang et al.,
	// figure 7).
	Enough = 50
	// support is the part of the weight that must be near a sample; otherwise the sample is screened out. A twentieth
	// of the accounts has less weight, so liars with a twentieth cannot support one another.
	support = 0.12
	// falseAlarm is the part of normally distributed samples that is screened out.
	falseAlarm = 0.001
)

// screen reports which samples to keep. The argument weights has capped weights, and count is the number of samples
// that d stands for. Below 50 samples it keeps all. Otherwise a sample stays if accounts with 12 % of the weight have
// samples near it: within sqrt(χ²(0.999, L)) − 1.17 robust standard deviations of all samples. This removes one in a
// thousand samples of a normal distribution, and a separate group with less than 12 % of the weight. A group with a
// fifth loses only its outer samples. screen takes O(n²·L) in the worst case, and usually about a fifth of that.
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

// reach returns how near samples must be to support a sample, in standard deviations. Consider samples of a normal
// distribution, and a sample x at a distance d from the centre that only the fraction falseAlarm exceeds. In the
// direction of x, the fraction support of the samples is more than 1.17 from the centre, and so within d − 1.17 of x.
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
