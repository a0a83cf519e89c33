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
)

// mostPlaced bounds the number of jobs times slots up to which it is computed whether promises are kept.
const mostPlaced = 1 << 24

// due returns the latest completion with which a job's promise is kept: the promised time plus its grace, or the last time at which
// completion is worth nearly as much as was promised and no less than the price. 0: nothing was promised.
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

// grace returns how much later than promised a job may complete: a second, or a hundredth of the time up to the promised
// completion.
func grace(job *mechanism.Job) messages.Duration {
	return max(messages.Duration(1e9), job.Contract.Completion.Sub(job.Arrived)/100)
}

// Kept reports whether a job that has ended completed as its contract promised. The time of
// its tasks beyond what was planned makes nothing late. It is not known of a job that was ended
// before, and had not completed.
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

// prospect is the expected outcome for the promises of a view. Running tasks keep their slots.
type prospect struct {
	now     messages.Time
	pending *deadlineaware.Problem // tasks that do not run
	busy    []float64              // by slot in use: in how many seconds it is free
	ends    []float64              // by job: in how many seconds the last of its running tasks ends
	due     []messages.Time        // by job; half of the grace is left for what no plan knows. 0: no promise
}

// look makes the prospect of a view and its problem, which may have one new job more. nil: they are
// too large.
func look(view *mechanism.View, p *deadlineaware.Problem) *prospect {
	n := len(p.Jobs)
	if n*p.Slots > mostPlaced {
		return nil
	}
	x := &prospect{now: view.Now, ends: make([]float64, n), due: make([]messages.Time, n),
		pending: &deadlineaware.Problem{Slots: p.Slots, Jobs: slices.Clone(p.Jobs)}}
	for i, job := range view.Jobs {
		if by := due(job); by != 0 && !job.Complete { // else it was delivered
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

// in returns when each job completes if jobs are served in the given order, in seconds from now, and how
// many promises that order breaks.
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

// byPromise orders the jobs by their promises, the earliest first. Jobs whose promises cannot be kept any more come last, so that they
// do not delay others.
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

// best returns the given order, or the order of the promises if that breaks fewer promises.
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

// room says in how many seconds a job can complete at the soonest: alone, and if it comes after as
// many of the others, served in the order of their promises, as it takes to break no promise more. It
// is taken that a later place breaks no more than an earlier one.
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

// committed returns a scheduler that does not break earlier promises: whatever type a job declares, it does not complete before
// there is room for it.
func (x *prospect) committed(at int, box Scheduler) Scheduler {
	return func(types []messages.Valuation) ([]float64, error) {
		times, err := box(types)
		_, room := x.room(at)
		for k := range times {
			times[k] = max(times[k], room+x.pending.Jobs[at].Elapsed)
		}
		return times, err
	}
}

// sold refuses a contract if others have bought its time since it was quoted. It accepts contracts that were quoted to another site:
// the user chose among sites by the quote, and is not to blame for a cut between the sites.
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
	if at < len(view.Jobs) || by == 0 { // it was admitted before, or nothing is promised
		return nil
	}
	x := look(view, p)
	if x == nil {
		return nil
	}
	late := func(after float64) bool { return view.Now.Add(seconds(after)) > by }
	if alone, among := x.room(at); late(among) && !late(alone) {
		return messages.Errorf(messages.Expired, "contract: other jobs have bought the time until %v since the quote: ask for another quote", bid.Contract.Completion)
	}
	return nil
}
