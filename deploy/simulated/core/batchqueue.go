package core

import (
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// runBatchQueue runs a batch queue. The jobs wait first come, first served. When the slots for the front job are
// free, the job is run or discarded.
func runBatchQueue(p *Problem) (*Outcome, error) {
	q := &queue{course: newCourse[int](p), free: p.Work.Nodes, until: make([]messages.Time, len(p.Bids)), belief: batchqueue.NewBeliefs(p.PriorJobs())}
	if p.Past != nil {
		q.resume(p.Past.queue)
	}
	if p.stop != nil {
		p.stop.queue = q
	}
	return q.run(q.end, q.arrive, q.decide)
}

type queue struct {
	course[int]     // the events are the ends of jobs
	free        int // number of free slots
	waiting     []int
	running     []int // running jobs, in the order in which they started
	until       []messages.Time
	belief      *batchqueue.Beliefs
}

func (q *queue) arrive(_ messages.Time, i int) error {
	q.waiting = append(q.waiting, i)
	return nil
}

// decide takes jobs from the front of the queue, as long as there are free slots for the first job. It starts or
// discards each of them.
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

// consider runs the front job or discards it, and makes the jobs of the queue pay.
func (q *queue) consider(now messages.Time) error {
	profile := q.profile(now)
	d, err := batchqueue.Decide(profile)
	if err != nil {
		return err
	}
	if err := q.pay(profile, d); err != nil {
		return err
	}
	q.leave(now, d.Runs)
	return nil
}

// leave removes the front job from the queue. If `runs` is true, the job runs now; otherwise it was discarded.
func (q *queue) leave(now messages.Time, runs bool) {
	i := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.belief.Consider(q.account(i), q.typeOf(i))
	q.settled(i)
	r := &q.out.Jobs[i]
	if !runs {
		r.Finish, r.Fate = seconds(now), Discarded
		return
	}
	had := min(q.Work.Jobs[i].Runtime, q.Bids[i].Length) // a site ends a job after its declared length
	finish := now + micros(had)
	if had < q.Work.Jobs[i].Runtime {
		r.Start, r.Finish, r.Used, r.Fate = seconds(now), seconds(finish), had*float64(q.Work.Jobs[i].Width), Expired
	} else {
		q.complete(q.out, i, seconds(now), seconds(finish), r.Paid)
	}
	q.free -= q.Work.Jobs[i].Width
	q.running = append(q.running, i)
	q.until[i] = now + micros(q.Bids[i].Length)
	q.ends.Push(finish, i)
}

// profile returns the queue as the mechanism sees it. It has the waiting jobs and, for each running job, the time until
// the job will free its slots. This time follows from the length that the job declared.
func (q *queue) profile(now messages.Time) *batchqueue.Queue {
	p := &batchqueue.Queue{Nodes: q.Work.Nodes}
	for _, i := range q.running {
		p.Running = append(p.Running, batchqueue.Hold{Width: q.Work.Jobs[i].Width, Remaining: seconds(q.until[i] - now)})
	}
	for k, i := range q.waiting {
		p.Jobs = append(p.Jobs, q.announced(i, k == 0))
	}
	return p
}

// announced returns job i as its owner announces it: with the bid, and not with the true value.
func (q *queue) announced(i int, front bool) batchqueue.Job {
	j, b := &q.Work.Jobs[i], &q.Bids[i]
	out := batchqueue.Job{Length: b.Length, Width: j.Width}
	if front {
		out.Value = b.Rate * b.Length * float64(j.Width)
	} else {
		out.Delay = b.SaidDelay() * float64(j.Width)
	}
	return out
}

func (q *queue) pay(profile *batchqueue.Queue, d *batchqueue.Decision) error {
	if len(q.waiting) < 2 || !slices.ContainsFunc(q.waiting, q.pays) {
		return nil
	}
	accounts := make([]messages.Name, len(q.waiting))
	for k, i := range q.waiting {
		accounts[k] = q.account(i)
	}
	if q.Market.Pricing == batchqueue.PivotPricing {
		q.levy(profile, d, accounts)
		return nil
	}
	e := &batchqueue.Expectation{Mode: batchqueue.Mode(q.Market.Mode), Exact: q.Market.Expectation == "exact",
		Draws: q.draws(), Seed: q.DrawSeed() + uint64(q.Work.Jobs[q.waiting[0]].Number), Priors: q.belief.Priors(profile, accounts)}
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

// levy makes the accounts pay taxes and receive rebates. The amounts of an account are booked on its first job.
func (q *queue) levy(profile *batchqueue.Queue, d *batchqueue.Decision, accounts []messages.Name) {
	stakes, of := batchqueue.StakesOf(profile, d, accounts, nil)
	taxes, rebates := batchqueue.Pivot(stakes)
	for k, i := range q.waiting {
		q.out.Jobs[i].Paid += Money(taxes[of[k]] - rebates[of[k]])
		taxes[of[k]], rebates[of[k]] = 0, 0
	}
}

// draws returns the number of random draws for a decision, a tenth of the number in a live market. With this number, a
// decision on a long queue takes less than a millisecond.
func (q *queue) draws() int {
	const most, least, work = 1000, 16, 50_000
	if q.Market.Draws > 0 {
		return q.Market.Draws
	}
	return min(most, max(least, work/len(q.waiting)))
}

func (q *queue) account(i int) messages.Name { return strconv.Itoa(q.Work.Jobs[i].User) }

func (q *queue) typeOf(i int) market.QueuedType {
	return queuedType(&q.Work.Jobs[i], &q.Bids[i])
}

func queuedType(j *workload.Job, b *bids.Bid) market.QueuedType {
	return market.QueuedType{Value: Money(b.Rate * b.Length * float64(j.Width)), Delay: Money(b.SaidDelay() * float64(j.Width)),
		Length: messages.Duration(b.Length * 1e9), Width: j.Width}
}

// PriorJobs returns the types that the operator of a batch queue expects before the queue has decided about any job.
// They are types of jobs of the study, but with new random bids.
func (p *Problem) PriorJobs() []market.QueuedType {
	if p.Prior != nil || len(p.Bids) == 0 {
		return p.Prior
	}
	const types = 64
	w := *p.Work
	w.Jobs = nil
	for k := range min(types, len(p.Work.Jobs)) {
		w.Jobs = append(w.Jobs, p.Work.Jobs[k*len(p.Work.Jobs)/min(types, len(p.Work.Jobs))])
	}
	drawn := p.Market.Bids.Draw(&w, p.Seed^0x7072696f72)
	out := make([]market.QueuedType, len(drawn))
	for k := range drawn {
		out[k] = queuedType(&w.Jobs[k], &drawn[k])
	}
	return out
}
