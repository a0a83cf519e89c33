package density

import (
	"gonum.org/v1/gonum/mat"

	"github.com/candor-grid/candor/messages"
)

// Class learns the distribution of the types of one job profile class as they
// are submitted, in bounded memory. It is not safe for concurrent use; the
// densities it returns are.
type Class struct {
	config Config
	store  store

	built, before *Density // the estimate in use, and the one before it
	builtAt       float64  // samples it is of
	effective     float64  // what they count as, capped and screened
	screened      float64  // the part of the influence screened out
}

// NewClass makes a class without samples.
func NewClass(c Config) (*Class, error) {
	c.defaults()
	k := &Class{config: c, store: newStore(&c)}
	return k, k.build()
}

// Add takes in the type that an account submitted, if the type is within the template;
// one outside changes nothing. Samples of account "" count as of one account, together
// with those of accounts beyond half the kernels. O(Kernels·L).
func (c *Class) Add(account messages.Name, x []float64) (within bool) {
	if within = c.config.Bounds.Contains(x); within {
		c.store.add(account, x)
	}
	return within
}

// Refresh is the part by which samples must have grown for Estimate to be made
// anew.
const Refresh = 1.0 / 32

// Estimate is the density as of a recent sample: it is made anew when there are
// 1/32 more of them than it is of. That takes up to O(Kernels²·L); otherwise
// it is at hand.
func (c *Class) Estimate() (*Density, error) {
	if c.store.Count-c.builtAt >= max(1, Refresh*c.builtAt) {
		if err := c.build(); err != nil {
			return nil, err
		}
	}
	return c.built, nil
}

// Draws makes n draws within the template's bounds.
func (c *Class) Draws(seed uint64, n int) ([]float64, error) {
	f, err := c.Estimate()
	if err != nil {
		return nil, err
	}
	values, _ := f.Draws(generator(seed), n, &c.config.Bounds)
	return values, nil
}

// Sufficient is how many samples displace the prior, which until then counts
// as those that are missing: the variance of the estimate is small from there
// on (Huang et al., figure 7).
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

// kept returns the kernels that stay, weighted by the influence they have, and
// their total weight.
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

// addPrior adds the prior, with a weight in all.
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

// bandwidth chooses by the rule. Kernels that stand for many samples tell no
// more of the density's shape than so many samples would: for the rule there
// are as many as would have a mean of the same variance (Kish).
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

// Samples is how many were taken in.
func (c *Class) Samples() float64 { return c.store.Count }

// Effective is what the samples count as after capping and screening, as of the
// last estimate made.
func (c *Class) Effective() float64 { return c.effective }

// Summary is what is known of a class, as of the last estimate made.
type Summary struct {
	Samples   float64 // taken in
	Accounts  int     // told apart
	Kernels   int     // of the estimate
	Effective float64 // what the samples count as after capping and screening
	Screened  float64 // the part of the influence that was screened out
	Prior     float64 // the part of the estimate that is the prior's
	Bandwidth *mat.SymDense
	Moved     float64 // divergence of the estimate from the one before, nats
	MovedBy   float64 // standard error of Moved
}

// movedDraws is from how many draws Moved is estimated.
const movedDraws = 1000

// Summary describes the class. O(Kernels·L) a thousand times over.
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
