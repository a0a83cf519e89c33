package highestbid

import (
	"math"
	"slices"
)

// contender is a job on which another job's price depends. All times are in the same unit.
type contender struct {
	bid   float64
	since float64 // time of submission
	order uint64  // order among submissions at the same time
	// enters is the time at which the job begins to compete. It is not before `since`.
	enters float64
	// The job leaves the market when it has had the slot time `work`, and at the latest at the time `until`. Each of
	// the two is +Inf if it is not known.
	work, until float64
	// The field `known` is the part of the slot time that the job certainly needs.
	known float64
}

func (c *contender) before(d *contender) bool {
	switch {
	case c.bid != d.bid:
		return c.bid > d.bid
	case c.since != d.since:
		return c.since < d.since
	}
	return c.order < d.order
}

// capacity is a number of slots, and the time from which the site has this number.
type capacity struct {
	from  float64
	slots int
}

// absence simulates what would have happened in the market if one job had been absent. The other jobs get slots by
// highest bid (the algorithm HB).
type absence struct {
	slots   []capacity  // in the order of time; the first entry also counts for earlier times
	coming  []contender // jobs that have not entered yet, in the order of enters
	present []contender // jobs that have entered, the best first; their fields work and known have what is left
	now     float64
}

// pivot returns the price of a job for its place in the order. F(x) is the time at which the job's work would be done
// if the job bid x. It is at most `end`. The price is Σ b·(F(below b) − F(above b)) over all bids b of other jobs that
// are not above the job's own bid. Events in the market are known only up to the time `known`; +Inf means that all are
// known. The result `certain` is false if later events can change the price.
func (a *absence) pivot(me *contender, known, end float64) (price float64, certain bool) {
	if me.bid <= 0 {
		return 0, true
	}
	l := newLadder(me)
	for a.now < end && !l.finished() {
		if a.now >= known || known < end && a.guesses() {
			return l.price(end), false
		}
		next := min(a.next(), end)
		if a.now < me.enters {
			next = min(next, me.enters)
		} else if known < end {
			next = min(next, known)
		}
		if from := max(a.now, me.enters); next > from {
			level, first := a.level(me)
			l.pass(from, next, level, first)
		}
		a.advance(next)
	}
	return l.price(end), true
}

func (a *absence) running() []contender { return a.present[:min(a.capacity(), len(a.present))] }

func (a *absence) capacity() (n int) {
	for i, c := range a.slots {
		if i > 0 && c.from > a.now {
			break
		}
		n = c.slots
	}
	return n
}

// level returns the lowest bid of all jobs that run. It returns 0 while a slot is idle, and +Inf if there are no slots.
// If this bid equals the bid of the job `me`, the result `first` reports whether `me` would go before the other job.
func (a *absence) level(me *contender) (level float64, first bool) {
	n := a.capacity()
	switch {
	case n <= 0:
		return math.Inf(1), false
	case n > len(a.present):
		return 0, true
	}
	worst := &a.present[n-1]
	same := *me
	same.bid = worst.bid
	return worst.bid, same.before(worst)
}

// guesses reports whether the simulation depends on a guess now. This is so if a running job has done the known part of
// its work, and the other part is unknown. Such a job may end now or later.
func (a *absence) guesses() bool {
	return slices.ContainsFunc(a.running(), func(c contender) bool { return math.IsInf(c.work, 1) && a.now+c.known <= a.now })
}

// next returns the next time at which a contender or the number of slots changes.
func (a *absence) next() float64 {
	at := math.Inf(1)
	if len(a.coming) > 0 {
		at = max(a.now, a.coming[0].enters)
	}
	for _, c := range a.slots {
		if c.from > a.now {
			at = min(at, c.from)
			break
		}
	}
	for _, c := range a.running() {
		at = min(at, a.now+c.work)
		if math.IsInf(c.work, 1) && c.known > 0 {
			at = min(at, a.now+c.known)
		}
	}
	for i := range a.present {
		at = min(at, a.present[i].until)
	}
	return max(at, a.now)
}

// advance moves the simulation to the time `to`, and makes all changes that happen at this time. The caller must know
// that nothing changes before it.
func (a *absence) advance(to float64) {
	for i := range a.running() {
		a.present[i].work -= to - a.now
		a.present[i].known -= to - a.now
	}
	a.now = to
	a.present = slices.DeleteFunc(a.present, func(c contender) bool { return to+c.work <= to || c.until <= to })
	for len(a.coming) > 0 && a.coming[0].enters <= to {
		c := a.coming[0]
		a.coming = a.coming[1:]
		if c.work > 0 && c.until > to {
			a.enter(c)
		}
	}
}

