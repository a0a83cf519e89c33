package density

import "cmp"

// Config is what an operator declares of a job profile class.
// [messages.Profile.Validate] has checked it.
type Config struct {
	// Bounds of the template, finite and in order: L of them make L dimensions.
	Bounds Bounds
	// Prior are samples to go by until there are enough, L numbers each; nil:
	// everything within the bounds is as likely.
	Prior []float64
	// Rule is how the bandwidth is chosen; "": Scott's, full.
	Rule Rule
	// Influence is how many times an even part of the weight an account has at
	// most, 1 or above; 0: 2.
	Influence float64
	// Kernels is how many are kept, 64 or more; 0: 1024. Then samples are merged. Half as many
	// accounts are told apart; later accounts count as one.
	Kernels int
}

// DefaultKernels is how many kernels a class keeps where nobody says.
const DefaultKernels = 1024

func (c *Config) defaults() {
	c.Rule = cmp.Or(c.Rule, ScottFull)
	c.Influence = cmp.Or(c.Influence, DefaultInfluence)
	c.Kernels = cmp.Or(c.Kernels, DefaultKernels)
	if c.Prior == nil {
		c.Prior = evenly(&c.Bounds)
	}
}

// evenSamples is how many samples stand for a prior that is even.
const evenSamples = 64

// evenly spreads samples over the bounds (Halton's sequence).
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

// radicalInverse mirrors the digits of k at the point.
func radicalInverse(k, base int) float64 {
	x, place := 0.0, 1/float64(base)
	for ; k > 0; k /= base {
		x += float64(k%base) * place
		place /= float64(base)
	}
	return x
}
