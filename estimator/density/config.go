package density

import (
	"cmp"
	"math"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// Config is what an operator declares of a job profile class.
type Config struct {
	// Bounds of the template, finite: L of them is what makes L dimensions.
	Bounds Bounds
	// Prior are samples to go by until there are enough, L numbers each; nil:
	// everything within the bounds is as likely.
	Prior []float64
	// Rule is how the bandwidth is chosen; "": Scott's, full.
	Rule Rule
	// Influence is how many times an even part of the weight an account has at
	// most, 1 or above; 0: 2.
	Influence float64
	// Kernels is how many are kept; 0: 1024. Then samples are merged. Half as many
	// accounts are told apart; those that come later count as one.
	Kernels int
}

// Limits of a class.
const (
	DefaultKernels = 1024
	LeastKernels   = 64
	MostKernels    = 1 << 16
	// MostBound is the magnitude of a bound.
	MostBound = Largest / 2
)

// Check refuses a class that makes no sense, naming the field.
func (c *Config) Check() error {
	l := len(c.Bounds.Low)
	if l < 1 || l > MaxDimensions {
		return messages.Errorf(messages.Invalid, "bounds: must be 1 to %d intervals, are %d", MaxDimensions, l)
	}
	if err := c.Bounds.Check(l); err != nil {
		return err
	}
	for j := range l {
		if !(c.Bounds.Low[j] >= -MostBound && c.Bounds.High[j] <= MostBound) {
			return messages.Errorf(messages.Invalid, "bounds[%d]: %g to %g is wider than ±%g: give the range that values may have", j, c.Bounds.Low[j], c.Bounds.High[j], MostBound)
		}
	}
	if err := c.checkPrior(l); err != nil {
		return err
	}
	if c.Rule != "" {
		if err := c.Rule.Check(); err != nil {
			return err
		}
	}
	return c.checkSizes()
}

func (c *Config) checkPrior(l int) error {
	if len(c.Prior)%l != 0 {
		return messages.Errorf(messages.Invalid, "prior: %d numbers are not samples of %d coordinates each", len(c.Prior), l)
	}
	for k := 0; k < len(c.Prior); k += l {
		if err := c.contains("prior["+strconv.Itoa(k/l)+"]", c.Prior[k:k+l]); err != nil {
			return err
		}
	}
	return nil
}

// contains refuses a type that is not within the template.
func (c *Config) contains(place string, x []float64) error {
	if len(x) != len(c.Bounds.Low) {
		return messages.Errorf(messages.Invalid, "%s: must have %d coordinates, has %d", place, len(c.Bounds.Low), len(x))
	}
	for j, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return messages.Errorf(messages.Invalid, "%s[%d]: must be a finite number, is %g", place, j, v)
		}
		if v < c.Bounds.Low[j] || v > c.Bounds.High[j] {
			return messages.Errorf(messages.Invalid, "%s[%d]: %g is outside the template's %g to %g", place, j, v, c.Bounds.Low[j], c.Bounds.High[j])
		}
	}
	return nil
}

func (c *Config) checkSizes() error {
	if c.Influence != 0 {
		if err := checkInfluence(c.Influence); err != nil {
			return err
		}
	}
	if c.Kernels != 0 && (c.Kernels < LeastKernels || c.Kernels > MostKernels) {
		return messages.Errorf(messages.Invalid, "kernels: must be from %d to %d, are %d", LeastKernels, MostKernels, c.Kernels)
	}
	return nil
}

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
