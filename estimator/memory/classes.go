package memory

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/estimator/density"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// class is a job profile class with the samples that were learned for it.
type class struct {
	profile job.Profile
	density *density.Class
	outside uint64 // number of samples outside the template

	told *market.ClassEstimate // the latest answer of estimate; nil means none yet
	of   *density.Density
}

func newClass(p *job.Profile) (*class, error) {
	d, err := density.NewClass(densityConfig(p))
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "profile %s: %s", p.Name, messages.Detail(err))
	}
	return &class{profile: *p, density: d}, nil
}

func densityConfig(p *job.Profile) density.Config {
	c := density.Config{Rule: density.Rule(p.Bandwidth), Influence: p.Influence, Kernels: p.Kernels}
	for _, b := range p.Bounds {
		c.Bounds.Low, c.Bounds.High = append(c.Bounds.Low, b.Low), append(c.Bounds.High, b.High)
	}
	for _, x := range p.Prior {
		c.Prior = append(c.Prior, x...)
	}
	return c
}

// learnType adds a job's declared valuation to a class as a sample. It takes the first class of the same shape whose
// bounds contain the valuation. If there is no such class, the first class of the same shape counts the valuation as
// outside of its bounds.
func (m *Memory) learnType(o *job.Observation) {
	var near *class
	for _, c := range m.classes {
		x, ok := c.profile.Observed(o)
		if !ok {
			continue
		}
		if c.density.Add(o.Account, x) {
			return
		}
		near = cmp.Or(near, c)
	}
	if near != nil {
		near.outside++
	}
}

func (m *Memory) class(name messages.Name) (*class, error) {
	for _, c := range m.classes {
		if c.profile.Name == name {
			return c, nil
		}
	}
	return nil, messages.Errorf(messages.NotFound, "class: there is no job profile class %q; `candor estimate classes` lists the classes", name)
}

// Classes returns what is known about each job profile class.
func (m *Memory) Classes() (reply market.ClassesReply, err error) {
	reply.Classes = []market.ClassEstimate{}
	for _, c := range m.classes {
		e, err := c.estimate()
		if err != nil {
			return reply, err
		}
		reply.Classes = append(reply.Classes, e)
	}
	return reply, nil
}

// momentDraws is the number of draws from which a class's mean and deviation are computed.
const momentDraws = 2000

// estimate describes the class. For each new density it makes thousands of draws.
func (c *class) estimate() (market.ClassEstimate, error) {
	f, err := c.density.Estimate()
	if err != nil {
		return market.ClassEstimate{}, err
	}
	if c.told == nil || c.of != f {
		e, err := c.describe()
		if err != nil {
			return market.ClassEstimate{}, err
		}
		c.told, c.of = &e, f
	}
	e := *c.told
	e.Samples, e.Outside = c.density.Samples(), c.outside
	return e, nil
}

func (c *class) describe() (market.ClassEstimate, error) {
	s, err := c.density.Summary()
	if err != nil {
		return market.ClassEstimate{}, err
	}
	e := market.ClassEstimate{
		Profile: c.profile, Accounts: s.Accounts, Kernels: s.Kernels,
		Effective: s.Effective, Screened: s.Screened, Prior: s.Prior, Moved: s.Moved, MovedBy: s.MovedBy,
	}
	for j := range c.profile.Bounds {
		e.Bandwidth = append(e.Bandwidth, math.Sqrt(s.Bandwidth.At(j, j)))
	}
	values, err := c.density.Draws(0, momentDraws)
	if err != nil {
		return e, err
	}
	e.Mean, e.Deviation = moments(values, len(c.profile.Bounds))
	return e, nil
}

func moments(values []float64, l int) (mean, deviation []float64) {
	mean, deviation = make([]float64, l), make([]float64, l)
	n := float64(len(values) / l)
	for i, x := range values {
		mean[i%l] += x / n
	}
	for i, x := range values {
		deviation[i%l] = math.Hypot(deviation[i%l], (x-mean[i%l])/math.Sqrt(n))
	}
	return mean, deviation
}

// Samples returns a function that makes draws from a class. The function does not use the Memory, so the caller may
// call it without the Memory's lock.
func (m *Memory) Samples(r *market.SamplesRequest) (draw func() (market.SamplesReply, error), err error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	c, err := m.class(r.Class)
	if err != nil {
		return nil, err
	}
	f, err := c.density.Estimate()
	if err != nil {
		return nil, err
	}
	reply := market.SamplesReply{Class: r.Class, Parameters: c.profile.Parameters(), Runs: c.density.Effective()}
	reply.Prior = max(0, 1-reply.Runs/density.Sufficient)
	profile, bounds, request := c.profile, densityConfig(&c.profile).Bounds, *r
	return func() (market.SamplesReply, error) { return drawTypes(reply, f, &profile, &bounds, &request) }, nil
}

// redraws is the maximum number of times that a draw is repeated because it is not a valid type. For example, the
// points of a type can be out of order.
const redraws = 1000

func drawTypes(reply market.SamplesReply, f *density.Density, p *job.Profile, b *density.Bounds, r *market.SamplesRequest) (market.SamplesReply, error) {
	// the second number makes these draws independent of other uses of the seed
	random := rand.New(rand.NewPCG(r.Seed, 0x74797065))
	x := make([]float64, len(p.Bounds))
	if p.Class == job.Queued {
		for range r.Draws {
			f.DrawWithin(random, b, x)
			reply.Samples = append(reply.Samples, x...)
		}
		return reply, nil
	}
	for range r.Draws {
		v, err := job.Valuation{}, error(nil)
		for range redraws {
			f.DrawWithin(random, b, x)
			if v, err = p.Valuation(x); err == nil {
				break
			}
		}
		if err != nil {
			return reply, messages.Errorf(messages.Invalid, "class %s: almost no sample drawn from the class is a valid valuation (%s): narrow the bounds of the class", p.Name, messages.Detail(err))
		}
		reply.Samples = append(reply.Samples, x...)
		reply.Valuations = append(reply.Valuations, v)
	}
	return reply, nil
}
