package deadlineaware

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// These are the limits on the numbers of a problem.
const (
	Largest   = 1e15    // largest demand, time or divergence
	MostSlots = 1 << 20 // largest number of slots of a problem
	MostJobs  = 100_000 // largest number of jobs of a problem
	MostTasks = 1 << 30 // largest number of tasks of a job
)

// DefaultResolution is a microcredit, the smallest amount of money.
const DefaultResolution = 1e-6

// grace is slightly below 1. Times are multiplied by it before a valuation is computed, so that rounding never makes a
// job miss its deadline.
const grace = 1 - 0x1p-40

// The unit of work is a power of 2, whose exponent is at least leastExponent. So the unit is a normal float64. Smaller
// work counts as 0.
const leastExponent = -900

// Job is what the planner knows about a job that has not ended.
type Job struct {
	Tasks     int     // number of tasks, planned with equal lengths; at least 1 if Demand is not 0
	Demand    float64 // slot-seconds that all its tasks together still need
	Elapsed   float64 // seconds since the job's submission
	Valuation valuation.Curve
	// Limit is the longest time that a task may take, in seconds. It is at least the planned length of the task. A task
	// starts only on a slot that stays open for this time.
	Limit float64
}

// Problem describes what must be scheduled, from now on.
type Problem struct {
	Slots int
	Jobs  []Job
	// Closings are times in which slots are taken away, ordered by From. They change only the times at which tasks run.
	Closings []Closing
	// Resolution is the smallest difference of utilities that counts, in credits. 0 means DefaultResolution. A job that
	// can no longer have a utility of at least Resolution is given up. A utility that is at most Resolution below the
	// job's best utility counts as the best.
	Resolution float64
}

// Check returns an error if a problem is invalid.
func (p *Problem) Check() error {
	if p.Slots < 1 || p.Slots > MostSlots {
		return messages.Errorf(messages.Invalid, "slots: must be from 1 to %d, is %d", MostSlots, p.Slots)
	}
	if !(p.Resolution >= 0 && p.Resolution <= Largest) {
		return messages.Errorf(messages.Invalid, "resolution: must be from 0 to %g credits, is %g", Largest, p.Resolution)
	}
	if len(p.Jobs) > MostJobs {
		return messages.Errorf(messages.TooLarge, "jobs: %d is above the limit of %d", len(p.Jobs), MostJobs)
	}
	for i := range p.Jobs {
		if err := p.Jobs[i].check(i); err != nil {
			return err
		}
	}
	return nil
}

func (job *Job) check(i int) error {
	switch {
	case !(job.Demand >= 0 && job.Demand <= Largest):
		return messages.Errorf(messages.Invalid, "jobs[%d].demand: must be from 0 to %g slot-seconds, is %g", i, Largest, job.Demand)
	case job.Tasks < 0 || job.Tasks > MostTasks:
		return messages.Errorf(messages.Invalid, "jobs[%d].tasks: must be from 0 to %d, is %d", i, MostTasks, job.Tasks)
	case job.Tasks == 0 && job.Demand > 0:
		return messages.Errorf(messages.Invalid, "jobs[%d].tasks: must be at least 1, because the demand of the job is above 0", i)
	case !(job.Elapsed >= 0 && job.Elapsed <= Largest):
		return messages.Errorf(messages.Invalid, "jobs[%d].elapsed: must be from 0 to %g seconds, is %g", i, Largest, job.Elapsed)
	}
	return nil
}

// each returns the planned length of one task of the job, in seconds.
func (job *Job) each() float64 { return job.Demand / float64(max(1, job.Tasks)) }

// span returns how long the job takes if no other job uses the slots, in seconds.
func (job *Job) span(slots int) float64 {
	return job.each() * float64((job.Tasks+slots-1)/slots)
}

// item is a job prepared for the planner. Some of its methods have an argument t: the time at which all slots together
// have completed the work of this item and of all items before it.
type item struct {
	curve *valuation.Curve
	index int
	work  float64 // in slot-seconds, a multiple of the planner's unit
	spill float64 // how many seconds after t it completes, because tasks cannot be divided
	lead  float64 // seconds from submission to now, plus spill
	best  float64 // its utility if it comes first
	top   float64 // the last t at which it has its best utility, within the resolution
	last  float64 // the last t at which it has any utility
}

// The method `at` returns the utility of the item if its work, and all work before it, is done at t.
func (x *item) at(t float64) float64 { return x.curve.At((x.lead + t) * grace) }

// latest returns the last time t at which the utility is at least the given level. If the utility never reaches the
// level, it returns −Inf.
func (x *item) latest(level float64) float64 {
	seconds, ever := x.curve.Latest(level)
	if !ever {
		return math.Inf(-1)
	}
	return seconds/grace - x.lead
}

type planner struct {
	*Problem
	slots      float64
	resolution float64
	unit       float64 // each amount of work is a multiple of this unit, so sums of work are exact
	items      []item
	byLast     []int32 // jobs with work, in ascending order of last
	byWork     []int32 // jobs with work, in ascending order of work
	byTop      []int32 // jobs with work, in descending order of top
	idle       []int32 // jobs without work
}

func newPlanner(p *Problem) (*planner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	q := &planner{Problem: p, slots: float64(p.Slots), resolution: p.Resolution, items: make([]item, len(p.Jobs))}
	q.resolution = cmp.Or(q.resolution, DefaultResolution)
	total := 0.0
	for i := range p.Jobs {
		total += p.Jobs[i].Demand
	}
	_, exponent := math.Frexp(total)
	q.unit = math.Ldexp(1, max(exponent, leastExponent)-50)
	for i := range p.Jobs {
		q.items[i] = q.item(i, &p.Jobs[i].Valuation)
		if q.items[i].work == 0 {
			q.idle = append(q.idle, int32(i))
		} else {
			q.byWork = append(q.byWork, int32(i))
		}
	}
	q.byLast, q.byTop = slices.Clone(q.byWork), slices.Clone(q.byWork)
	q.sort(q.byWork, func(a, b *item) int { return cmp.Compare(a.work, b.work) })
	q.sort(q.byLast, func(a, b *item) int { return cmp.Compare(a.last, b.last) })
	q.sort(q.byTop, func(a, b *item) int {
		return -cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.work, b.work), cmp.Compare(a.index, b.index))
	})
	return q, nil
}

func (q *planner) sort(jobs []int32, order func(a, b *item) int) {
	slices.SortStableFunc(jobs, func(a, b int32) int { return order(&q.items[a], &q.items[b]) })
}

// item prepares job i for the planner. If the argument `curve` is not nil, it is used in place of the job's valuation.
func (q *planner) item(i int, curve *valuation.Curve) item {
	job := &q.Jobs[i]
	x := item{curve: curve, index: i, work: math.RoundToEven(job.Demand/q.unit) * q.unit}
	x.spill = max(0, job.span(q.Slots)-job.Demand/q.slots)
	x.lead = job.Elapsed + x.spill
	x.best = x.at(x.work / q.slots)
	x.top = x.latest(x.best - q.resolution)
	x.last = x.latest(q.resolution)
	return x
}
