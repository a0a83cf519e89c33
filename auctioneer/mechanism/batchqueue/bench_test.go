package batchqueue

import (
	"math/rand/v2"
	"testing"
)

// thesis draws a queue with uniform types, like the examples of the thesis. Each job's prior has 100 types.
func thesis(jobs, nodes int) (*Queue, *Expectation) {
	r := rand.New(rand.NewPCG(9, 9))
	q, e := &Queue{Nodes: nodes}, &Expectation{Mode: Priority, Draws: 1000, Seed: 1}
	draw := func(i int) Job {
		job := Job{Length: 100 * r.Float64()}
		if i == 0 {
			job.Value = 5000 * float64(jobs) * r.Float64()
		} else {
			job.Delay = 100 * r.Float64()
		}
		if nodes > 0 {
			job.Width = 1 + r.IntN(nodes)
		}
		return job
	}
	for i := range jobs {
		q.Jobs = append(q.Jobs, draw(i))
		var p Prior
		for range 100 {
			p.Points = append(p.Points, Point{draw(i), 0.01})
		}
		e.Priors = append(e.Priors, p)
	}
	return q, e
}

// BenchmarkSampling measures how long the payments take, and reports the standard error of the front job's payment. The
// number of random draws is fixed.
func BenchmarkSampling(b *testing.B) {
	q, e := thesis(244, 0)
	var p *Payments
	for b.Loop() {
		p, _ = Pay(q, e)
	}
	b.ReportMetric(p.Errors[0], "error")
	b.ReportMetric(p.Net[0], "payment")
}
