package sampler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// node simulates a node with a clock of its own. The node's jobs always have tasks to start.
type node struct {
	stride sampler.Stride
	rng    *rand.Rand
	now    time.Duration
	runs   []running
	slots  int
	length func(messages.JobID) time.Duration
	starts map[messages.JobID]int
	took   map[messages.JobID]time.Duration
}

type running struct {
	job            messages.JobID
	since, charged time.Duration
	until          time.Duration
}

func newNode(t *testing.T, seed uint64, slots int, jobs []agent.JobWeight, length func(messages.JobID) time.Duration) *node {
	n := &node{rng: rand.New(rand.NewPCG(seed, 5)), slots: slots, length: length, starts: map[messages.JobID]int{}, took: map[messages.JobID]time.Duration{}}
	if err := n.stride.Replace(jobs); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) step() {
	for i := range n.runs {
		if r := &n.runs[i]; n.now-r.since > r.charged {
			n.stride.Owe(r.job, n.now-r.since-r.charged)
			r.charged = n.now - r.since
		}
	}
	var drawn []messages.JobID
	granted := map[messages.JobID]int{}
	for range n.slots - len(n.runs) {
		job := n.stride.Draw(n.rng)
		drawn = append(drawn, job)
		granted[job]++
	}
	n.stride.Settle(func(job messages.JobID) int { return granted[job] })
	next := -1
	for _, job := range drawn {
		charged, ok := n.stride.Begin(job, 1)
		if !ok {
			panic(fmt.Sprint("unknown: ", job))
		}
		n.starts[job]++
		n.runs = append(n.runs, running{job: job, since: n.now, charged: charged, until: n.now + n.length(job)})
	}
	for i := range n.runs {
		if next < 0 || n.runs[i].until < n.runs[next].until {
			next = i
		}
	}
	r := n.runs[next]
	n.runs = append(n.runs[:next], n.runs[next+1:]...)
	n.now = r.until
	n.took[r.job] += r.until - r.since
	n.stride.End(r.job, r.charged, r.until-r.since)
}

// part returns how much of the slot time of all jobs a job has received so far, as a fraction.
func (n *node) part(job messages.JobID) float64 {
	mine, all := n.took[job], time.Duration(0)
	for _, took := range n.took {
		all += took
	}
	for _, r := range n.runs {
		all += n.now - r.since
		if r.job == job {
			mine += n.now - r.since
		}
	}
	return mine.Seconds() / all.Seconds()
}

func weights(w ...float32) (jobs []agent.JobWeight) {
	for i, w := range w {
		jobs = append(jobs, agent.JobWeight{Job: messages.JobID(i + 1), Weight: w})
	}
	return jobs
}

func each(lengths ...time.Duration) func(messages.JobID) time.Duration {
	return func(job messages.JobID) time.Duration { return lengths[job-1] }
}

// TestSlotTimeIsShared checks that jobs receive slot time in proportion to their weights, for several lengths of tasks
// and numbers of slots.
func TestSlotTimeIsShared(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	spread := func(job messages.JobID) time.Duration { // heavy tails, with a different length for each job
		return time.Duration(float64(job*job) * math.Exp(1.5*r.NormFloat64()) * 1e8)
	}
	for name, c := range map[string]struct {
		weights []agent.JobWeight
		length  func(messages.JobID) time.Duration
	}{
		"short and long":    {weights(1, 1), each(time.Second/10, 10*time.Second)},
		"one packs fifty":   {weights(1, 1, 1, 1), each(50*time.Second, time.Second, time.Second, time.Second)},
		"rich and short":    {weights(9, 1), each(time.Second, 30*time.Second)},
		"rich and long":     {weights(9, 1), each(30*time.Second, time.Second)},
		"of random lengths": {weights(1, 2, 3, 4, 5), spread},
	} {
		for _, slots := range []int{1, 8, 64} {
			t.Run(fmt.Sprint(name, " on ", slots), func(t *testing.T) {
				n := newNode(t, 1, slots, c.weights, c.length)
				for n.now < 10_000*time.Second {
					n.step()
				}
				for _, j := range c.weights {
					if want, got := float64(j.Weight)/float64(n.stride.Total()), n.part(j.Job); math.Abs(got-want) > 0.01 {
						t.Errorf("job %d received %.4f, want %.4f", j.Job, got, want)
					}
				}
			})
		}
	}
}

// TestEqualTasksAreSampled gives all tasks the same length. On one node with many tasks, each job must get its share of
// the starts. On many nodes with few tasks each, it must get its share of the starts on all nodes together.
func TestEqualTasksAreSampled(t *testing.T) {
	for _, w := range [][]agent.JobWeight{weights(1, 1), weights(9, 1), weights(1, 2, 3, 4, 5, 85), randomJobs(rand.New(rand.NewPCG(9, 9)), 40, 1)} {
		for _, c := range []struct{ nodes, starts int }{{1, 100_000}, {20_000, 5}, {4000, 25}} {
			counts, all := map[messages.JobID]float64{}, 0.0
			var sum float64
			for i := range c.nodes {
				n := newNode(t, uint64(i), 1, w, func(messages.JobID) time.Duration { return time.Second })
				for range c.starts {
					n.step()
				}
				for job, starts := range n.starts {
					counts[job] += float64(starts)
					all += float64(starts)
				}
				sum = n.stride.Total()
			}
			var observed, expected []float64
			for _, j := range w {
				observed, expected = append(observed, counts[j.Job]), append(expected, all*float64(j.Weight)/sum)
			}
			statistic, limit := stat.ChiSquare(observed, expected), distuv.ChiSquared{K: float64(len(w) - 1)}.Quantile(0.999)
			if statistic > limit {
				t.Errorf("%d jobs, %d nodes that start %d tasks: chi-squared %.1f, above %.1f: %v, expected %v", len(w), c.nodes, c.starts, statistic, limit, observed, expected)
			}
		}
	}
}

