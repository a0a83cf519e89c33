package highestbid

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// roster is what a live market remembers about its jobs, so that a decision costs only as much as its changes.
type roster struct {
	rule    Rule
	reserve messages.Credits
	horizon messages.Duration // how long waiting counts in pivot prices
	number  map[messages.JobID]int32
	seats   []seat  // the index is the number of the bidder
	free    []int32 // numbers that are not in use
	classes []*standing
	// jobs with slots, ordered by the time of the next check of their budgets, in microseconds
	running  heap
	spent    []int32               // jobs whose budgets are spent
	weighted []int32               // jobs that had weights at the last decision
	list     []mechanism.Directive // directives of the last decision
}

// The roster is the list of the jobs in the market. seat is the entry of one job in this list.
type seat struct {
	job   *mechanism.Job // nil if the number is not in use
	spent bool
	row   int // the row of its weights while they are computed, counted from 1
}

func (c *Mechanism) newRoster(classes int) *roster {
	r := &roster{rule: c.rule, reserve: c.reserve, horizon: c.horizon, number: map[messages.JobID]int32{}}
	r.running.ties = func(a, b int32) bool { return r.seats[a].job.Job < r.seats[b].job.Job }
	for k := range classes {
		r.classes = append(r.classes, newStanding(r, k))
	}
	return r
}

func (r *roster) update(view *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) {
	for _, id := range gone {
		r.leave(id)
	}
	for _, job := range changed {
		r.put(view, job)
	}
	r.review(view)
}

// decide gives the slots to the best jobs. The roster then has the state after the decision, until undo returns it to
// the state in the view.
func (r *roster) decide(view *mechanism.View) {
	for k, s := range r.classes {
		s.decide(view.Classes[k].Slots)
	}
}

func (r *roster) put(view *mechanism.View, job *mechanism.Job) {
	id, known := r.number[job.Job]
	if !known {
		id = r.newSeat()
		r.number[job.Job] = id
		r.seats[id].job = job
		for _, s := range r.classes {
			s.enter(id, job)
		}
	}
	r.seats[id].job = job
	r.place(view, id)
}

func (r *roster) newSeat() int32 {
	if last := len(r.free) - 1; last >= 0 {
		id := r.free[last]
		r.free = r.free[:last]
		return id
	}
	r.seats = append(r.seats, seat{})
	return int32(len(r.seats) - 1)
}

func (r *roster) leave(job messages.JobID) {
	id, known := r.number[job]
	if !known {
		return
	}
	delete(r.number, job)
	r.running.keep(id, 0, false)
	r.spend(id, false)
	for _, s := range r.classes {
		s.put(id, nil, true)
	}
	r.seats[id] = seat{}
	r.free = append(r.free, id)
}

// place updates the auctions and the lists after a job has changed. Three things of a job can change: its running
// tasks, its pending tasks, and the part of its budget that is spent.
func (r *roster) place(view *mechanism.View, id int32) {
	job := r.seats[id].job
	view.Read(job)
	out := r.exhausted(job)
	r.spend(id, out)
	for _, s := range r.classes {
		s.put(id, job, out)
	}
	slots := mechanism.Sum(job.Running)
	if slots == 0 || out {
		r.running.keep(id, 0, false)
		return
	}
	dearest := float64(slots) * max(job.Rate, r.reserve).Float()
	r.running.put(id, float64(view.Now+r.lasts(job, dearest)))
}

func (r *roster) exhausted(job *mechanism.Job) bool { return job.Accrued >= r.bound(job) }

// bound returns the most that the slots of a job may cost: its budget. At pivot prices, a job also pays for its place
// in the order. Then bound is the budget minus the highest possible price of this place.
func (r *roster) bound(job *mechanism.Job) messages.Credits {
	if r.rule.Price == Pivot {
		return max(0, job.Budget-aside(job.Rate, r.horizon))
	}
	return job.Budget
}

