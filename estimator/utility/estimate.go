package utility

import (
	"cmp"
	"math"

	"github.com/candor-grid/candor/messages"
)

// Estimate says how much a share of each resource is worth to a repeated job of one user.
type Estimate struct {
	Fit *Fit // the fit of the runs, without the default
	// Weights has m weights. None is negative, and at least one is positive. They are the fitted weights, moved towards
	// the default. A weight that the runs determine well is moved less. Only the ratios of the weights matter.
	Weights []float64
	// Default says how much the default determines Weights, from 0 to 1. It is 1 without runs, and near 0 with many
	// runs.
	Default float64
	// Residual is the root mean square, over the runs, of the part of their utilities that Weights do not explain.
	// Scale is the root mean square of the utilities.
	Residual, Scale float64
}

const (
	// assumedNoise is the noise that the estimate assumes for a run's utility, as a fraction of the utility. It counts
	// as much as one run. So it matters only while few runs have shown the real noise.
	assumedNoise = 0.1
	// defaultSpread is the standard deviation of a weight around its default before any run is known, divided by the
	// default.
	defaultSpread = 1.0
)

// Estimate moves the fit towards default weights: m numbers, each at least 0. Only the ratios of the default weights
// matter, because Estimate first scales them to fit the runs best. It makes two assumptions. Each weight is normally
// distributed, with the default weight as its mean and also as its standard deviation. The noise of the runs is normal,
// and its variance is the variance of the fit's residuals. The result is the most likely weights that are not negative.
// Estimate takes O(m³).
func (g *Regression) Estimate(fallback []float64) (*Estimate, error) {
	if err := g.checkDefault(fallback); err != nil {
		return nil, err
	}
	e := &Estimate{Fit: g.Fit(), Weights: append([]float64{}, fallback...), Default: 1}
	scale := g.scaleOf(fallback)
	if scale == 0 { // there is no run, or all utilities are 0
		return e, nil
	}
	prior := make([]float64, g.m)
	largest := 0.0
	for j, w := range fallback {
		prior[j] = scale * w
		largest = max(largest, prior[j])
	}
	noise := g.noise(e.Fit)
	if noise == 0 {
		return e, nil
	}
	e.Scale = math.Sqrt(g.size() / g.weight)
	w, part, err := g.shrink(prior, noise, largest)
	if err != nil {
		return nil, err
	}
	for _, v := range w {
		if v > 0 {
			e.Weights, e.Default = w, part
			e.Residual = math.Sqrt((g.rss + residual(g.r, g.z, w)) / g.weight)
			break
		}
	}
	return e, nil
}

func (g *Regression) checkDefault(fallback []float64) error {
	if len(fallback) != g.m {
		return messages.Errorf(messages.Invalid, "default: must be a weight for each of %d resources, there are %d", g.m, len(fallback))
	}
	sum := 0.0
	for j, w := range fallback {
		if !(w >= 0 && w <= Largest) {
			return messages.Errorf(messages.Invalid, "default[%d]: must be 0 or above and finite, is %g", j, w)
		}
		sum += w
	}
	if sum == 0 {
		return messages.Errorf(messages.Invalid, "default: all weights are 0: give at least one resource a positive weight")
	}
	return nil
}

// scaleOf compares the runs with the default weights. It returns the factor by which the default weights must be
// multiplied to fit the runs best. If this factor is not positive, it returns a ratio instead: the size of the runs'
// utilities, divided by the size of the utilities that the default weights give for the same runs. It returns 0 if
// there is nothing to fit.
func (g *Regression) scaleOf(fallback []float64) float64 {
	var product, square float64
	for i := range g.m {
		v := 0.0
		for j := i; j < g.m; j++ {
			v += g.r[i*g.m+j] * fallback[j]
		}
		product += v * g.z[i]
		square += v * v
	}
	switch {
	case square == 0:
		return 0
	case product > 0:
		return product / square
	}
	return math.Sqrt(g.size() / square)
}

// size returns Σ weight·y² over the runs.
func (g *Regression) size() float64 {
	sum := g.rss
	for _, z := range g.z {
		sum += z * z
	}
	return sum
}

// noise returns the standard deviation of the utility of one run. It is estimated from the residuals of the fit.
// assumedNoise counts as one more residual, so that the result is sensible even after few runs.
func (g *Regression) noise(f *Fit) float64 {
	assumed := assumedNoise * assumedNoise * g.size() / g.weight
	freedom := max(0, g.weight-float64(f.Rank))
	return math.Sqrt((f.RSS + assumed) / (freedom + 1))
}

// Each run gives an equation for the weights. shrink adds one more equation for each weight, w_j = prior_j, which pulls
// the weight towards its prior. Each added equation counts with the factor noise/spread. Then shrink solves all
// equations for w ≥ 0. It also returns how much of the answer comes from the prior. This is the precision of the prior
// divided by the total precision, as a mean over all directions of w.
func (g *Regression) shrink(prior []float64, noise, largest float64) (w []float64, part float64, err error) {
	m := g.m
	r, z := append([]float64{}, g.r...), append([]float64{}, g.z...)
	row, precisions := make([]float64, m), make([]float64, m)
	for j := range m {
		// A weight that is 0 in the prior may still turn out to be as large as the other weights.
		spread := defaultSpread * prior[j]
		spread = cmp.Or(spread, defaultSpread*largest)
		precisions[j] = noise / spread
		clear(row)
		row[j] = precisions[j]
		turn(r, z, row, precisions[j]*prior[j])
	}
	w, ok := nonnegative(r, z)
	if !ok {
		return nil, 0, messages.Errorf(messages.Internal, "the search for nonnegative weights did not end")
	}
	return w, priorPart(r, precisions), nil
}

// priorPart returns the part of the estimate that comes from the prior: trace((RᵀR)⁻¹·diag(precisions²))/m. The
// equations of the prior are included in R.
func priorPart(r, precisions []float64) float64 {
	m, trace := len(precisions), 0.0
	for j, p := range precisions {
		// The vector x solves Rᵀx = p·e_j, where p is precisions[j]. The trace of the matrix above is the sum of |x|²
		// over all j.
		x := make([]float64, m)
		for i := j; i < m; i++ {
			s := 0.0
			if i == j {
				s = p
			}
			for k := j; k < i; k++ {
				s -= r[k*m+i] * x[k]
			}
			x[i] = s / r[i*m+i]
			trace += x[i] * x[i]
		}
	}
	return min(1, trace/float64(m))
}
