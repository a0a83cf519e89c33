package backfill

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market with backfilling.
type Mechanism struct {
	*posted.Desk
	variant Variant
	closes  bool  // maintenance windows will take slots away
	queue   []int // positions in the view of the waiting jobs of one class, the oldest first
	plan    profile.Profile
}

// Describe returns the traits of the mechanism.
func Describe(*marketmsg.Market) mechanism.Traits {
	t := posted.Traits(marketmsg.Backfill, "first come, first served; a later job may go first if it delays no job that was promised a start", "mode", "gang_timeout")
	t.Make = mechanism.Maker(func(m marketmsg.Market) (*Mechanism, error) { return New(m), nil })
	t.Solve = SolveDocument
	t.Modes = []string{string(EASY), string(Conservative)}
	t.Bid = append(t.Bid, "length")
	t.Gains = "a length that is too short, if jobs need several slots at once, " + t.Gains
	t.Directs, t.Gangs, t.Wide, t.Assembles = true, true, true, true
	return t
}

// New makes the mechanism of a valid market, with the variant that its mode names; EASY is the
// default.
func New(m marketmsg.Market) *Mechanism {
	return &Mechanism{Desk: posted.NewDesk(m), variant: cmp.Or(Variant(m.Mode), EASY)}
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// After the expected end of a job, the mechanism waits for this time before it treats the job as late, because it takes
// time to notice and report an end.
const grace = messages.Duration(1e9)

// Allocate gives orders to start the jobs that can start now, for each class separately. A job's weight in a class is
// in proportion to the slots that it may take when it starts. If no job can start, the oldest job has all the weight.
func (b *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := b.Allocation(view)
	for j := range b.Classes {
		b.line(view, j)
		if len(b.queue) == 0 {
			continue
		}
		ordered := len(a.Directives)
		b.decide(view, j, a)
		a.Wake = messages.Earlier(a.Wake, b.overdue(view, j))
		spread(view, j, b.queue, a, a.Directives[ordered:])
	}
	return a
}

func (b *Mechanism) line(view *mechanism.View, j int) {
	b.queue = b.queue[:0]
	for i, job := range view.Jobs {
		if job.Pending[j] > 0 {
			b.queue = append(b.queue, i)
		}
	}
	slices.SortFunc(b.queue, func(x, y int) int { return posted.Order(view.Jobs[x], view.Jobs[y]) })
}

func spread(view *mechanism.View, j int, queue []int, a *mechanism.Allocation, orders []mechanism.Directive) {
	total := 0
	for _, d := range orders {
		total += d.Slots
	}
	if total == 0 {
		a.Weights[queue[0]][j] = 1
		return
	}
	for _, d := range orders {
		i, _ := slices.BinarySearchFunc(view.Jobs, d.Job, func(job *mechanism.Job, id messages.JobID) int { return cmp.Compare(job.Job, id) })
		a.Weights[i][j] = float64(d.Slots) / float64(total)
	}
}

// decide adds a directive for each job that starts now in class j.
func (b *Mechanism) decide(view *mechanism.View, j int, a *mechanism.Allocation) {
	now, free := float64(view.Now), view.Classes[j].Idle
	b.running(view, j)
	w := want{now: now, shadow: math.Inf(1)} // no reservation yet
	for _, i := range b.queue {
		if free == 0 {
			return
		}
		job := view.Jobs[i]
		n, length := demand(job, j, free), span(job)
		w.free = free
		if !b.fits(&w, n, length) {
			b.reserve(&w, n, length)
			continue
		}
		if now+length > w.shadow {
			w.spare -= n
		}
		free -= n
		b.plan.Insert(now, length, n)
		a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Start, Slots: n, Class: j})
	}
}

// fits reports whether a job can start now without delaying a reservation. The job needs n slots for a time of
// `length`, in microseconds.
func (b *Mechanism) fits(w *want, n int, length float64) bool {
	switch {
	case n > w.free, b.closes && b.plan.Soonest(w.now, length, n) != w.now:
		return false
	case b.variant == Conservative:
		return b.plan.Soonest(w.now, length, n) == w.now
	default:
		return w.now+length <= w.shadow || n <= w.spare
	}
}

