package density

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// core is the part of the samples' weight from which location and scatter are computed. So up to a quarter of the
	// weight may be lies without an effect on location and scatter.
	core = 0.75
	// The core is the samples that lie closest together and have 3/4 of the weight (see the constant core). A search
	// finds it in steps, and each step finds a core with less scattered samples. coreSteps is the maximum number of
	// steps.
	coreSteps = 20
	// normalMAD is the standard deviation of a normal distribution divided by its median absolute deviation. normalMean
	// is its standard deviation divided by its mean absolute deviation.
	normalMAD, normalMean = 1.482602218505602, 1.2533141373155001
	// floorScatter bounds the standard deviation of the core (see the constant `core`) from below, as a part of the
	// standard deviation of all samples.
	floorScatter = 0.01
)

// robust shifts and scales the samples so that outliers do not matter. Afterwards, the core of the samples has the
// centre 0 and no correlations. The core is the group of samples that lie closest together and have three quarters of
// the weight. Finally, all distances from the centre are scaled so that their median is the same as for a standard
// normal distribution.
//
// The core is found in steps. The first step uses medians and the deviations from them. Each further step takes the
// samples that were nearest by the mean and covariance of the step before (fast minimum covariance determinant).
func robust(d *Data, weights []float64) []float64 {
	l, n := d.Dimensions, d.Len()
	scale := make([]float64, l)
	white := make([]float64, len(d.Values))
	for j := range l {
		middle, deviation := spread(d, weights, j)
		deviation = cmp.Or(deviation, 1)
		scale[j] = deviation
		for k := range n {
			white[k*l+j] = (d.Values[k*l+j] - middle) / deviation
		}
	}
	distances := squares(white, l)
	previous := []int(nil)
	for range coreSteps {
		members := nearest(distances, weights)
		if slices.Equal(members, previous) {
			break
		}
		previous = members
		white = whitenBy(d, weights, members, scale)
		distances = squares(white, l)
	}
	chi := distuv.ChiSquared{K: float64(l)}
	if middle := median(distances, weights); middle > 0 {
		factor := math.Sqrt(chi.Quantile(0.5) / middle)
		for i := range white {
			white[i] *= factor
		}
	}
	return white
}

// spread returns the weighted median of coordinate j, and a robust standard deviation. It usually computes the
// deviation from the median absolute deviation. If more than half of the samples are equal, the median absolute
// deviation would be 0. Then spread uses the mean absolute deviation instead. If all samples are equal, the deviation
// is 0.
func spread(d *Data, weights []float64, j int) (middle, deviation float64) {
	x := make([]float64, d.Len())
	for k := range x {
		x[k] = d.At(k)[j]
	}
	middle = median(x, weights)
	mean, total := 0.0, 0.0
	for k := range x {
		x[k] = math.Abs(x[k] - middle)
		mean += weights[k] * x[k]
		total += weights[k]
	}
	if deviation = normalMAD * median(x, weights); deviation > 0 {
		return middle, deviation
	}
	return middle, normalMean * mean / total
}

func squares(white []float64, l int) []float64 {
	out := make([]float64, len(white)/l)
	for k := range out {
		for _, x := range white[k*l : (k+1)*l] {
			out[k] += x * x
		}
	}
	return out
}

// ordered returns the indices in ascending order of values. Equal values are ordered by index.
func ordered(values []float64) []int {
	order := make([]int, len(values))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}

// median returns the smallest value such that at least half of the weight is at or below it.
func median(values, weights []float64) float64 {
	order := ordered(values)
	return values[order[len(upTo(order, weights, 0.5))-1]]
}

// nearest returns the samples with the smallest distances, by ascending index. Together they have at least the part
// `core` of all samples' weight.
func nearest(distances, weights []float64) []int {
	members := slices.Clone(upTo(ordered(distances), weights, core))
	slices.Sort(members)
	return members
}

// The list `order` has numbers of samples. upTo returns the shortest beginning of this list whose samples have at least
// the fraction p of the total weight.
func upTo(order []int, weights []float64, p float64) []int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	sum := 0.0
	for i, k := range order {
		if sum += weights[k]; sum >= p*total {
			return order[:i+1]
		}
	}
	return order
}

// whitenBy shifts and scales all samples. It chooses the shift and the scale so that the samples in `members` get the
// mean 0 and the covariance 1.
func whitenBy(d *Data, weights []float64, members []int, scale []float64) []float64 {
	l := d.Dimensions
	some := Data{Dimensions: l}
	for _, k := range members {
		some.Values = append(some.Values, d.At(k)...)
		some.Weights = append(some.Weights, weights[k])
	}
	total, mean, _ := some.moments()
	c := some.scatter(mean)
	c.ScaleSym(1/total, c)
	f := Density{dims: l, centre: mean, lower: floored(c, scale)}
	white := make([]float64, len(d.Values))
	for k := range d.Len() {
		f.whiten(d.At(k), white[k*l:(k+1)*l])
	}
	return white
}

// floored returns the Cholesky factor of the covariance c. First it raises each standard deviation to at least a
// hundredth of the scale of its coordinate.
func floored(c *mat.SymDense, scale []float64) []float64 {
	for j, s := range scale {
		c.SetSym(j, j, max(c.At(j, j), floorScatter*floorScatter*s*s))
	}
	regular, _, err := Regular(c, scale)
	if err == nil {
		if lower, least := factor(regular); least > 0 {
			return lower
		}
	}
	// The scatter is the matrix of covariances. Its Cholesky factorization can fail only because of rounding. If it
	// fails, the coordinates are used without their correlations.
	lower := make([]float64, len(scale)*len(scale))
	for j := range scale {
		lower[j*len(scale)+j] = math.Sqrt(c.At(j, j))
	}
	return lower
}
