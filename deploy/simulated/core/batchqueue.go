package core

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/messages"
)

// runBatchQueue runs a queue first come, first served, whose front job is run or
// discarded when its slots are free.
func runBatchQueue(p *Problem) (*Outcome, error) {
	q := &queue{course: newCourse[int](p), free: p.Work.Nodes, until: make([]messages.Time, len(p.Bids))}
	return q.run(q.end, q.arrive, q.decide)
}

// queue is the state of a run.
type queue struct {
	course[int]     // the ends of jobs
	free        int // slots
	waiting     []int
	running     []int // jobs, in the order in which they started
	until       []messages.Time
}

func (q *queue) arrive(_ messages.Time, i int) error {
	q.waiting = append(q.waiting, i)
	return nil
}

// decide considers the front job as long as its slots are free.
func (q *queue) decide(now messages.Time) error {
	for len(q.waiting) > 0 && q.Work.Jobs[q.waiting[0]].Width <= q.free {
		if err := q.consider(now); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) end(_ messages.Time, i int) error {
	q.free += q.Work.Jobs[i].Width
	q.running = slices.DeleteFunc(q.running, func(job int) bool { return job == i })
	return nil
}

// consider runs the front job or discards it, and lets the queue pay.
func (q *queue) consider(now messages.Time) error {
	profile := q.profile(now)
	d, err := batchqueue.Decide(profile)
	if err != nil {
		return err
	}
	q.out.Decisions++
	if err := q.pay(profile); err != nil {
		return err
	}
	i := q.waiting[0]
	q.waiting = q.waiting[1:]
	if !d.Runs {
		q.out.Jobs[i].Finish, q.out.Jobs[i].Fate = seconds(now), Discarded
		return nil
	}
	paid := q.out.Jobs[i].Paid
	finish := now + micros(q.Work.Jobs[i].Runtime)
	q.complete(q.out, i, seconds(now), seconds(finish), paid)
	q.free -= q.Work.Jobs[i].Width
	q.running = append(q.running, i)
	q.until[i] = now + micros(q.Bids[i].Length)
	q.ends.Push(finish, i)
	return nil
}

// profile is when the running jobs will free their slots, by their declared lengths.
// A job that outlives its length is taken to need another second.
func (q *queue) profile(now messages.Time) *batchqueue.Queue {
	const more = 1e6
	p := &batchqueue.Queue{Nodes: q.Work.Nodes}
	for _, i := range q.running {
		p.Running = append(p.Running, batchqueue.Hold{Width: q.Work.Jobs[i].Width, Remaining: seconds(max(q.until[i]-now, more))})
	}
	for k, i := range q.waiting {
		p.Jobs = append(p.Jobs, q.announced(i, k == 0))
	}
	return p
}

// announced is a job as it bids: at the rate it bids, whatever its value.
func (q *queue) announced(i int, front bool) batchqueue.Job {
	j, b := &q.Work.Jobs[i], &q.Bids[i]
	out := batchqueue.Job{Length: b.Length, Width: j.Width}
	if front {
		out.Value = b.Rate * b.Length * float64(j.Width)
	} else {
		out.Delay = b.Rate * float64(j.Width)
	}
	return out
}

// pay has the jobs of the queue pay each other their expected externalities, rounded
// to the microcredit. The payments sum to exactly 0.
func (q *queue) pay(profile *batchqueue.Queue) error {
	if len(q.waiting) < 2 {
		return nil
	}
	e := &batchqueue.Expectation{Mode: batchqueue.Mode(q.Market.Mode), Sampling: batchqueue.Sampling(q.Market.Sampling),
		Exact: q.Market.Expectation == "exact", Draws: q.draws(), Seed: q.DrawSeed() + uint64(q.Work.Jobs[q.waiting[0]].Number), Priors: q.priors()}
	pay, err := batchqueue.Pay(profile, e)
	if err != nil {
		return err
	}
	net, err := batchqueue.Microcredits(pay.Net)
	if err != nil {
		return err
	}
	for k, i := range q.waiting {
		q.out.Jobs[i].Paid += net[k]
	}
	return nil
}

// draws keeps a decision on a long queue below a millisecond: a tenth of the draws
// that a live market makes, where a decision can take some milliseconds.
func (q *queue) draws() int {
	const most, least, work = 1000, 16, 50_000
	if q.Market.Draws > 0 {
		return q.Market.Draws
	}
	return min(most, max(least, work/len(q.waiting)))
}

// priors are the beliefs about each job of the queue: every job is taken to be drawn
// from the jobs in the queue.
func (q *queue) priors() []batchqueue.Prior {
	fronts, others := make([]batchqueue.Point, len(q.waiting)), make([]batchqueue.Point, len(q.waiting))
	for k, i := range q.waiting {
		p := 1 / float64(len(q.waiting))
		fronts[k], others[k] = batchqueue.Point{Type: q.announced(i, true), P: p}, batchqueue.Point{Type: q.announced(i, false), P: p}
	}
	out := make([]batchqueue.Prior, len(q.waiting))
	for k := range out {
		out[k].Points = others
	}
	out[0].Points = fronts
	return out
}