// reserve keeps a window for a job that cannot start now. The conservative variant keeps one for every job: it removes
// the nodes of the window from the plan. EASY keeps one only for the first job. It records the time at which this job
// can start (the shadow time), and how many slots remain free at this time after the job has started. If the job is
// wider than the class, reserve does nothing.
func (b *Mechanism) reserve(w *want, n int, length float64) {
	if b.variant == Conservative {
		b.plan.Insert(b.plan.Soonest(w.now, length, n), length, n)
		return
	}
	if !b.closes {
		length = 0 // more slots become free with time
	}
	if math.IsInf(w.shadow, 1) {
		if w.shadow = b.plan.Soonest(w.now, length, n); !math.IsInf(w.shadow, 1) {
			w.spare = b.plan.Free(w.shadow) - n
		}
	}
}

// demand returns how many slots a job wants at once. If its tasks start together (a gang), it wants slots for the whole
// gang. If its tasks start one by one, it wants all free slots that its tasks can use, but at least the slots of one
// task.
func demand(job *mechanism.Job, j, free int) int {
	if job.Gang() {
		return min(job.Width, job.Pending[j])
	}
	width := max(job.Alone, 1)
	return min(job.Pending[j], max(width, free/width*width))
}

// span returns the job's declared length in microseconds. If none is declared, it returns the longest time limit of the
// job's tasks, or +Inf if there is no limit.
func span(job *mechanism.Job) float64 {
	length := cmp.Or(job.Length, job.Limit)
	if length <= 0 {
		return math.Inf(1)
	}
	return float64(length) / 1e3
}

// running makes the plan of class j: its idle slots, and the slots that running jobs hold until their expected ends.
func (b *Mechanism) running(view *mechanism.View, j int) {
	now, nodes := float64(view.Now), view.Classes[j].Idle
	for _, job := range view.Jobs {
		nodes += job.Running[j]
	}
	b.plan.Reset(nodes)
	for _, job := range view.Jobs {
		if n := job.Running[j]; n > 0 {
			b.plan.Take(now, expected(job, now), n)
		}
	}
	b.closes = len(view.Classes[j].Closings) > 0
	for _, c := range view.Classes[j].Closings {
		b.plan.Take(max(now, float64(c.From)), float64(c.To), c.Slots)
	}
}

// overdue returns the next time at which a running job of class j will be late (see outlives), or 0 if there is none.
// If nothing else changes, no waiting job can start before this time.
func (b *Mechanism) overdue(view *mechanism.View, j int) messages.Time {
	now, first := float64(view.Now), math.Inf(1)
	for _, job := range view.Jobs {
		if job.Running[j] > 0 {
			first = min(first, outlives(job, now))
		}
	}
	if first > 1<<62 {
		return 0
	}
	return messages.Time(math.Ceil(first))
}

// expected returns when a running job is expected to end, in microseconds. The constant grace is the time for which a
// job may exceed its expected length before it counts as late. If the job has exceeded the length by less than this, it
// is expected to end when it becomes late.
func expected(job *mechanism.Job, now float64) float64 {
	at := outlives(job, now)
	if end := at - grace.Seconds()*1e6; end > now {
		return end
	}
	return at
}

// outlives returns the next time at which a running job is late. A job is late when it exceeds its expected length by
// the grace time. The tasks of a gang run together. If a gang is late already, outlives doubles its length until the
// result is in the future. The tasks of any other job are assumed to run one after another, each as long as expected.
// For such a job, the result is the expected end of the present task plus the grace time.
func outlives(job *mechanism.Job, now float64) float64 {
	late, length, start := grace.Seconds()*1e6, span(job), float64(job.Started)
	if math.IsInf(length, 1) || start > now {
		return now + length + late
	}
	rounds := math.Floor(max(0, now-start-late)/length) + 1
	if job.Gang() {
		rounds = math.Exp2(math.Ceil(math.Log2(rounds)))
	}
	return start + rounds*length + late
}

// Explain says how many waiting jobs come before this job.
func (b *Mechanism) Explain(view *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	return b.Desk.Explain(view, job, posted.Ahead(view, job), "first come, first served; a job may start earlier if it delays no job with a reservation")
}
