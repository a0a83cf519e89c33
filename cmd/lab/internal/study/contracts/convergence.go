package contracts

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/estimator/density"
	"github.com/candor-grid/candor/messages"
)

// figure7 returns the true density of figure 7 of Huang et al.: types (μ, δ), normal around (2000, 1000) with standard
// deviations 1000 and 500.
func figure7() *density.Density {
	f, err := density.New(&density.Data{Dimensions: 2, Values: []float64{2000, 1000}}, mat.NewSymDense(2, []float64{1e6, 0, 0, 250_000}))
	if err != nil {
		panic(err) // cannot happen: these numbers are a valid density
	}
	return f
}

// convergence measures how far estimates are from a true density. For each number of samples, it repeatedly draws the
// samples, makes an estimate, and computes the divergence. All random numbers come from the seed.
func convergence(truth *density.Density, r density.Rule, samples []int, repetitions, draws int, seed uint64) ([]point, error) {
	if repetitions < 2 {
		return nil, messages.Errorf(messages.Invalid, "repetitions: must be at least 2, are %d", repetitions)
	}
	var points []point
	for _, n := range samples {
		if n < 2 {
			return nil, messages.Errorf(messages.Invalid, "samples: must be at least 2, are %d", n)
		}
		point, err := converge(truth, r, n, repetitions, draws, seed)
		if err != nil {
			return nil, err
		}
		points = append(points, point)
	}
	return points, nil
}

// stream is the number of the random stream from which samples are drawn.
const stream = 0x64656e73697479

func converge(truth *density.Density, r density.Rule, n, repetitions, draws int, seed uint64) (point, error) {
	p, squares := point{Samples: n}, 0.0
	for k := range repetitions {
		values, _ := truth.Draws(rand.New(rand.NewPCG(seed+uint64(k)<<20+uint64(n), stream)), n, nil)
		d := &density.Data{Dimensions: truth.Dimensions(), Values: values}
		h, err := density.Bandwidth(d, r)
		if err != nil {
			return p, err
		}
		f, err := density.New(d, h)
		if err != nil {
			return p, err
		}
		divergence, _, err := density.Divergence(truth, f, draws, seed+uint64(k))
		if err != nil {
			return p, err
		}
		step := divergence - p.Mean
		p.Mean += step / float64(k+1)
		squares += step * (divergence - p.Mean)
	}
	p.Variance = squares / float64(repetitions-1)
	return p, nil
}
