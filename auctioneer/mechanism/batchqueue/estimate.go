package batchqueue

import "math"

// means adds up the externalities of the jobs over batches of random draws. Different batches are independent.
type means struct {
	draws   int
	batches int
	total   []float64 // by job: sum over all draws so far
	net     []float64 // scratch
	// A batch is a number of draws. For each job, `mean` is the mean of the batches' net payments, and `square` is the
	// sum of their squared deviations from the mean (Welford's method).
	mean, square []float64
}

func newMeans(jobs int) *means {
	room := func() []float64 { return make([]float64, jobs) }
	return &means{total: room(), net: room(), mean: room(), square: room()}
}

// add adds the sums over a batch of draws to the totals. It overwrites the argument `sums`.
func (m *means) add(sums []float64, draws int) {
	m.draws += draws
	m.batches++
	for i, x := range sums {
		m.total[i] += x
		sums[i] = x / float64(draws)
	}
	transfer(m.net, sums)
	for i, x := range m.net {
		before := x - m.mean[i]
		m.mean[i] += before / float64(m.batches)
		m.square[i] += before * (x - m.mean[i])
	}
}

// results returns the mean externalities, and the standard errors of the payments. It estimates the standard errors
// from how much the batches differ.
func (m *means) results() (externality, errors []float64) {
	count := float64(m.batches)
	for i := range m.total {
		m.total[i] /= float64(m.draws)
		m.square[i] = math.Sqrt(m.square[i] / (count - 1) / count) // 0/0 = NaN for a single batch
	}
	return m.total, m.square
}

// estimate estimates the externalities by draws from the priors, and the standard errors of the payments.
func estimate(q *Queue, e *Expectation) (externality, errors []float64, err error) {
	draws, out := newSampler(e), newMeans(len(q.Jobs))
	if err := draws.probe(q, e); err != nil {
		return nil, nil, err
	}
	var batch func(b int, sums []float64)
	if l, ok := newLinear(q, e); ok {
		batch = l.drawn(draws)
	} else {
		batch = redrawn(q, draws)
	}
	sums := make([]float64, len(q.Jobs))
	for b := range draws.batches {
		batch(b, sums)
		out.add(sums, draws.size(b))
	}
	externality, errors = out.results()
	return externality, errors, nil
}

// probe draws every type once and checks the drawn values. A type with a function Sample has no values before it is
// drawn, so it cannot be checked earlier.
func (s *sampler) probe(q *Queue, e *Expectation) error {
	for i, in := range s.types {
		if in.sample == nil {
			continue
		}
		for b := range s.batches {
			for _, u := range s.column(i, b) {
				t := *in.at(u)
				if e.Mode == Priority {
					t.Length, t.Width = q.Jobs[i].Length, q.Jobs[i].Width
				}
				if err := q.checkJob(place("distributions", i), i == 0, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