// spend adds a job to the jobs with spent budgets, or removes it.
func (r *roster) spend(id int32, spent bool) {
	s := &r.seats[id]
	switch {
	case spent && !s.spent:
		r.spent = append(r.spent, id)
	case !spent && s.spent:
		r.spent = slices.DeleteFunc(r.spent, func(x int32) bool { return x == id })
	}
	s.spent = spent
}

// review checks the budgets that may have been spent since the last check.
func (r *roster) review(view *mechanism.View) {
	if !r.rule.bounded() {
		for _, x := range slices.Clone(r.running.items) {
			r.place(view, x.id)
		}
		return
	}
	for !r.running.empty() && messages.Time(r.running.least()) <= view.Now {
		r.place(view, r.running.first())
	}
}

// bounded reports whether the price of a job is never above the larger of two amounts: the job's own bid and the
// reserve price. This is so under the algorithm HB. There the price is at most the level, which is the best bid of a
// waiting job. As soon as a level is set, running jobs with lower bids are suspended.
func (r Rule) bounded() bool { return !r.byLength() || r.Capped || r.Price == First }

// The constant never is a duration of thirty years, in microseconds. The roster treats a budget that would last longer
// as if it lasted for ever.
const never = 1e15

// lasts returns the time at which a job will have used up its budget, if it pays at a rate in credits per second.
func (r *roster) lasts(job *mechanism.Job, rate float64) messages.Time {
	return messages.Time(math.Ceil(min((r.bound(job)-job.Accrued).Float()/rate*1e6, never)))
}

// wake returns the earliest time at which a running job may have used up its budget. It returns 0 if there is no such
// time.
func (r *roster) wake(now messages.Time) messages.Time {
	first := now + never
	if r.rule.bounded() {
		if !r.running.empty() {
			first = min(first, messages.Time(r.running.least()))
		}
	} else {
		for _, x := range r.running.items {
			first = min(first, now+r.lasts(r.seats[x.id].job, r.costs(x.id)))
		}
	}
	if first == now+never {
		return 0
	}
	return first + 1 // a microsecond later, because the accrued amount is rounded
}

// costs returns what a job pays per second now, in credits.
func (r *roster) costs(id int32) (rate float64) {
	job := r.seats[id].job
	for _, s := range r.classes {
		n := max(int(s.auction.bidders[id].running), job.Running[s.class])
		rate += float64(n) * r.rule.PriceOf(s.tariff(), r.reserve, job.Rate, job.Length)
	}
	return rate
}

// orders returns the directives of a decision. First come the jobs whose budgets are spent, by job number. Then come
// the directives of each class, class by class.
func (r *roster) orders() []mechanism.Directive {
	list := r.list[:0]
	for _, id := range r.spent {
		list = append(list, mechanism.Directive{Job: r.seats[id].job.Job, Action: mechanism.Discard})
	}
	slices.SortFunc(list, func(a, b mechanism.Directive) int { return cmp.Compare(a.Job, b.Job) })
	for _, s := range r.classes {
		list = s.directives(list)
	}
	r.list = list
	return list
}

// weights returns the weights that this decision changed. The result may also have weights that did not change.
func (r *roster) weights() (jobs []*mechanism.Job, rows [][]float64) {
	before := r.weighted
	r.weighted = nil
	row := func(id int32) []float64 {
		s := &r.seats[id]
		if s.row == 0 {
			jobs, rows = append(jobs, s.job), append(rows, make([]float64, len(r.classes)))
			s.row = len(rows)
		}
		return rows[s.row-1]
	}
	for _, s := range r.classes {
		s.weigh(func(id int32, class int, part float64) {
			if r.seats[id].row == 0 {
				r.weighted = append(r.weighted, id)
			}
			row(id)[class] = part
		})
	}
	for _, id := range before {
		if r.seats[id].job != nil {
			row(id)
		}
	}
	for _, list := range [][]int32{before, r.weighted} {
		for _, id := range list {
			r.seats[id].row = 0
		}
	}
	return jobs, rows
}

// undo takes back all changes that were made since the roster got its last view. Afterwards, all jobs are again as in
// this view.
func (r *roster) undo() {
	for _, s := range r.classes {
		s.auction.undo()
	}
}
