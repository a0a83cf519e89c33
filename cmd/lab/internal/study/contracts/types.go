package contracts

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/estimator/density"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// The paper's setting, sections IV and IV-A.
const (
	best     = 100 // in credits
	replicas = 100 // M in the paper: the number of replicas
)

// typed returns the sigmoidal valuation with the parameters μ = x[0] and δ = x[1].
func typed(x []float64) jobmsg.Valuation {
	return jobmsg.Valuation{Class: jobmsg.Sigmoidal, Max: best, Mu: x[0], Delta: x[1]}
}

// normal returns a function that draws types from normal distributions. Each mean is the true mean multiplied by
// `part`, and each standard deviation is the true standard deviation multiplied by `part`.
func normal(part float64) contract.Sampler {
	return func(r *rand.Rand) jobmsg.Valuation {
		return typed([]float64{part * (2000 + 1000*r.NormFloat64()), part * (1000 + 500*r.NormFloat64())})
	}
}

type training struct {
	name    string
	samples int
	part    float64 // factor for the true means and standard deviations; 1 means truthful
}

// trainings has the training sets of the paper. In the set "500 untruthful", the types are more urgent than the true
// types. controls has three more sets, for comparison. In the set "500 less urgent", the types are less urgent than the
// true types. The set "no surrogates" has no samples: no job pays, and each job is scheduled with its own type. The
// last set has no samples either, and all times of the types are halved.
var (
	trainings = []training{{"500 truthful", 500, 1}, {"20 truthful", 20, 1}, {"500 untruthful", 500, 0.5}}
	controls  = []training{{"500 less urgent", 500, 2}, {"no surrogates", 0, 1}, {"no surrogates, times halved", 0, 0.5}}
)

// train draws a training set, and returns the distribution of types that is estimated from it. It returns nil if the
// training set is empty.
func (t *training) train(r *rand.Rand) (contract.Sampler, error) {
	if t.samples == 0 {
		return nil, nil
	}
	draw := contract.Valid(normal(t.part))
	d := &density.Data{Dimensions: 2}
	for range t.samples {
		v, err := draw(r)
		if err != nil {
			return nil, err
		}
		d.Values = append(d.Values, v.Mu, v.Delta)
	}
	h, err := density.Bandwidth(d, density.ScottFull)
	if err != nil {
		return nil, err
	}
	f, err := density.New(d, h)
	if err != nil {
		return nil, err
	}
	return func(r *rand.Rand) jobmsg.Valuation {
		var x [2]float64
		f.Draw(r, x[:])
		return typed(x[:])
	}, nil
}
