package highestbid

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
)

// Run runs a whole trace and returns its outcome, or the error of Problem.Check. Ties go to the earlier submission,
// then to the smaller index.
func Run(p *Problem) (*Outcome, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := newRun(p)
	for r.next < len(r.jobs) || !r.ends.empty() {
		r.instant()
	}
	return r.outcome(), nil
}

// run is the state of a simulation of a trace. Jobs are numbered by submission, and times are in ticks.
type run struct {
	p        *Problem
	units    units
	now      float64
	next     int // number of the next job to be submitted
	jobs     []traced
	auction  *auction
	accounts *accounts
	ends     heap // running jobs, ordered by the time at which their first task ends if it continues to run
	segments []segment
	out      *Outcome
}

// traced is a job of the trace. All its tasks have the same bid, so they run in the order of their numbers. At each
// time, the running tasks are the first ones among the tasks that have not ended.
type traced struct {
	submit  float64
	since   float64 // time at which groups was last updated
	running int32   // number of running tasks
	index   int32   // position in the problem
	bill    int32   // number of its bill, from its first start on; 0 if it has not run
	groups  []group // tasks that have not ended, in order, grouped by the run time that is left
	began   float64 // start of its present interval, if tasks run
}

// group is some tasks of a job that follow one another and have the same run time left.
type group struct {
	left  float64
	tasks int
}

// segment is an interval of time in which the job with the given index ran.
type segment struct {
	index    int32
	from, to float64
}

func newRun(p *Problem) *run {
	r := &run{p: p, units: p.units(), jobs: make([]traced, len(p.Jobs)),
		auction: newAuction(p.Rule, p.Nodes), accounts: newAccounts(p.Rule), out: newOutcome(len(p.Jobs))}
	whole := make([]group, len(p.Jobs))
	for i := range p.Jobs {
		whole[i] = group{scaled(p.Jobs[i].Runtime, r.units.time), p.Jobs[i].tasks()}
		r.jobs[i] = traced{submit: scaled(p.Jobs[i].Submit, r.units.time), groups: whole[i : i+1 : i+1], index: int32(i)}
	}
	slices.SortFunc(r.jobs, func(a, b traced) int {
		return cmp.Or(cmp.Compare(a.submit, b.submit), cmp.Compare(a.index, b.index))
	})
	r.auction.reserve(len(r.jobs))
	r.ends.place = make([]int32, len(r.jobs))
	if r.records() {
		r.segments = make([]segment, 0, len(r.jobs))
	}
	r.ends.ties = func(a, b int32) bool { return a < b }
	return r
}

// The method `records` reports whether the run keeps the intervals in which jobs had slots. Pivot prices are computed
// from them.
func (r *run) records() bool { return r.p.Watch == nil || r.p.Rule.Price == Pivot }

// instant moves to the next instant with an event. It handles tasks that end, then jobs that arrive, and then decides.
func (r *run) instant() {
	now := math.Inf(1)
	if !r.ends.empty() {
		now = r.ends.least()
	}
	if r.next < len(r.jobs) {
		now = min(now, r.jobs[r.next].submit)
	}
	r.pass(now)
	for !r.ends.empty() && r.ends.least() <= now {
		r.finish(r.ends.first())
	}
	for ; r.next < len(r.jobs) && r.jobs[r.next].submit <= now; r.next++ {
		r.arrive(int32(r.next))
	}
	r.auction.decide()
	for _, id := range r.auction.changed {
		r.follow(id)
	}
	r.auction.settled()
}

// pass charges the jobs that run for the time from the last call until now, at the prices of the last decision.
func (r *run) pass(now float64) {
	basis, level := r.auction.basis(r.p.Rule), 0.0
	time := twoSum(now, -r.now)
	r.now = now
	if r.auction.used == 0 {
		return // no job runs
	}
	if basis == mechanism.AtLevel {
		level = r.auction.level()
	}
	r.accounts.pass(basis, level, time, time.times(level))
}

// basis returns how the running jobs are charged: at their own bids, at the level (the best waiting bid), or at the
// reserve price.
func (a *auction) basis(r Rule) mechanism.Basis {
	switch {
	case r.Price == First && a.wanted >= a.nodes:
		return mechanism.OwnBid
	case r.Price == Kth && !a.waiting.empty():
		return mechanism.AtLevel
	default:
		return mechanism.AtReserve
	}
}

func (r *run) arrive(id int32) {
	t := &r.jobs[id]
	job := &r.p.Jobs[t.index]
	if t.groups[0].left == 0 {
		r.out.Start[t.index], r.out.Finish[t.index] = job.Submit, job.Submit
		return
	}
	r.auction.arrive(id, scaled(job.Bid, r.units.money), r.length(job), job.tasks()*job.width(), job.width())
}

// Some algorithms order jobs by the bid divided by a length: the run time or its estimate. length returns this length
// of a job, in ticks.
func (r *run) length(job *Job) float64 { return scaled(job.length(r.p.Rule.Algorithm), r.units.time) }

