package highestbid

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
)

// Run runs a whole trace and returns what became of each job, or the error of
// Problem.Check. Ties between jobs go to the earlier submission, then to the
// smaller index.
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

// run is a trace on its way. Jobs are numbered in the order of submission, and
// times are in ticks.
type run struct {
	p        *Problem
	units    units
	now      float64
	next     int // the next job to be submitted
	jobs     []traced
	auction  *auction
	accounts *accounts[double]
	ends     heap // those who run, by when they will end
	segments []segment
	out      *Outcome
}

type traced struct {
	submit float64
	left   float64 // run time still to come, as of began
	began  float64 // when it last started to run
	end    float64 // when it will end if it goes on running
	index  int32   // in the problem
	open   int32   // the number of its bill while it runs
	ran    bool
	bill   bill[double] // of the times it ran before
}

// segment is an interval in which a job ran.
type segment struct {
	index    int32
	from, to float64
}

func newRun(p *Problem) *run {
	r := &run{p: p, units: p.units(), jobs: make([]traced, len(p.Jobs)),
		auction: newAuction(p.Rule, p.Nodes), accounts: newAccounts[double](p.Rule), out: newOutcome(len(p.Jobs))}
	for i := range p.Jobs {
		r.jobs[i] = traced{submit: scaled(p.Jobs[i].Submit, r.units.time), left: scaled(p.Jobs[i].Runtime, r.units.time), index: int32(i)}
	}
	slices.SortFunc(r.jobs, func(a, b traced) int {
		return cmp.Or(cmp.Compare(a.submit, b.submit), cmp.Compare(a.index, b.index))
	})
	r.auction.reserve(len(r.jobs))
	r.ends.place = make([]int32, len(r.jobs))
	r.segments = make([]segment, 0, len(r.jobs))
	r.ends.before = func(a, b int32) bool {
		return r.jobs[a].end < r.jobs[b].end || r.jobs[a].end == r.jobs[b].end && a < b
	}
	return r
}

// instant goes on to the next instant at which something happens, and lets
// all of it happen: those who end, those who come, one decision.
func (r *run) instant() {
	now := math.Inf(1)
	if !r.ends.empty() {
		now = r.jobs[r.ends.first()].end
	}
	if r.next < len(r.jobs) {
		now = min(now, r.jobs[r.next].submit)
	}
	r.pass(now)
	for !r.ends.empty() && r.jobs[r.ends.first()].end <= now {
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

// pass lets the time until now be billed at the tariff of the last decision.
func (r *run) pass(now float64) {
	basis, level := r.auction.basis(r.p.Rule), 0.0
	time := twoSum(now, -r.now)
	r.now = now
	if r.auction.used == 0 {
		return // nobody is billed
	}
	if basis == mechanism.AtLevel {
		level = r.auction.level()
	}
	r.accounts.pass(basis, level, time, time.times(level))
}

// basis is what the price is made of as things stand.
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
	if t.left == 0 {
		r.out.Start[t.index], r.out.Finish[t.index] = job.Submit, job.Submit
		return
	}
	r.auction.arrive(id, scaled(job.Bid, r.units.money), r.length(job), 1)
}

// length is what the rule divides a job's bid by, in ticks.
func (r *run) length(job *Job) float64 { return scaled(job.length(r.p.Rule.Algorithm), r.units.time) }

func (r *run) finish(id int32) {
	r.ends.remove(id)
	t := &r.jobs[id]
	t.left = 0
	r.pause(id)
	r.auction.leave(id, 1, 0)
	r.out.Finish[t.index] = r.now / r.units.time
	r.out.Flow[t.index] = (r.now - t.submit) / r.units.time
	r.out.Payment[t.index] = r.amount(t)
}

// follow starts or suspends a job as the decision says.
func (r *run) follow(id int32) {
	t := &r.jobs[id]
	switch b := &r.auction.bidders[id]; {
	case b.running == b.before || t.left == 0:
	case b.running == 0:
		r.ends.remove(id)
		t.left = t.end - r.now
		r.out.Preemptions++
		r.pause(id)
	default:
		t.began, t.end = r.now, r.now+t.left
		t.open = r.accounts.open(b.key)
		r.ends.push(id)
		if !t.ran {
			t.ran = true
			r.out.Start[t.index] = r.now / r.units.time
		}
	}
}

// pause ends an interval of running.
func (r *run) pause(id int32) {
	t := &r.jobs[id]
	t.bill = t.bill.plus(r.accounts.close(t.open))
	r.segments = append(r.segments, segment{t.index, t.began / r.units.time, r.now / r.units.time})
}

// amount is what a job's bill comes to.
func (r *run) amount(t *traced) float64 {
	job := &r.p.Jobs[t.index]
	reserve := r.p.Reserve
	if r.p.Rule.Capped {
		reserve = min(reserve, job.Bid)
	}
	sum := t.bill.own.times(job.Bid).plus(t.bill.reserve.times(reserve))
	level := t.bill.level
	if r.p.Rule.byLength() {
		level = level.times(r.length(job))
	}
	return (sum.float() + level.float()/r.units.money) / r.units.time
}

// outcome sorts the intervals by job and works out the rest.
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
