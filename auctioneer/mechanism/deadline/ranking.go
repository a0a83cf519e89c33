package deadline

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// The ranking decides which jobs get slots. seat has what the ranking knows about one job. All times are counted in
// units of time.
type seat struct {
	job   *mechanism.Job
	task  Task
	done  int // units that the job has had
	level float64
	rank  int  // position in the ranking; −1 if the job does not compete
	holds bool // the job has slots in the last decided unit
	rises bool // that unit raises the job's level
	lag   int  // number of units in which the job was served, less the number of rises of its level; can be negative
	met   bool // in some unit since the job's arrival, some competing job had no slot

	// `since` and `base` describe the time in which the job has had its slot without a break, up to the last decision.
	// `since` is the first unit of this time, or −1 if the job has no slot. `base` is the number of units that the job
	// had before this time.
	base  int
	since int
	told  []int64
}

// The method left returns how many units are left until the job's deadline, including the given unit.
func (s *seat) left(unit int) int { return s.task.Deadline - unit + 1 }

// needs returns how many units of time a job still needs. If a job has had all the units that it declared and still
// runs, it needs one more.
func (s *seat) needs() int { return max(1, s.task.Length-s.done) }

// hopeless reports whether a job can no longer meet its deadline, even if it gets a slot in the given unit and in each
// later unit.
func (s *seat) hopeless(unit int) bool { return s.left(max(unit, s.task.Arrival)) < s.needs() }

// ranking lists the jobs that compete in the last decided unit, and says which of them have slots.
type ranking struct {
	growth  float64 // a level is multiplied by this factor for each unit served
	unit    int
	decided bool // a unit was decided already
	slots   int
	short   bool    // some jobs have no slots
	seats   []*seat // best first
}

// decide gives the slots of a unit to the jobs with the highest levels.
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
	for k, s := range r.seats { // slots are given by the rule of serveWide
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

// levelOf returns the level at which a job competes. A job that has had all its declared units has level 0: it gets
// only a slot that is left over.
func (r *ranking) levelOf(s *seat) float64 {
	if s.done >= s.task.Length {
		return 0
	}
	return min(s.task.Value/s.task.area()*math.Pow(r.growth, float64(s.done-s.lag)), math.MaxFloat64)
}

// count adds the time since the last decision, in units, to the work done of each job that had a slot in this time.
// Call it once before each decision.
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

// price returns the price of a slot in the ranking's unit of time, in credits. This is the level of the highest-ranked
// job that gets no slot, or 0 if all jobs get one.
func (r *ranking) price() float64 {
	if at := slices.IndexFunc(r.seats, func(s *seat) bool { return !s.holds }); at >= 0 {
		return r.seats[at].level
	}
	return 0
}

// A ranking orders the jobs for one unit of time. enough returns the smallest value with which a job would get its
// slots in this unit. The work that the job has received so far stays the same. The result is 0 if the job gets its
// slots with any value, or if its level is 0.
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
