package batchqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// thesis draws a queue with types as the thesis draws them, uniform; priors of
// 100 types each.
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

// BenchmarkPay: all payments of a queue from 1,000 draws.
func BenchmarkPay(b *testing.B) {
	for _, c := range []struct {
		jobs, nodes int
		mode        Mode
	}{{244, 0, Priority}, {244, 0, Full}, {10_000, 0, Priority}, {64, 128, Priority}, {64, 128, Full}} {
		b.Run(fmt.Sprintf("%d jobs, %d nodes, %s", c.jobs, c.nodes, c.mode), func(b *testing.B) {
			q, e := thesis(c.jobs, c.nodes)
			e.Mode = c.mode
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Pay(q, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSampling: the standard error of the front job's payment for the same
// number of draws.
func BenchmarkSampling(b *testing.B) {
	for _, s := range []Sampling{Stratified, Antithetic, Independent} {
		b.Run(string(s), func(b *testing.B) {
			q, e := thesis(244, 0)
			e.Sampling = s
			var p *Payments
			for b.Loop() {
				p, _ = Pay(q, e)
			}
			b.ReportMetric(p.Errors[0], "error")
			b.ReportMetric(p.Net[0], "payment")
		})
	}
}
