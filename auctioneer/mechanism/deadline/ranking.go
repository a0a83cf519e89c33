package deadline

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// seat is a job in units of time.
type seat struct {
	job   *mechanism.Job
	task  Task
	done  int // units it has had
	level float64
	rank  int  // −1: does not compete
	holds bool // it has slots in the unit decided last
	rises bool // its level rises by that unit
	lag   int  // how many fewer times its level has risen than it was served: below 0 more often
	met   bool // in some unit since its arrival not all that competed had slots

	// As of the last decision: for how long the job has had its slot without a
	// break, and what it had had before.
	base  int
	since int // unit; only while it has one
	told  []int64
}

// left is how many units a job has until its deadline, the given one included.
func (s *seat) left(unit int) int { return s.task.Deadline - unit + 1 }

// needs is how many units a job still needs. One that has had all that it asked for and
// goes on needs another.
func (s *seat) needs() int { return max(1, s.task.Length-s.done) }

// hopeless says whether a job can no longer make its deadline from a unit on.
func (s *seat) hopeless(unit int) bool { return s.left(max(unit, s.task.Arrival)) < s.needs() }

// ranking is who competes in the unit that was decided last, and who has a slot in it.
type ranking struct {
	growth  float64 // of a level by a unit served
	unit    int
	decided bool // some unit was
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

// levelOf is the level at which a job competes: that of a job that has had all
// the time it asked for is 0, and it goes on only where a slot is left.
func (r *ranking) levelOf(s *seat) float64 {
	if s.done >= s.task.Length {
		return 0
	}
	return min(s.task.Value/s.task.area()*math.Pow(r.growth, float64(s.done-s.lag)), math.MaxFloat64)
}

// count adds the units since the last decision, if it is for another one, to
// those of the jobs that had slots in them. It comes once before each decision.
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

// price is what a slot costs for the unit, in credits: the level of the best
// that has none.
func (r *ranking) price() float64 {
	if at := slices.IndexFunc(r.seats, func(s *seat) bool { return !s.holds }); at >= 0 {
		return r.seats[at].level
	}
	return 0
}

// enough is the value with which a job with as much done would rank level with
// the last that leaves it enough slots; 0 if there is none.
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
