package density

import (
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/messages"
)

// Divergence estimates the Kullback-Leibler divergence of q from p: the mean of ln p(x) − ln q(x) over draws x from p,
// in nats. Except for its standard error, the mean is at least 0. The same seed gives the same draws.
func Divergence(p, q *Density, draws int, seed uint64) (mean, standardError float64, err error) {
	if p.dims != q.dims {
		return 0, 0, messages.Errorf(messages.Invalid, "densities: cannot be compared, because they have %d and %d dimensions", p.dims, q.dims)
	}
	if draws < 2 {
		return 0, 0, messages.Errorf(messages.Invalid, "draws: must be at least 2, are %d", draws)
	}
	r := generator(seed)
	x := make([]float64, p.dims)
	squares := 0.0
	for k := range draws {
		p.Draw(r, x)
		d := p.Log(x) - q.Log(x)
		step := d - mean
		mean += step / float64(k+1)
		squares += step * (d - mean)
	}
	return mean, math.Sqrt(squares / float64(draws-1) / float64(draws)), nil
}

// generator returns the random numbers of a seed. The second number makes them independent of other uses of the seed.
func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x64656e73697479)) }
