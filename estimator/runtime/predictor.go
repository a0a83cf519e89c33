package runtime

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/estimator/internal/recent"
)

// mostContexts is the largest number of contexts (sets of similar jobs). Each takes up to 2 kB.
const mostContexts = 50_000

// Predictor learns how long jobs run. It is not safe for concurrent use.
type Predictor struct {
	grain    float64
	contexts *recent.Map[key, *context]
	trust    *recent.Map[string, *trust] // by user: trust in each level
	site     trust
}

// New returns a predictor without runs. The argument `grain` is positive and in the unit of the predictions.
// Differences up to it do not matter.
func New(grain float64) *Predictor {
	return &Predictor{grain: grain, contexts: recent.New[key, *context](mostContexts), trust: recent.New[string, *trust](mostContexts)}
}

// Observe learns from a job that ended. The argument `ended` is the time of its end in microseconds. The run times of
// its tasks, or of some tasks chosen evenly, count together as one run. After an error nothing has changed.
func (p *Predictor) Observe(j *Job, ended int64, runtimes []float64) error {
	if err := j.Check(); err != nil {
		return err
	}
	if err := checkRuntimes(runtimes); err != nil {
		return err
	}
	sorted := slices.Sorted(slices.Values(runtimes))
	r := Run{Ended: ended, Owner: ownerOf(j.User), Values: few(sorted)}
	p.judge(j, sorted[len(sorted)/2])
	for i := range levels {
		l := &levels[i]
		k, ok := l.key(i, j)
		if !ok {
			continue
		}
		kept := r
		if l.ratio {
			kept.Values = make([]float64, len(r.Values))
			for n, v := range r.Values {
				kept.Values[n] = v / j.Limit
			}
		}
		p.contexts.Touch(k, func() *context { return newContext(l) }).add(kept)
	}
	return nil
}

// judge updates the trust in each level after a run. It compares the run time that the level predicts with `truth`, the
// actual run time.
func (p *Predictor) judge(j *Job, truth float64) {
	user := p.trust.Touch(j.User, func() *trust { return &trust{} })
	for i := range levels {
		c, scale, most := p.context(i, j)
		if c == nil {
			continue
		}
		guess := min(c.middle()*scale, most)
		loss := math.Abs(math.Log((guess + p.grain) / (truth + p.grain)))
		user.add(i, loss, userMemory)
		p.site.add(i, loss, siteMemory)
	}
}

// context returns the earlier runs that are similar to a job on one level of similarity. It returns nil if there are
// none. The caller must multiply the times of these runs by `scale`. A product that is larger than `most` counts as
// `most`.
func (p *Predictor) context(i int, j *Job) (c *context, scale, most float64) {
	scale, most = 1, Largest
	if j.Limit > 0 {
		most = j.Limit
	}
	if levels[i].ratio {
		scale = j.Limit
	}
	k, ok := levels[i].key(i, j)
	if !ok {
		return nil, scale, most
	}
	c, _ = p.contexts.Get(k)
	return c, scale, most
}

// A context is a set of earlier runs. With few runs it gets less weight: with n runs, its weight is multiplied by
// n/(n+thin).
const thin = 0.5

// Estimate returns the distribution of a job's run time. It returns nil if no run was observed and the job has no
// limit.
func (p *Predictor) Estimate(j *Job) (*Distribution, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	user, _ := p.trust.Get(j.User)
	say := p.site.say(user)
	var atoms []atom
	m := mixture{}
	for i := range levels {
		c, scale, most := p.context(i, j)
		if c == nil {
			continue
		}
		part := m.add(c, say[i], levels[i].label)
		atoms = c.atoms(atoms, part, scale, most)
	}
	if len(atoms) == 0 {
		return unseen(j), nil
	}
	return m.complete(j, atoms), nil
}

type mixture struct {
	parts, runs float64 // sums over the levels: Σ part, Σ part·runs
	largest     float64
	source      string
}

// mostCounted is the largest number of runs with which a context counts in the mixture. The weight of an older run of
// the same user is smaller by the factor `own` for each newer run. So all runs of a user together weigh at most as much
// as (1+own)/(1−own) equal runs. A context with runs of many users has the same limit.
const mostCounted = (1 + own) / (1 - own)

// add adds the runs of a context to the mixture. It returns the weight of the context in the mixture. The weight grows
// with the number of runs, but stays below `say`.
func (m *mixture) add(c *context, say float64, label string) (part float64) {
	sum, squares := c.weight()
	part = say * sum / (sum + thin)
	if part > m.largest {
		m.largest, m.source = part, label
	}
	m.parts += part
	m.runs += part * min(mostCounted, sum*sum/squares)
	return part
}

// unseen returns the distribution of a job for which no run was observed. It uses only the job's limit. It returns nil
// if the job has no limit.
func unseen(j *Job) *Distribution {
	if j.Limit == 0 {
		return nil
	}
	return &Distribution{atoms: []atom{{j.Limit, 1}}, Source: "the time limit alone: no run was observed"}
}

// After one observed run, the probability that the next run takes as long as the job's limit is assumed to be 1/16.
// Each further observed run divides this probability by 4.
const doubt = 1.0 / 16

// complete adds the job's time limit to the observed times, with a small probability. If only a few runs were observed,
// the probability is larger, because a later run may still take as long as the limit.
func (m *mixture) complete(j *Job, atoms []atom) *Distribution {
	runs := m.runs / m.parts
	if j.Limit > 0 {
		own := doubt * math.Pow(4, 1-runs)
		atoms = append(atoms, atom{j.Limit, m.parts * own / (1 - own)})
	}
	d := newDistribution(atoms)
	d.Runs, d.Source = runs, m.source
	return d
}
