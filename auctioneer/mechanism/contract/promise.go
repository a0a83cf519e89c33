package contract

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// mostPlaced bounds the product of the number of jobs and the number of slots. If the product is larger, the mechanism
// does not compute whether promises are kept, because that would take too long.
const mostPlaced = 1 << 24

// due returns the latest completion time that keeps a job's promise, or 0 if the job has no promise. It computes two
// times and returns the later one. The first is the promised time plus a grace period. The second is the last time at
// which the completion is worth at least 99 % of the promised amount, and also at least the price.
func due(job *mechanism.Job) messages.Time {
	const nearly = 0.99
	c := job.Contract
	if c == nil || c.Promised <= 0 {
		return 0
	}
	by := c.Completion.Add(grace(job))
	if replica, err := valuation.New(c.Replica); err == nil {
		latest, _ := replica.Latest(max(nearly*c.Promised, c.Price.Float()))
		by = max(by, job.Arrived.Add(seconds(latest)))
	}
	return by
}

// grace returns how much later than promised a job may complete. It is the longer of two times: a second, and a
// hundredth of the time from the submission to the promised completion.
func grace(job *mechanism.Job) messages.Duration {
	return max(messages.Duration(1e9), job.Contract.Completion.Sub(job.Arrived)/100)
}

// Kept reports whether a job was completed in the time that its contract promised. If its tasks ran longer than
// planned, the additional time does not count. The result `known` is false if nothing can be said: the job had no
// promise, or it ended before the promised time and was not completed.
func (*Mechanism) Kept(job *mechanism.Job, end mechanism.End) (kept, known bool) {
	by := due(job)
	if by == 0 {
		return false, false
	}
	if end.Completed == 0 {
		return false, end.At > by
	}
	at, _ := charged(job, end)
	return at <= by, true
}

// prospect has the times at which the jobs of a view are expected to complete, and the times that their contracts
// promise. It assumes that running tasks stay on their slots.
type prospect struct {
	now     messages.Time
	pending *deadlineaware.Problem // the tasks that do not run yet
	busy    []float64              // by slot in use: seconds until it is free
	ends    []float64              // by job: seconds until the last of its running tasks ends
	due     []messages.Time        // by job: the latest completion time that keeps the promise, with only half of the grace period; 0 without a promise
}

// look computes the prospect of a view: when its jobs are expected to complete. The problem p has these jobs, and
// perhaps one new job. look returns nil if p is too large.
func look(view *mechanism.View, p *deadlineaware.Problem) *prospect {
	n := len(p.Jobs)
	if n*p.Slots > mostPlaced {
		return nil
	}
	x := &prospect{now: view.Now, ends: make([]float64, n), due: make([]messages.Time, n),
		pending: &deadlineaware.Problem{Slots: p.Slots, Jobs: slices.Clone(p.Jobs), Closings: p.Closings}}
	for i, job := range view.Jobs {
		if by := due(job); by != 0 && !job.Complete { // a job with Complete has already completed
			x.due[i] = by.Add(-grace(job) / 2)
		}
		q := &x.pending.Jobs[i]
		running := min(mechanism.Sum(job.Running), q.Tasks)
		if running == 0 {
			continue
		}
		each, _ := planning(job.Bid)
		q.Tasks -= running
		waiting := float64(q.Tasks) * each
		x.ends[i], q.Demand = max(0, q.Demand-waiting)/float64(running), waiting
		for range running {
			x.busy = append(x.busy, x.ends[i])
		}
	}
	return x
}

// The method `in` computes the completion time of each job, in seconds from now, if the jobs run in the given order.
// The result `broken` is the number of promises that this order breaks.
func (x *prospect) in(order []int) (completion []float64, broken int) {
	completion = deadlineaware.InOrder(x.pending, order, x.busy)
	for _, i := range order {
		if x.pending.Jobs[i].Tasks == 0 {
			completion[i] = 0
		}
		completion[i] = max(completion[i], x.ends[i])
		if x.due[i] != 0 && x.now.Add(seconds(completion[i])) > x.due[i] {
			broken++
		}
	}
	return completion, broken
}

