package density

import "cmp"

// Config configures a job profile class. [messages.Profile.Validate] has checked it.
type Config struct {
	// Bounds of the template, finite and in order, one pair for each of L dimensions.
	Bounds Bounds
	// Prior has samples to use until there are enough, L numbers each; nil: all types within the
	// bounds are equally likely.
	Prior []float64
	// Rule chooses the bandwidth; "": Scott's, full.
	Rule Rule
	// Influence bounds the weight of an account, as a multiple of an even share; at least 1;
	// 0: 2.
	Influence float64
	// Kernels is the maximum number of kernels, at least 64; 0: 1024. If there are more samples,
	// they are merged. At most Kernels/2 accounts are distinguished; later accounts count as one.
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

// evenSamples is the weight of an even prior, as a number of samples.
const evenSamples = 64

// evenly returns samples spread evenly over the bounds (Halton's sequence).
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

// radicalInverse mirrors the digits of k at the radix point.
func radicalInverse(k, base int) float64 {
	x, place := 0.0, 1/float64(base)
	for ; k > 0; k /= base {
		x += float64(k%base) * place
		place /= float64(base)
	}
	return x
}
