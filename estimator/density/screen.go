package density

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// Enough is the number of samples for a good estimate. With fewer, outliers cannot be recognised (Huang et al.,
	// figure 7).
	Enough = 50
	// support is the part of the total weight that the samples near a sample must have; otherwise the sample is
	// dropped. If one account in twenty lies, all their samples together have less than this part, so they cannot
	// support one another.
	support = 0.12
	// falseAlarm is the fraction of the samples of a normal distribution that the function `screen` drops.
	falseAlarm = 0.001
)

// screen reports which samples to keep. `weights` has one capped weight for each sample. After merging, one sample in d
// can stand for several observed samples, and `count` is the number of observed samples. If it is below 50, screen
// keeps all.
//
// Otherwise screen keeps a sample if the samples near it have at least 12 % of the total weight. "Near" means a
// distance of at most sqrt(χ²(0.999, L)) − 1.17 robust standard deviations, where L is the number of dimensions. If the
// samples have a normal distribution, screen drops one in a thousand. It drops a separate group of samples with less
// than 12 % of the weight. If a separate group has a fifth of the weight, it drops only the group's outer samples.
//
// screen takes O(n²·L) in the worst case, and usually about a fifth of that time.
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

// reach returns a distance, in standard deviations. Two samples within this distance of each other support one another.
// The distance is computed for a normal distribution of samples. Only 0.1 % (falseAlarm) of the samples are farther
// than d from the centre. Let x be a sample at the distance d. In the direction of x, 12 % (support) of the samples are
// at least 1.17 from the centre, so x has samples within d − 1.17 in this direction. reach returns d − 1.17.
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
