package density

import (
	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Class learns the distribution of the submitted types of one job profile class, in bounded memory. A Class is not safe
// for concurrent use. The densities that it returns are safe.
type Class struct {
	config Config
	store  store

	built, before *Density // the present estimate, and the one before it
	builtAt       float64  // number of samples in built
	effective     float64  // effective number of these samples, after capping and screening
	screened      float64  // the part of the weight that was screened out, from 0 to 1
}

// NewClass returns a class without samples.
func NewClass(c Config) (*Class, error) {
	c.defaults()
	k := &Class{config: c, store: newStore(&c)}
	return k, k.build()
}

// Add adds the type that an account submitted, if the type is within the template. It returns true if it added the
// type. With more than Kernels/2 accounts, all later accounts, and the account "", count as one account. Add takes
// O(Kernels·L).
func (c *Class) Add(account messages.Name, x []float64) (within bool) {
	if within = c.config.Bounds.Contains(x); within {
		c.store.add(account, x)
	}
	return within
}

// Refresh says when Estimate computes a new density: when the number of samples has grown by this fraction since the
// last density was computed.
const Refresh = 1.0 / 32

// Estimate returns the density of the samples. If the number of samples has grown by 1/32, it computes a new density,
// in up to O(Kernels²·L).
func (c *Class) Estimate() (*Density, error) {
	if c.store.Count-c.builtAt >= max(1, Refresh*c.builtAt) {
		if err := c.build(); err != nil {
			return nil, err
		}
	}
	return c.built, nil
}

// Draws returns n points that are drawn from the estimated density. All are within the bounds of the class's
// configuration.
func (c *Class) Draws(seed uint64, n int) ([]float64, error) {
	f, err := c.Estimate()
	if err != nil {
		return nil, err
	}
	values, _ := f.Draws(generator(seed), n, &c.config.Bounds)
	return values, nil
}

// Sufficient is the number of samples that replace the prior completely. With fewer samples, the prior counts as much
// as the samples that are missing. With 20 samples, the variance of the estimate is small (Huang et al., figure 7).
const Sufficient = 20

func (c *Class) build() error {
	d, count := c.kept()
	c.addPrior(d, Sufficient-count)
	h, err := c.bandwidth(d)
	if err != nil {
		return err
	}
	f, err := New(d, h)
	if err != nil {
		return err
	}
	c.before, c.built, c.builtAt, c.effective = c.built, f, c.store.Count, count
	return nil
}

// kept returns the kernels that the screening keeps; the others seem to be lies. The weight of each owner is limited.
// The second result is the total weight of the returned kernels.
func (c *Class) kept() (d *Data, count float64) {
	all, owner := c.store.data()
	weights := capped(owner, all.Weights, c.config.Influence)
	keep := screen(all, weights, c.store.Count)
	d = &Data{Dimensions: all.Dimensions, Weights: []float64{}}
	total := 0.0
	for k, w := range weights {
		total += w
		if keep[k] {
			count += w
			d.Values, d.Weights = append(d.Values, all.At(k)...), append(d.Weights, w)
		}
	}
	c.screened = 0
	if total > 0 {
		c.screened = max(0, 1-count/total)
	}
	return d, count
}

// addPrior adds the prior's samples to d, with a given total weight.
func (c *Class) addPrior(d *Data, weight float64) {
	if weight <= 0 {
		return
	}
	d.Values = append(d.Values, c.config.Prior...)
	n := len(c.config.Prior) / d.Dimensions
	for range n {
		d.Weights = append(d.Weights, weight/float64(n))
	}
}

// bandwidth computes the bandwidth by the configured rule from the number of samples. Many samples may be merged into
// few kernels. Then the density has only as much detail as the kernels. So the rule uses the smaller of two numbers:
// the number of samples, and the effective number of kernels (by Kish's formula).
func (c *Class) bandwidth(d *Data) (*mat.SymDense, error) {
	n, _, covariance := d.moments()
	squares := 0.0
	for _, w := range d.Weights {
		squares += w * w
	}
	n = min(n, n*n/squares)
	h, _, err := Regular(c.config.Rule.of(covariance, n), c.config.Bounds.widths())
	return h, err
}

// Samples returns the number of samples added.
func (c *Class) Samples() float64 { return c.store.Count }

// Effective returns the effective number of samples in the last estimate. It is smaller than the number of added
// samples if the weights of accounts were bounded, or if samples were screened out.
func (c *Class) Effective() float64 { return c.effective }

// Summary describes a class as it was when its estimate was last made.
type Summary struct {
	Samples   float64 // number of samples added
	Accounts  int     // number of accounts that are distinguished
	Kernels   int     // number of kernels in the estimate
	Effective float64 // effective number of samples after capping and screening
	Screened  float64 // the part of the weight that was screened out, from 0 to 1
	Prior     float64 // the part of the estimate that comes from the prior, from 0 to 1
	Bandwidth *mat.SymDense
	Moved     float64 // divergence of the estimate from the previous one, in nats
	MovedBy   float64 // standard error of Moved
}

// Summary.Moved is the divergence between the last two estimates. movedDraws is the number of draws from which it is
// computed.
const movedDraws = 1000

// Summary describes the class. It draws 1,000 points from the estimate, and so takes 1,000 times O(Kernels·L).
func (c *Class) Summary() (*Summary, error) {
	f, err := c.Estimate()
	if err != nil {
		return nil, err
	}
	s := &Summary{Samples: c.store.Count, Accounts: len(c.store.Groups), Kernels: f.Kernels(), Effective: c.effective,
		Screened: c.screened, Prior: max(0, 1-c.effective/Sufficient), Bandwidth: f.H()}
	if c.before != nil {
		s.Moved, s.MovedBy, err = Divergence(f, c.before, movedDraws, 0)
	}
	return s, err
}
