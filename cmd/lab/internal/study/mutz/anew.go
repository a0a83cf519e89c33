package mutz

import (
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
)

// anew computes payments as the thesis does. A payment contains several expectations, one for each pair of jobs. Each
// expectation is estimated separately, with new random draws. A draw costs O(jobs), or O(jobs²) if jobs have widths.
type anew struct {
	queue   *batchqueue.Queue
	scale   scale
	draws   int
	printed bool // use equation 4.2 as it is printed; only if each job takes the whole machine
	random  *rand.Rand

	drawn         batchqueue.Queue
	cost          []float64 // by position l: factor of d_l in the threshold
	loss          []float64 // by position l: factor of d_l in the worth of the decision
	with, without segments
}

// scale has the upper ends of the uniform distributions of values and of costs of delay.
type scale struct{ value, delay float64 }

func newAnew(q *batchqueue.Queue, s scale, draws int, r *rand.Rand) *anew {
	a := &anew{queue: q, scale: s, draws: draws, random: r}
	a.drawn = batchqueue.Queue{Nodes: q.Nodes, Jobs: append([]batchqueue.Job{}, q.Jobs...)}
	a.cost, a.loss = make([]float64, len(q.Jobs)), make([]float64, len(q.Jobs))
	return a
}

func (a *anew) all() []float64 {
	out := make([]float64, len(a.queue.Jobs))
	for i := range out {
		out[i] = a.payment(i)
	}
	return out
}

func (a *anew) payment(i int) float64 {
	others, own := 0.0, 0.0
	for j := range a.queue.Jobs {
		if g := a.externality(j); j == i {
			own = g
		} else {
			others += g
		}
	}
	return others/float64(len(a.queue.Jobs)-1) - own
}

// externality returns the expected worth of the decision to all jobs except j. It draws the announcements of the other
// jobs, and keeps what j announced.
func (a *anew) externality(j int) float64 {
	sum := 0.0
	for range a.draws {
		a.redraw(j)
		a.weigh()
		sum += a.others(j)
	}
	return sum / float64(a.draws)
}

// redraw draws new announced values and delays for all jobs except job j.
func (a *anew) redraw(j int) {
	jobs := a.drawn.Jobs
	jobs[0].Value = a.scale.value * a.random.Float64()
	for l := 1; l < len(jobs); l++ {
		jobs[l].Delay = a.scale.delay * a.random.Float64()
	}
	jobs[j].Value, jobs[j].Delay = a.queue.Jobs[j].Value, a.queue.Jobs[j].Delay
}

// weigh computes two numbers for each job behind the front job: the delay that the front job costs this job, and the
// loss of this job. The decision whether the front job is worth its delays uses both numbers. As in the thesis of Mutz,
// weigh computes them again for each draw.
func (a *anew) weigh() {
	jobs := a.drawn.Jobs
	if a.drawn.Nodes > 0 {
		a.with.reset(a.drawn.Nodes)
		a.without.reset(a.drawn.Nodes)
		a.with.place(jobs[0].Length, jobs[0].Width, never)
	}
	for l := 1; l < len(jobs); l++ {
		delay := jobs[0].Length
		if a.drawn.Nodes > 0 {
			delay = a.with.place(jobs[l].Length, jobs[l].Width, never) - a.without.place(jobs[l].Length, jobs[l].Width, never)
		}
		a.cost[l], a.loss[l] = delay, delay
		if a.printed {
			a.cost[l] = jobs[l].Length
		}
	}
}

// others returns what the decision whether the first job runs is worth to all jobs together, except job j. The jobs are
// drawn at random.
func (a *anew) others(j int) float64 {
	threshold, worth := 0.0, a.drawn.Jobs[0].Value
	for l := 1; l < len(a.cost); l++ {
		threshold += a.cost[l] * a.drawn.Jobs[l].Delay
		worth -= a.loss[l] * a.drawn.Jobs[l].Delay
	}
	switch {
	case a.drawn.Jobs[0].Value < threshold:
		return 0
	case j == 0:
		return worth - a.drawn.Jobs[0].Value
	}
	return worth + a.loss[j]*a.drawn.Jobs[j].Delay
}
