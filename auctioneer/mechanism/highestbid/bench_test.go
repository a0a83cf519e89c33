package highestbid

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// bids draws private values and bids with the paper's distributions: 80 % of the values are N(30, 15) and 20 % N(150,
// 15), all positive. Bids are uniform between 0.9 of the value and the value.
func bids(jobs []Job) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range jobs {
		mean := 30.0
		if r.Float64() < 0.2 {
			mean = 150
		}
		w := 0.0
		for w <= 0 {
			w = mean + 15*r.NormFloat64()
		}
		jobs[i].Value, jobs[i].Bid = w, w*(1-0.1*r.Float64())
	}
}

// bursts makes an artificial trace. In each burst, up to 75 long and short jobs arrive at the same time. All jobs
// together keep the nodes busy for about the part `load` of the time.
func bursts(n, nodes int, load float64) []Job {
	r := rand.New(rand.NewPCG(3, 4))
	jobs, now, work := make([]Job, 0, n), 0.0, 0.0
	for len(jobs) < n {
		for range 1 + r.IntN(75) {
			length := float64(1 + r.IntN(20))
			if r.IntN(4) == 0 {
				length = float64(1 + r.IntN(25_000))
			}
			work += length
			jobs = append(jobs, Job{Submit: now, Runtime: length, Estimate: length * float64(1+r.IntN(3))})
		}
		now = float64(int(work / (load * float64(nodes))))
	}
	jobs = jobs[:n]
	bids(jobs)
	return jobs
}

// BenchmarkLive measures a live decision with 100,000 waiting and 10,000 running jobs, after one job has come and
// another has gone. It measures two ways to tell the mechanism: an Update with the changes, and Allocate with the whole
// view.
func BenchmarkLive(b *testing.B) {
	const waiting, running = 100_000, 10_000
	m := live(b, Rule{HB, Kth, false}, "cpu")
	v := view(running)
	for i := range waiting + running {
		n := 0
		if i < running {
			n = 1
		}
		rate := messages.Credits(1e6 + (i*7919)%1_000_000)
		if n == 1 {
			rate *= 3
		}
		v.Jobs = append(v.Jobs, task(messages.JobID(i+1), rate, 1-n, n, 0))
	}
	b.Run("update", func(b *testing.B) {
		m.Allocate(v)
		for b.Loop() {
			last := len(v.Jobs) - 1
			old := v.Jobs[last]
			v.Jobs[last] = task(old.Job+1, old.Rate, 1, 0, 0)
			m.Update(v, v.Jobs[last:], []messages.JobID{old.Job})
		}
	})
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			m.Allocate(v)
		}
	})
}