// TestUnknownLengthsAreDrawnAsSampled checks that a Stride draws exactly like a Sampler until a task has ended.
func TestUnknownLengthsAreDrawnAsSampled(t *testing.T) {
	var plain sampler.Sampler
	var stride sampler.Stride
	jobs := randomJobs(rand.New(rand.NewPCG(1, 2)), 100, 3)
	if err := plain.Replace(jobs); err != nil {
		t.Fatal(err)
	}
	if err := stride.Replace(jobs); err != nil {
		t.Fatal(err)
	}
	a, b := rand.New(rand.NewPCG(1, 3)), rand.New(rand.NewPCG(1, 3))
	for range 1000 {
		if want, got := plain.Sample(a.Float64()), stride.Draw(b); got != want {
			t.Fatalf("drew %v, want %v", got, want)
		}
	}
}

// TestJobsThatWereAwayAreNotOwed lets a job go away and come back. The job must not get additional slot time for the
// time in which it was away. A job that was ahead of its share when it left must still be ahead when it comes back.
func TestJobsThatWereAwayAreNotOwed(t *testing.T) {
	n := newNode(t, 1, 4, weights(1, 1), each(time.Second, 10*time.Second))
	run := func(d time.Duration) (part float64) {
		n.took = map[messages.JobID]time.Duration{}
		for end := n.now + d; n.now < end; {
			n.step()
		}
		return n.part(1)
	}
	run(200 * time.Second)
	leave, back := []agent.JobWeight{{Job: 1}}, []agent.JobWeight{{Job: 1, Weight: 1}}
	if err := n.stride.Update(leave); err != nil {
		t.Fatal(err)
	}
	if part := run(2000 * time.Second); part > 0.01 {
		t.Fatalf("a job that is away received %v", part)
	}
	if err := n.stride.Update(back); err != nil {
		t.Fatal(err)
	}
	if part := run(1000 * time.Second); math.Abs(part-0.5) > 0.03 {
		t.Errorf("a job that came back received %.3f, want 0.5", part)
	}
}

// TestALongTaskCountsWhileItRuns gives each of two jobs half of the weight. A task of one job keeps one of the two
// slots for ever, so this job already has its half. In the other slot, it may start only a few tasks.
func TestALongTaskCountsWhileItRuns(t *testing.T) {
	lengths := []time.Duration{time.Second, 10_000 * time.Second}
	n := newNode(t, 2, 2, weights(1, 1), func(job messages.JobID) time.Duration {
		if job == 2 && len(lengths) == 1 {
			return time.Second
		}
		return lengths[job-1]
	})
	for n.now < 200*time.Second {
		n.step()
		if n.starts[2] > 0 {
			lengths = lengths[:1]
		}
	}
	if n.starts[2] > 5 {
		t.Errorf("job 2 started %d more tasks beside its long one", n.starts[2]-1)
	}
}

// TestAJobWithoutTasksHereIsNotOwed draws claims for two jobs. The claims for one of them never get a task. Such claims
// must give this job no right to later slots, and must not keep the other job from slots.
func TestAJobWithoutTasksHereIsNotOwed(t *testing.T) {
	n := newNode(t, 1, 1, weights(1, 1), each(time.Second, time.Second))
	vain := 0
	for range 10_000 {
		job := n.stride.Draw(n.rng)
		n.stride.Settle(func(job messages.JobID) int { return int(job % 2) })
		if job == 2 {
			vain++
			continue
		}
		charged, _ := n.stride.Begin(job, 1)
		n.stride.End(job, charged, time.Second)
	}
	if vain > 6000 {
		t.Errorf("%d of 10000 draws were of a job that has no tasks", vain)
	}
}

func TestStrideForgets(t *testing.T) {
	n := newNode(t, 1, 1, weights(1), func(messages.JobID) time.Duration { return time.Second })
	most := 0
	for i := range 50_000 {
		job := messages.JobID(i + 2)
		if err := n.stride.Update([]agent.JobWeight{{Job: job, Weight: 1}}); err != nil {
			t.Fatal(err)
		}
		n.step()
		if err := n.stride.Update([]agent.JobWeight{{Job: job}}); err != nil {
			t.Fatal(err)
		}
		most = max(most, n.stride.Known())
	}
	if most > 5000 {
		t.Errorf("remembered %d jobs", most)
	}
	if part := n.part(1); math.Abs(part-0.5) > 0.03 {
		t.Errorf("the job that stayed received %.3f beside those that came and went, want 0.5", part)
	}
}

// TestWeightsOfAnotherScale multiplies the weights of two jobs by the same random factor, again and again. Both jobs
// must still receive half of the slot time.
func TestWeightsOfAnotherScale(t *testing.T) {
	n := newNode(t, 1, 1, weights(1, 1), each(time.Second/10, 10*time.Second))
	for n.now < 2000*time.Second {
		n.step()
		if n.rng.IntN(50) == 0 {
			w := float32(math.Exp(4 * n.rng.NormFloat64()))
			if err := n.stride.Update(weights(w, w)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if part := n.part(1); math.Abs(part-0.5) > 0.02 {
		t.Errorf("received %.3f, want 0.5", part)
	}
}

func BenchmarkDraw(b *testing.B) {
	var s sampler.Stride
	r := rand.New(rand.NewPCG(1, 1))
	s.Replace(randomJobs(r, 1000, 1))
	for b.Loop() {
		job := s.Draw(r)
		s.Settle(func(messages.JobID) int { return 1 })
		charged, _ := s.Begin(job, 1)
		s.End(job, charged, time.Duration(1+r.IntN(1e9)))
	}
}