// byPromise sorts the jobs by their promised times. Jobs whose promises cannot be kept any more come last, so that they
// do not delay the other jobs.
func (x *prospect) byPromise(order []int) []int {
	key := func(i int) messages.Time {
		least := x.ends[i]
		if j := &x.pending.Jobs[i]; j.Tasks > 0 {
			least = max(least, j.Demand/float64(j.Tasks))
		}
		if x.due[i] == 0 || x.now.Add(seconds(least)) > x.due[i] {
			return math.MaxInt64
		}
		return x.due[i]
	}
	out := slices.Clone(order)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
	return out
}

// The method `best` compares two orders of the jobs: the given order, and the order of their promises. It returns the
// order that breaks fewer promises. If both break the same number, it returns the given order.
func (x *prospect) best(order []int) []int {
	_, broken := x.in(order)
	if broken > 0 {
		promised := x.byPromise(order)
		if _, n := x.in(promised); n < broken {
			return promised
		}
	}
	return order
}

// room returns two completion times of a job, in seconds from now. The result `alone` is the completion time if the job
// is served first. For the result `among`, all jobs are served in the order of their promises. room finds the earliest
// place in this order where the job breaks no promise that would be kept without it. It assumes that a later place
// breaks no more promises than an earlier place.
func (x *prospect) room(at int) (alone, among float64) {
	x.due[at] = 0
	var others []int
	for i := range x.pending.Jobs {
		if i != at {
			others = append(others, i)
		}
	}
	others = x.byPromise(others)
	_, least := x.in(others)
	placed := func(place int) (float64, int) {
		completion, broken := x.in(slices.Insert(slices.Clone(others), place, at))
		return completion[at], broken
	}
	alone, _ = placed(0)
	among, _ = placed(sort.Search(len(others), func(place int) bool {
		_, broken := placed(place)
		return broken <= least
	}))
	return alone, among
}

// committed returns a scheduler that keeps the promises to earlier jobs. It takes the completion times of the scheduler
// `box`, which ignores these promises. It moves each of them to the first time at which the job uses no slots that are
// promised to earlier jobs.
func (x *prospect) committed(at int, box Scheduler) Scheduler {
	return func(types []job.Valuation) ([]float64, error) {
		times, err := box(types)
		_, room := x.room(at)
		for k := range times {
			times[k] = max(times[k], room+x.pending.Jobs[at].Elapsed)
		}
		return times, err
	}
}

// sold refuses a contract if other jobs have bought its time since the quote, or if maintenance takes this time. It
// accepts contracts of users of other sites: these users chose the site by the quote, and it is not their fault if the
// sites were disconnected in the meantime.
func sold(view *mechanism.View, bid *mechanism.Bid) error {
	if messages.IsVisitor(bid.Account) {
		return nil
	}
	fresh := *bid
	if bid.Runtimes == nil {
		fresh.Length = cmp.Or(bid.Contract.Planned, bid.Length)
	}
	p, at := with(view, &fresh)
	by := due(&mechanism.Job{Bid: &fresh})
	if at < len(view.Jobs) || by == 0 { // the job was admitted before, or nothing is promised
		return nil
	}
	x := look(view, p)
	if x == nil {
		return nil
	}
	late := func(after float64) bool { return view.Now.Add(seconds(after)) > by }
	alone, among := x.room(at)
	switch {
	case late(alone) && len(p.Closings) > 0:
		x.pending.Closings = nil
		if open, _ := x.room(at); !late(open) {
			return messages.Errorf(messages.Expired, "contract: maintenance leaves too little time to complete the job by %v: ask for another quote", bid.Contract.Completion)
		}
	case late(among) && !late(alone):
		return messages.Errorf(messages.Expired, "contract: since the quote, other jobs have bought the time before %v: ask for another quote", bid.Contract.Completion)
	}
	return nil
}
