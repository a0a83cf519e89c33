package contract

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Sampler draws a type from the estimated distribution of a class of jobs. If the type is no valid valuation, for
// example because its deadline is negative, the caller draws again.
type Sampler func(r *rand.Rand) job.Valuation

// A class of jobs may have a distribution that gives invalid types. mostDraws is how many types are drawn in search of
// a valid one; after that, the distribution is refused.
const mostDraws = 10_000

// Valid returns a function that calls a sampler until it draws a valid valuation.
func Valid(draw Sampler) func(r *rand.Rand) (job.Valuation, error) {
	return func(r *rand.Rand) (job.Valuation, error) {
		var err error
		for range mostDraws {
			t := draw(r)
			if err = t.Validate(); err == nil {
				return t, nil
			}
		}
		return job.Valuation{}, messages.Errorf(messages.Invalid,
			"samples: none of %d draws is a valid valuation (the last: %v): correct the distribution of the class", mostDraws, err)
	}
}

// FromSamples returns a sampler that draws each of the samples with the same probability.
func FromSamples(samples []job.Valuation) (Sampler, error) {
	if len(samples) == 0 {
		return nil, messages.Errorf(messages.Invalid, "samples: there are none: a class needs at least one type to draw from")
	}
	return func(r *rand.Rand) job.Valuation { return samples[r.IntN(len(samples))] }, nil
}

// Draw has the types drawn for a job: M replicas, including the declared type, and M surrogates.
type Draw struct {
	Replicas   []job.Valuation
	Surrogates []job.Valuation
	Declared   int // index of the declared type among the replicas
}

// NewDraw puts the declared type at a uniformly random position among m replicas. The other m−1 replicas, and m
// surrogates, are drawn from the class. The same seed gives the same draw.
func NewDraw(declared job.Valuation, class Sampler, m int, seed uint64) (*Draw, error) {
	if err := sized(m); err != nil {
		return nil, err
	}
	if err := declared.Validate(); err != nil {
		return nil, messages.Errorf(messages.KindOf(err), "type.%s", messages.Detail(err))
	}
	// the second number makes these draws independent of other uses of the seed
	r := rand.New(rand.NewPCG(seed, 0x636f6e7472616374))
	d := &Draw{Declared: r.IntN(m)}
	draw := Valid(class)
	for len(d.Surrogates) < m {
		if len(d.Replicas) == d.Declared {
			d.Replicas = append(d.Replicas, declared)
		}
		if len(d.Replicas) < m {
			t, err := draw(r)
			if err != nil {
				return nil, err
			}
			d.Replicas = append(d.Replicas, t)
		}
		t, err := draw(r)
		if err != nil {
			return nil, err
		}
		d.Surrogates = append(d.Surrogates, t)
	}
	return d, nil
}

// Curves returns the replicas as curves.
func (d *Draw) Curves() ([]valuation.Curve, error) {
	curves := make([]valuation.Curve, len(d.Replicas))
	for j, t := range d.Replicas {
		c, err := valuation.New(t)
		if err != nil {
			return nil, err
		}
		curves[j] = c
	}
	return curves, nil
}

// Weights returns v(r_j, X_k) for each replica j (a row) and completion time X_k, in seconds after submission.
func Weights(replicas []valuation.Curve, completion []float64) []float64 {
	weights := make([]float64, len(replicas)*len(completion))
	for j := range replicas {
		row := weights[j*len(completion):]
		for k, x := range completion {
			row[k] = replicas[j].At(x)
		}
	}
	return weights
}