// finish ends the tasks of a job whose run time has passed. These tasks are in the first groups of the job.
func (r *run) finish(id int32) {
	t := &r.jobs[id]
	t.pass(r.now)
	done := 0
	for done == 0 || len(t.groups) > 0 && t.groups[0].left <= 0 { // the first task ends in any case, because times are rounded
		done += t.groups[0].tasks
		t.groups = t.groups[1:]
	}
	r.give(id, int(t.running)-done)
	r.auction.leave(id, done*r.width(t), 0)
	r.tell(t, Step{Done: done})
	if len(t.groups) > 0 {
		return
	}
	r.out.Finish[t.index] = r.now / r.units.time
	r.out.Flow[t.index] = (r.now - t.submit) / r.units.time
	r.out.Payment[t.index] = r.amount(t, r.accounts.close(t.bill))
}

// follow starts or suspends tasks of a job as the decision says.
func (r *run) follow(id int32) {
	t := &r.jobs[id]
	was, has := int(t.running), int(r.auction.bidders[id].running)/r.width(t)
	if has == was {
		return
	}
	t.pass(r.now)
	if lost := was - has; lost > 0 {
		r.out.Preemptions += lost
		r.tell(t, Step{Lost: lost})
	} else if r.p.Watch != nil {
		r.tell(t, Step{Again: t.begun(was, has, scaled(r.p.Jobs[t.index].Runtime, r.units.time))})
	}
	if t.cut(has); t.bill == 0 {
		t.bill = r.accounts.open()
		r.out.Start[t.index] = r.now / r.units.time
	}
	r.give(id, has)
}

func (r *run) width(t *traced) int { return r.p.Jobs[t.index].width() }

// give sets how many tasks of a job run from now on.
func (r *run) give(id int32, tasks int) {
	t := &r.jobs[id]
	if t.running == 0 {
		t.began = r.now
	} else {
		r.ends.remove(id)
		r.accounts.pause(t.bill, int(t.running)*r.width(t))
	}
	if t.running = int32(tasks); tasks > 0 {
		r.accounts.begin(t.bill, r.auction.bidders[id].key)
		r.ends.push(id, r.now+t.groups[0].left)
	} else if r.records() {
		r.segments = append(r.segments, segment{t.index, t.began / r.units.time, r.now / r.units.time})
	}
}

func (r *run) tell(t *traced, s Step) {
	if r.p.Watch != nil && s != (Step{}) {
		s.Job, s.At = int(t.index), r.now/r.units.time
		r.p.Watch(s)
	}
}

// t.groups has groups of tasks. In each group, either all tasks run or none runs; the method `cut` has divided the
// tasks in this way. For the groups that run, pass subtracts the time since the last call from their remaining run
// time.
func (t *traced) pass(now float64) {
	running := int(t.running)
	for k := 0; running > 0 && k < len(t.groups); k++ {
		t.groups[k].left -= now - t.since
		running -= t.groups[k].tasks
	}
	t.since = now
}

// begun returns how many of the tasks with positions in [from, to) have already run for some time.
func (t *traced) begun(from, to int, whole float64) (n int) {
	seen := 0
	for _, g := range t.groups {
		if first, last := max(seen, from), min(seen+g.tasks, to); first < last && g.left < whole {
			n += last - first
		}
		seen += g.tasks
	}
	return n
}

// Neighbouring tasks with the same remaining time form a group. cut changes the groups so that one of them ends with
// the n-th task: if this task is inside a group, cut divides this group. At all other places, it merges neighbouring
// groups with the same remaining time.
func (t *traced) cut(n int) {
	if len(t.groups) == 1 && t.groups[0].tasks == 1 {
		return
	}
	var out []group
	seen := 0
	for _, g := range t.groups {
		for g.tasks > 0 {
			part := g.tasks
			if seen < n {
				part = min(part, n-seen)
			}
			if last := len(out) - 1; last >= 0 && out[last].left == g.left && seen != n {
				out[last].tasks += part
			} else {
				out = append(out, group{g.left, part})
			}
			seen += part
			g.tasks -= part
		}
	}
	t.groups = out
}

func (r *run) amount(t *traced, bill bill) float64 {
	job := &r.p.Jobs[t.index]
	reserve := r.p.Reserve
	if r.p.Rule.Capped {
		reserve = min(reserve, job.Bid)
	}
	sum := bill.own.times(job.Bid).plus(bill.reserve.times(reserve))
	level := bill.level
	if r.p.Rule.byLength() {
		level = level.times(r.length(job))
	}
	return (sum.float() + level.float()/r.units.money) / r.units.time
}

// outcome sorts the intervals in which jobs ran by job, and computes from them the other fields of the Outcome.
func (r *run) outcome() *Outcome {
	count := make([]int32, len(r.jobs)+1)
	for i := range r.segments {
		count[r.segments[i].index+1]++
	}
	for i := range r.jobs {
		count[i+1] += count[i]
	}
	all := make([]Interval, len(r.segments))
	for i := range r.jobs {
		r.out.Intervals[i] = all[count[i]:count[i]:count[i+1]]
	}
	for _, s := range r.segments {
		r.out.Intervals[s.index] = append(r.out.Intervals[s.index], Interval{s.from, s.to})
	}
	if r.p.Rule.Price == Pivot {
		r.pivots()
	}
	r.out.conclude(r.p.Jobs)
	return r.out
}
