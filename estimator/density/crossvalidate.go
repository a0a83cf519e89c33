package density

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

const (
	// mostPlaces is from how many different samples a bandwidth is
	// cross-validated at most; there the time is quadratic.
	mostPlaces = 256
	// stray is the part of samples taken to come from anywhere, so that one
	// far from the others does not widen every kernel until it is reached.
	stray = 0.01
	// strayWidth is the standard deviation of these samples, in units of the standard
	// deviation of all.
	strayWidth = 2
)

// crossValidate chooses the bandwidth along each principal axis of the
// correlations that makes each sample most likely to be drawn from the kernels
// of the others, starting from Scott's rule. Equal samples are left out
// together, or ever narrower kernels would look ever better.
func crossValidate(d *Data, n float64, mean []float64, c *mat.SymDense) *mat.SymDense {
	start := ScottFull.of(c, n)
	if pivot(c) <= leastPivot {
		return start
	}
	axes := principal(c)
	v := newValidation(d, mean, axes)
	if v.n < 3 {
		return start
	}
	l := d.Dimensions
	// What is best for the v.n samples looked at is too wide for all n.
	scott := math.Pow(float64(v.n), -1/float64(l+4))
	narrower := math.Pow(n/float64(v.n), -1/float64(l+4))
	widths := v.search(scott)
	h := mat.NewSymDense(l, nil)
	for i := range l {
		for j := i; j < l; j++ {
			s := 0.0
			for a := range l {
				w := widths[a] * narrower
				s += axes.At(i, a) * axes.At(j, a) * w * w
			}
			h.SetSym(i, j, s)
		}
	}
	return h
}

// principal returns A with C = A·Aᵀ, its columns along the principal axes of
// the correlations.
func principal(c *mat.SymDense) *mat.Dense {
	l := c.SymmetricDim()
	var e mat.EigenSym
	e.Factorize(correlations(c), true)
	var axes mat.Dense
	e.VectorsTo(&axes)
	for a, value := range e.Values(nil) {
		for i := range l {
			axes.Set(i, a, axes.At(i, a)*math.Sqrt(value*c.At(i, i)))
		}
	}
	return &axes
}

// validation holds the squared differences of the places along each axis.
type validation struct {
	n, dims int
	weights []float64
	squares []float64 // pairs·L: for each pair i<j, along each axis
	strays  []float64 // density at each place of the samples from anywhere
	sums    []float64
}

func newValidation(d *Data, mean []float64, axes *mat.Dense) *validation {
	values, weights := thin(places(d))
	v := &validation{n: len(weights), dims: d.Dimensions, weights: weights, sums: make([]float64, len(weights))}
	var inverse mat.Dense
	if err := inverse.Inverse(axes); err != nil {
		v.n = 0 // the pivots were checked: only by rounding
		return v
	}
	white := make([]float64, len(values))
	for k := range v.n {
		norm := 0.0
		for a := range v.dims {
			s := 0.0
			for j := range v.dims {
				s += inverse.At(a, j) * (values[k*v.dims+j] - mean[j])
			}
			white[k*v.dims+a] = s
			norm += s * s
		}
		v.strays = append(v.strays, math.Exp(-norm/(2*strayWidth*strayWidth))/math.Pow(strayWidth, float64(v.dims)))
	}
	for i := range v.n {
		for j := i + 1; j < v.n; j++ {
			for a := range v.dims {
				x := white[i*v.dims+a] - white[j*v.dims+a]
				v.squares = append(v.squares, x*x)
			}
		}
	}
	return v
}

// places returns the different samples in lexical order, which does not depend
// on theirs, with the total weight of each.
func places(d *Data) (values, weights []float64) {
	var order []int
	for k := range d.Len() {
		if d.Weight(k) > 0 {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return slices.Compare(d.At(a), d.At(b)) })
	for i, k := range order {
		if i > 0 && slices.Equal(d.At(k), d.At(order[i-1])) {
			weights[len(weights)-1] += d.Weight(k)
			continue
		}
		values, weights = append(values, d.At(k)...), append(weights, d.Weight(k))
	}
	return values, weights
}

// thin keeps mostPlaces of more places, evenly spread over their order.
func thin(values, weights []float64) (v, w []float64) {
	n := len(weights)
	if n <= mostPlaces {
		return values, weights
	}
	l := len(values) / n
	for i := range mostPlaces {
		k := i * n / mostPlaces
		v, w = append(v, values[k*l:(k+1)*l]...), append(w, weights[k])
	}
	return v, w
}

// score is the mean log-likelihood of each place given the others.
func (v *validation) score(widths []float64) float64 {
	var precisions [MaxDimensions]float64
	volume := 1.0
	for a, w := range widths {
		precisions[a] = -0.5 / (w * w)
		volume *= w
	}
	clear(v.sums)
	at := 0
	for i, wi := range v.weights {
		for j := i + 1; j < v.n; j++ {
			e := 0.0
			for a, s := range v.squares[at : at+v.dims] {
				e += s * precisions[a]
			}
			at += v.dims
			if e > negligible {
				k := math.Exp(e)
				v.sums[i] += k * v.weights[j]
				v.sums[j] += k * wi
			}
		}
	}
	return v.likelihood(volume)
}

func (v *validation) likelihood(volume float64) float64 {
	total := 0.0
	for _, w := range v.weights {
		total += w
	}
	sum := 0.0
	for i, w := range v.weights {
		sum += w * math.Log((1-stray)*v.sums[i]/((total-w)*volume)+stray*v.strays[i])
	}
	return sum / total
}

// search first finds the best common width, then twice the best of each axis
// by itself.
func (v *validation) search(start float64) []float64 {
	widths := make([]float64, v.dims)
	common := best(start/20, start*3, 16, func(w float64) float64 {
		for a := range widths {
			widths[a] = w
		}
		return v.score(widths)
	})
	for a := range widths {
		widths[a] = common
	}
	for range 2 {
		for a := 0; a < v.dims && v.dims > 1; a++ {
			widths[a] = best(widths[a]/3, widths[a]*3, 10, func(w float64) float64 {
				widths[a] = w
				return v.score(widths)
			})
		}
	}
	return widths
}

// best is the golden-section search for the largest f between two widths, on a
// logarithmic scale.
func best(low, high float64, steps int, f func(float64) float64) float64 {
	const g = 0.6180339887498949
	a, b := math.Log(low), math.Log(high)
	x, y := b-g*(b-a), a+g*(b-a)
	fx, fy := f(math.Exp(x)), f(math.Exp(y))
	for range steps {
		if fx >= fy {
			b, y, fy = y, x, fx
			x = b - g*(b-a)
			fx = f(math.Exp(x))
		} else {
			a, x, fx = x, y, fy
			y = a + g*(b-a)
			fy = f(math.Exp(y))
		}
	}
	return math.Exp((a + b) / 2)
}