func (a *absence) enter(c contender) {
	at, _ := slices.BinarySearchFunc(a.present, &c, func(x contender, y *contender) int {
		if x.before(y) {
			return -1
		}
		return 1
	})
	a.present = slices.Insert(a.present, at, c)
}

// ladder describes what would have happened to a job with other bids, from 0 up to its own bid. All bids with the same
// outcome form one rung of the ladder.
type ladder struct {
	work  float64
	rungs []rung // in ascending order; the last rung has only the own bid
}

// rung is a range of bids that have the same outcome for the job. The range begins above the top of the rung before it,
// and ends at its own top. For these bids, the field `had` is the slot time that the job has got so far. The field
// `done` is the time at which the job had all its work done.
type rung struct{ top, had, done float64 }

func newLadder(me *contender) *ladder {
	l := &ladder{work: me.work, rungs: []rung{{top: me.bid}, {top: me.bid}}}
	for i := range l.rungs {
		l.rungs[i].done = math.Inf(1)
	}
	return l
}

// finished reports whether the job would have completed its work even with the lowest bid of the ladder. The ladder has
// the bids that the job could have made, from 0 up to its own bid.
func (l *ladder) finished() bool { return !math.IsInf(l.rungs[0].done, 1) }

// pass lets the time pass from `from` to `to`. In this time, the job gets a slot if its bid is above the level. If
// `first` is true, it also gets one if its bid equals the level. pass updates what the job has received, for each bid
// that it could make.
func (l *ladder) pass(from, to, level float64, first bool) {
	own := len(l.rungs) - 1
	if k := slices.IndexFunc(l.rungs, func(r rung) bool { return level < r.top }); level > 0 && k >= 0 && k < own && (k == 0 || l.rungs[k-1].top < level) {
		below := l.rungs[k]
		below.top = level
		l.rungs = slices.Insert(l.rungs, k, below)
		own++
	}
	for k := range l.rungs {
		r := &l.rungs[k]
		runs := r.top > level || k == own && r.top == level && first
		if !runs || !math.IsInf(r.done, 1) {
			continue
		}
		if to-from >= l.work-r.had {
			r.done = from + l.work - r.had
		}
		r.had += to - from
	}
}

// price returns ∫ F(x) − F(bid) dx over the bids x up to the job's own bid. F(x) is when the job would end with the bid
// x. The method pivot computes the same price as a sum.
func (l *ladder) price(end float64) (sum float64) {
	own, top := min(l.rungs[len(l.rungs)-1].done, end), 0.0
	for _, r := range l.rungs[:len(l.rungs)-1] {
		sum += (r.top - top) * (min(r.done, end) - own)
		top = r.top
	}
	return sum
}

// pivots adds to each job's payment the price of the job's place in the order: what this place costs the other jobs.
func (r *run) pivots() {
	horizon := math.Inf(1)
	if r.p.Horizon > 0 {
		horizon = r.p.Horizon * r.units.time
	}
	all, present := r.contenders(), []int(nil)
	for k := range r.jobs {
		t, me := &r.jobs[k], &all[k]
		if me.work <= 0 {
			continue
		}
		if r.p.Payers != nil && !r.p.Payers[t.index] {
			present = append(present, k)
			continue
		}
		present = slices.DeleteFunc(present, func(j int) bool { return r.out.Finish[r.jobs[j].index]*r.units.time <= t.submit })
		a := &absence{slots: []capacity{{slots: r.p.Nodes}}, coming: all[k+1:], now: t.submit}
		for _, j := range present {
			c := all[j]
			c.work -= r.received(&r.jobs[j], t.submit)
			a.enter(c)
		}
		a.advance(t.submit)
		price, _ := a.pivot(me, math.Inf(1), t.submit+horizon)
		r.out.Payment[t.index] += price / r.units.time
		present = append(present, k)
	}
}

// contenders returns all jobs in the order of submission.
func (r *run) contenders() []contender {
	out := make([]contender, len(r.jobs))
	for k := range r.jobs {
		t := &r.jobs[k]
		work := scaled(r.p.Jobs[t.index].Runtime, r.units.time)
		out[k] = contender{bid: r.p.Jobs[t.index].Bid, since: t.submit, enters: t.submit, order: uint64(k), work: work, known: work, until: math.Inf(1)}
	}
	return out
}

// The method received returns how long the job t has run until the time `by`.
func (r *run) received(t *traced, by float64) (had float64) {
	for _, s := range r.out.Intervals[t.index] {
		had += max(0, min(scaled(s[1], r.units.time), by)-scaled(s[0], r.units.time))
	}
	return had
}
