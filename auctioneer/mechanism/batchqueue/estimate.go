package batchqueue

import "math"

// batchMeans collects the mean externalities of independent batches of draws.
type batchMeans struct {
	draws int
	sums  [][]float64 // by batch, then job: of the draws
}

func newBatchMeans(draws, jobs int) *batchMeans {
	m := &batchMeans{draws: draws}
	for range min(batches, draws) {
		m.sums = append(m.sums, make([]float64, jobs))
	}
	return m
}

// means returns the mean externalities over all draws.
func (m *batchMeans) means() []float64 {
	out := make([]float64, len(m.sums[0]))
	for _, sums := range m.sums {
		for i, x := range sums {
			out[i] += x
		}
	}
	for i := range out {
		out[i] /= float64(m.draws)
	}
	return out
}

// errors returns the standard errors of the net payments: each batch by itself
// gives payments, and how these vary tells how far their mean is off.
func (m *batchMeans) errors() []float64 {
	jobs, count := len(m.sums[0]), float64(len(m.sums))
	mean, square, net := make([]float64, jobs), make([]float64, jobs), make([]float64, jobs)
	for b, sums := range m.sums {
		size := float64(batch(m.draws, b))
		for i := range sums {
			sums[i] /= size
		}
		transfer(net, sums)
		for i, x := range net { // Welford's update
			before := x - mean[i]
			mean[i] += before / float64(b+1)
			square[i] += before * (x - mean[i])
		}
	}
	for i := range square {
		square[i] = math.Sqrt(square[i] / (count - 1) / count) // 0/0 for a single batch
	}
	return square
}

// estimate estimates the externalities by drawing from the priors, and the
// standard errors of the payments.
func estimate(q *Queue, e *Expectation) (externality, errors []float64, err error) {
	means := newBatchMeans(e.Draws, len(q.Jobs))
	draws := newSampler(e)
	if err := draws.probe(q, e); err != nil {
		return nil, nil, err
	}
	if l, ok := newLinear(q, e); ok {
		l.estimate(draws, means)
	} else {
		redraw(q, draws, means)
	}
	externality = means.means()
	return externality, means.errors(), nil
}

// probe checks the types that the given functions sample, by drawing them all.
func (s *sampler) probe(q *Queue, e *Expectation) error {
	for i, in := range s.types {
		if in.sample == nil {
			continue
		}
		for b := range min(batches, e.Draws) {
			for _, u := range s.column(i, b, batch(e.Draws, b)) {
				t := *in.at(u)
				if e.Mode == Priority {
					t.Length, t.Width = q.Jobs[i].Length, q.Jobs[i].Width
				}
				if q.checkJob("", i == 0, t) != nil {
					return q.checkJob(at("distributions", i), i == 0, t)
				}
			}
		}
	}
	return nil
}
