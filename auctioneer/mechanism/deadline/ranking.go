package deadline

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// seat is what the ranking knows about a job, in units of time.
type seat struct {
	job   *mechanism.Job
	task  Task
	done  int // units it has had
	level float64
	rank  int  // −1: does not compete
	holds bool // it has slots in the unit decided last
	rises bool // its level rises by that unit
	lag   int  // units in which it was served, less the times its level rose; may be below 0
	met   bool // in some unit since its arrival, some competing job had no slot

	// As of the last decision: since is the unit since which the job has had its slot without a
	// break, −1 if it has none; base is the number of units that it had before.
	base  int
	since int
	told  []int64
}

// left returns the number of units until the job's deadline, including the given one.
func (s *seat) left(unit int) int { return s.task.Deadline - unit + 1 }

// needs returns the number of units that a job still needs. A job that still runs after all the
// units that it asked for needs one more.
func (s *seat) needs() int { return max(1, s.task.Length-s.done) }

// hopeless reports whether a job can no longer make its deadline from a unit on.
func (s *seat) hopeless(unit int) bool { return s.left(max(unit, s.task.Arrival)) < s.needs() }

// ranking lists the jobs that compete in the unit decided last, and which of them have slots.
type ranking struct {
	growth  float64 // factor by which a unit served raises a level
	unit    int
	decided bool // a unit was decided
	slots   int
	short   bool    // some have no slots
	seats   []*seat // best first
}

// decide gives the slots of a unit to the jobs that are worth most for what they
// still need.
func (r *ranking) decide(present map[messages.JobID]*seat, unit, slots int) {
	r.unit, r.decided, r.slots = unit, true, slots
	r.seats = r.seats[:0]
	for _, s := range present {
		s.rank, s.holds, s.rises = -1, false, false
		if s.task.Arrival <= unit && s.left(unit) >= s.needs() {
			s.level = r.levelOf(s)
			r.seats = append(r.seats, s)
		}
	}
	slices.SortFunc(r.seats, func(a, b *seat) int {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.task.Arrival, b.task.Arrival), cmp.Compare(a.job.Job, b.job.Job))
	})
	left, rises := slots, true
	for k, s := range r.seats { // as serveWide
		s.rank, s.rises = k, rises && left > 0
		if s.holds = s.task.slots() <= left && left > 0; s.holds {
			left -= s.task.slots()
		} else {
			rises = false
		}
	}
	r.short = slices.ContainsFunc(r.seats, func(s *seat) bool { return !s.holds })
	for _, s := range r.seats {
		s.met = s.met || r.short
	}
}

// levelOf returns the level at which a job competes. A job that has had all the time it asked for
// has level 0: it continues only if a slot is left over.
func (r *ranking) levelOf(s *seat) float64 {
	if s.done >= s.task.Length {
		return 0
	}
	return min(s.task.Value/s.task.area()*math.Pow(r.growth, float64(s.done-s.lag)), math.MaxFloat64)
}

// count adds the units since the last decision to the jobs that had slots in them. Call it once
// before each decision.
func (r *ranking) count(unit int) {
	if !r.decided || unit <= r.unit {
		return
	}
	passed := unit - r.unit
	for _, s := range r.seats {
		if s.holds {
			s.done, s.lag = s.done+passed, s.lag+passed
		}
		if s.rises {
			s.lag -= passed
		}
	}
}

// price returns the cost of a slot for the unit, in credits: the level of the best job without a
// slot.
func (r *ranking) price() float64 {
	if at := slices.IndexFunc(r.seats, func(s *seat) bool { return !s.holds }); at >= 0 {
		return r.seats[at].level
	}
	return 0
}

// enough returns the smallest value, with the work done so far, that would leave the job enough
// slots in this unit. 0: any value is enough, or the job has no level.
func (r *ranking) enough(s *seat) messages.Credits {
	left := r.slots
	for _, o := range r.seats {
		if o == s || o.task.slots() > left {
			continue
		}
		if left -= o.task.slots(); left < s.task.slots() && s.level > 0 {
			value, _ := messages.RoundCredits(s.task.Value * (o.level / s.level))
			return value
		}
	}
	return 0
}
