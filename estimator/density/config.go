package density

import "cmp"

// Config configures a job profile class. [job.Profile.Validate] has checked it.
type Config struct {
	// Bounds has a lower and an upper bound for each of the L dimensions of a job profile. All bounds are finite.
	Bounds Bounds
	// Prior has samples that are used until there are enough samples from jobs. Each sample is L numbers, one for each
	// dimension. If Prior is empty, the prior is uniform within the bounds.
	Prior []float64
	// Rule chooses the bandwidth. "" means Scott's full rule.
	Rule Rule
	// Influence bounds the weight of an account, as a multiple of the weight that each account would have if all had
	// the same. It is at least 1; 0 means 2.
	Influence float64
	// Kernels is the largest number of kernels, at least 64; 0 means 1024. If there are more samples, they are merged.
	// At most Kernels/2 accounts are distinguished; all later accounts together count as one account.
	Kernels int
}

// DefaultKernels is the default of Config.Kernels.
const DefaultKernels = 1024

func (c *Config) defaults() {
	c.Rule = cmp.Or(c.Rule, ScottFull)
	c.Influence = cmp.Or(c.Influence, DefaultInfluence)
	c.Kernels = cmp.Or(c.Kernels, DefaultKernels)
	if c.Prior == nil {
		c.Prior = evenly(&c.Bounds)
	}
}

// evenSamples is the number of samples of a uniform prior.
const evenSamples = 64

// evenly returns samples that are spread evenly over the bounds (Halton's sequence).
func evenly(b *Bounds) []float64 {
	values := make([]float64, 0, evenSamples*len(b.Low))
	for k := range evenSamples {
		base := 1
		for j, low := range b.Low {
			base = nextPrime(base)
			values = append(values, low+(b.High[j]-low)*radicalInverse(k+1, base))
		}
	}
	return values
}

func nextPrime(p int) int {
	for {
		p++
		prime := true
		for d := 2; d*d <= p; d++ {
			prime = prime && p%d != 0
		}
		if prime {
			return p
		}
	}
}

// radicalInverse mirrors the digits of k in a base at the radix point: 6 is 110 in base 2, and becomes 0.011.
func radicalInverse(k, base int) float64 {
	x, place := 0.0, 1/float64(base)
	for ; k > 0; k /= base {
		x += float64(k%base) * place
		place /= float64(base)
	}
	return x
}
