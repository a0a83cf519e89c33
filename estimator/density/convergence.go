package density

import (
	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Point is how far estimates from so many samples are from the truth, over
// repetitions: the mean and the variance of the divergence, in nats.
type Point struct {
	Samples        int
	Mean, Variance float64
}

// Figure7 is the truth of figure 7 of Huang et al.: types (μ, δ), normal around
// (2000, 1000) with standard deviations 1000 and 500.
func Figure7() *Density {
	f, err := New(&Data{Dimensions: 2, Values: []float64{2000, 1000}}, mat.NewSymDense(2, []float64{1e6, 0, 0, 250_000}))
	if err != nil {
		panic(err) // the numbers above are a density
	}
	return f
}

// Convergence estimates the divergence of estimates by a rule from a truth: for
// each number of samples it draws so many and makes an estimate, over and over,
// and takes the divergence from a number of draws. Everything is drawn from the
// seed.
func Convergence(truth *Density, r Rule, samples []int, repetitions, draws int, seed uint64) ([]Point, error) {
	if repetitions < 2 {
		return nil, messages.Errorf(messages.Invalid, "repetitions: must be at least 2, are %d", repetitions)
	}
	var points []Point
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

func converge(truth *Density, r Rule, n, repetitions, draws int, seed uint64) (Point, error) {
	p, squares := Point{Samples: n}, 0.0
	for k := range repetitions {
		values, _ := truth.Draws(generator(seed+uint64(k)<<20+uint64(n)), n, nil)
		d := &Data{Dimensions: truth.Dimensions(), Values: values}
		h, err := Bandwidth(d, r)
		if err != nil {
			return p, err
		}
		f, err := New(d, h)
		if err != nil {
			return p, err
		}
		divergence, _, err := Divergence(truth, f, draws, seed+uint64(k))
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
