package measure

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages/heap"
)

// optimum returns an upper bound of the welfare of any schedule. The market's setting `worth` says what a job is worth.
// Each of its three values needs a separate bound. For "run", the bound assumes that no job waits. For "deadline", the
// bound is computed from prices for slots at each moment. For "delay", the bound assumes a single fast slot in place of
// all slots.
func (s *Study) optimum() float64 {
	switch s.Market.Worth {
	case rules.ByDeadline:
		return s.Value()
	case rules.ByRun:
		return s.RunBound()
	}
	return -s.Delay()
}

// Delay is a lower bound of Σ v·width·response over any schedule, preemptive or not, of the completed jobs.
//
// Imagine one fast slot, as fast as all slots of the machine together. The fast slot can do everything that the machine
// can do. So the least weighted sum of mean busy times on the fast slot is not above the machine's sum. The fast slot
// reaches its least sum if it always serves the job with the highest weight per work (Goemans 1996). On the machine, a
// job of length r completes r/2 or more after its mean busy time. This gives a first bound. The second bound follows
// from the run times: no response is shorter. Delay returns the larger one.
func (s *Study) Delay() float64 {
	jobs := s.fluid(func(i int) bool { return s.Outcome.Jobs[i].Fate == core.Completed })
	busy, least := 0.0, 0.0
	for _, j := range jobs {
		least += j.weight * j.runtime
	}
	f := fast{speed: float64(s.Work.Nodes), jobs: jobs}
	for k, mean := range f.meanBusy() {
		busy += jobs[k].weight * (mean + jobs[k].runtime/2 - jobs[k].release)
	}
	return max(busy, least)
}

// RunBound returns an upper bound of the worth of all jobs together. It is the worth that they would have if each ran
// without waiting.
func (s *Study) RunBound() float64 {
	sum := 0.0
	for i := range s.Bids {
		sum += s.Bids[i].Worth(&s.Work.Jobs[i])
	}
	return sum
}

// fluid is a job that can be divided into any parts. It has an amount of work, and any number of slots can do this work
// at the same time.
type fluid struct {
	release, deadline, runtime, work float64
	weight                           float64 // cost of a second of delay
	density                          float64 // worth of a slot-second
}

// fluid returns the jobs that have a run time and for which the function `take` returns true, in the order of their
// release times.
func (s *Study) fluid(take func(i int) bool) []fluid {
	var out []fluid
	for i := range s.Work.Jobs {
		j, b := &s.Work.Jobs[i], &s.Bids[i]
		if j.Runtime > 0 && take(i) {
			out = append(out, fluid{j.Submit, b.Deadline, j.Runtime, j.Work(), b.Delay(j), b.Value})
		}
	}
	slices.SortStableFunc(out, func(a, b fluid) int { return cmp.Compare(a.release, b.release) })
	return out
}

// fast models one slot whose speed may differ from 1. At each moment it serves the best job.
type fast struct {
	speed float64
	jobs  []fluid // jobs in the order of their release times
	left  []float64
	heap  []int32 // positions of released jobs; the best job is first
}

func (f *fast) meanBusy() []float64 {
	f.left = make([]float64, len(f.jobs))
	mean := make([]float64, len(f.jobs))
	now, next := math.Inf(-1), 0
	for next < len(f.jobs) || len(f.heap) > 0 {
		if len(f.heap) == 0 {
			now = f.jobs[next].release
		}
		for ; next < len(f.jobs) && f.jobs[next].release <= now; next++ {
			f.left[next] = f.jobs[next].work / f.speed
			f.push(int32(next))
		}
		best := f.heap[0]
		until := now + f.left[best]
		done := true
		if next < len(f.jobs) && f.jobs[next].release < until {
			until, done = f.jobs[next].release, false
		}
		mean[best] += (until - now) * (now + (until-now)/2) / (f.jobs[best].work / f.speed)
		f.left[best] -= until - now
		now = until
		if done {
			f.pop()
		}
	}
	return mean
}

// before reports whether job a has more weight for each unit of its work than job b.
func (f *fast) before(a, b int32) bool {
	x, y := &f.jobs[a], &f.jobs[b]
	l, r := x.weight*y.work, y.weight*x.work
	return l > r || l == r && a < b
}

func (f *fast) push(j int32) { f.order().Push(&f.heap, j) }

func (f *fast) pop() { f.order().Pop(&f.heap) }

func (f *fast) order() *heap.Order[int32] { return &heap.Order[int32]{Before: f.before} }
