package deadlineaware

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// steps is the maximum number of times that an interval is halved. It is more than enough: after 64 times, all digits
// of a float64 are known.
const steps = 200

// RobustQuantile returns a cautious quantile of observed values of a random number, such as a job's demand. It is the
// smallest sample x with this property: a new value is at most x with a probability of at least `part`, in (0, 1]. The
// property holds for every distribution whose Kullback-Leibler divergence from the empirical distribution is at most
// delta ≥ 0. With delta 0 it is the empirical quantile. It is never above the largest sample. It costs O(n log n) and
// does not change the samples.
func RobustQuantile(samples []float64, delta, part float64) (float64, error) {
	if err := checkBall(samples, delta); err != nil {
		return 0, err
	}
	if err := checkPart(part); err != nil {
		return 0, err
	}
	return quantile(slices.Sorted(slices.Values(samples)), delta, part), nil
}

func quantile(sorted []float64, delta, part float64) float64 {
	n := len(sorted)
	// A distribution of the samples is allowed if its divergence from equal probabilities is at most `delta`. The
	// result is a sample x: under every allowed distribution, the samples up to x together have at least the
	// probability `part`. It is the smallest such sample. Lowest computes the smallest probability that the samples up
	// to x can have.
	at, _ := slices.BinarySearchFunc(sorted, part, func(x float64, part float64) int {
		i, _ := slices.BinarySearch(sorted, math.Nextafter(x, math.Inf(1))) // number of samples up to x
		if Lowest(float64(i)/float64(n), delta) >= part*(1-1e-14) {
			return 1
		}
		return -1
	})
	return sorted[min(at, n-1)]
}

// Lowest returns the smallest probability p that an event can have in a distribution near the present one. The present
// distribution gives the event the probability q. Near means that the divergence from it is at most delta. p is at most
// q, and solves p·ln(p/q) + (1−p)·ln((1−p)/(1−q)) = delta. If no p solves this, the result is 0. For q = 1 the result
// is 1.
func Lowest(q, delta float64) float64 {
	switch {
	case q >= 1:
		return 1
	case q <= 0 || delta >= -math.Log1p(-q):
		return 0
	case delta == 0:
		return q
	}
	low, high := 0.0, q
	for range steps {
		p := low + (high-low)/2
		if p == low || p == high {
			break
		}
		if bernoulli(p, q) > delta {
			low = p
		} else {
			high = p
		}
	}
	return high
}

// bernoulli returns the divergence of probability p from q, for 0 < p ≤ q < 1. It computes with q − p, because the two
// terms of the usual formula nearly cancel when p is near q.
func bernoulli(p, q float64) float64 {
	d := q - p
	return q*entropy(-d/q) + (1-q)*entropy(d/(1-q))
}

// entropy returns (1+x)·ln(1+x) − x for x > −1. The result is at least 0.
func entropy(x float64) float64 {
	if math.Abs(x) > 0.01 {
		return (1+x)*math.Log1p(x) - x
	}
	sum, power := 0.0, x // Σ (−1)^k x^k / (k(k−1))
	for k := 2.0; k < 10; k++ {
		power *= -x
		sum -= power / (k * (k - 1))
	}
	return sum
}

// RobustMean computes the largest mean of any distribution whose Kullback-Leibler divergence from the empirical
// distribution of the samples is at most delta ≥ 0. The error is at most 1e-9 of the samples' range. The result is the
// minimum over s > 0 of (delta + ln E e^{sx})/s, where E is the mean over the samples. At the minimum, the samples
// weighted by e^{sx} have the divergence delta. With delta 0 the result is the mean of the samples. It is never above
// the largest sample.
func RobustMean(samples []float64, delta float64) (float64, error) {
	if err := checkBall(samples, delta); err != nil {
		return 0, err
	}
	return mean(slices.Sorted(slices.Values(samples)), delta), nil
}

func mean(sorted []float64, delta float64) float64 {
	n := len(sorted)
	most := sorted[n-1]
	spread := most - sorted[0]
	first, _ := slices.BinarySearch(sorted, most)
	if spread == 0 || delta >= math.Log(float64(n)/float64(n-first)) {
		return most // delta allows all probability on the largest sample
	}
	average := 0.0
	for _, x := range sorted {
		average += (x - sorted[0]) / float64(n)
	}
	offset := make([]float64, n) // difference from the average, divided by the range
	for i, x := range sorted {
		offset[i] = (x - sorted[0] - average) / spread
	}
	return min(most, sorted[0]+average+spread*tilted(offset, delta))
}

// tilted returns the largest possible mean of the offsets, if the divergence of the samples' probabilities from equal
// probabilities is at most delta. With equal probabilities, the mean is 0. The largest offset is 1 more than the
// smallest.
func tilted(offset []float64, delta float64) float64 {
	if delta == 0 {
		return 0
	}
	low, high := 0.0, 1.0
	for away, _ := tilt(offset, high); away < delta && high < 0x1p60; away, _ = tilt(offset, high) {
		low, high = high, 2*high
	}
	for range steps {
		s := low + (high-low)/2
		if s == low || s == high {
			break
		}
		if away, _ := tilt(offset, s); away < delta {
			low = s
		} else {
			high = s
		}
	}
	_, log := tilt(offset, high)
	return (delta + log) / high
}

// tilt gives each offset x the weight e^{sx}. The result `away` is the divergence of the weighted distribution from the
// distribution with equal weights. The result `log` is the logarithm of the mean of e^{sx}.
func tilt(offset []float64, s float64) (away, log float64) {
	n := float64(len(offset))
	if s > 1 { // compute with e^{sx} divided by its largest value
		most, sum, moment := offset[len(offset)-1], 0.0, 0.0
		for _, x := range offset {
			e := math.Exp(s * (x - most))
			sum += e
			moment += x * e
		}
		log = s*most + math.Log(sum/n)
		return s*moment/sum - log, log
	}
	excess, moment := 0.0, 0.0 // what e^{sx} adds to 1+sx, whose mean is 1
	for _, x := range offset {
		excess += exponentialExcess(s*x) / n
		moment += x * math.Expm1(s*x) / n
	}
	log = math.Log1p(excess)
	return s*moment/(1+excess) - log, log
}

// exponentialExcess returns e^x − 1 − x, for |x| ≤ 1.
func exponentialExcess(x float64) float64 {
	if math.Abs(x) > 0.1 {
		return math.Expm1(x) - x
	}
	sum, term := 0.0, x
	for k := 2.0; k < 14; k++ {
		term *= x / k
		sum += term
	}
	return sum
}

func checkBall(samples []float64, delta float64) error {
	if len(samples) == 0 {
		return messages.Errorf(messages.Invalid, "samples: there are none: give at least one")
	}
	for i, x := range samples {
		if !(x >= 0 && x <= Largest) {
			return messages.Errorf(messages.Invalid, "samples[%d]: must be from 0 to %g, is %g", i, Largest, x)
		}
	}
	return checkDelta(delta)
}

func checkDelta(delta float64) error {
	if !(delta >= 0 && delta <= Largest) {
		return messages.Errorf(messages.Invalid, "delta: must be from 0 to %g, is %g", Largest, delta)
	}
	return nil
}

func checkPart(part float64) error {
	if !(part > 0 && part <= 1) {
		return messages.Errorf(messages.Invalid, "quantile: must be above 0 and at most 1, is %g", part)
	}
	return nil
}
