package market

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Manner is how a market deals with its mechanism.
type Manner struct {
	// Attentive: the mechanism is to decide whenever any number of the view has
	// changed, not just who bids and how many slots there are.
	Attentive bool
	// Directs: tasks may be claimed only as its directives say.
	Directs bool
	// Commits: its word that a job starts, or does not run, is final, and what
	// that costs is settled at once.
	Commits bool
	// Gangs: the mechanism keeps the tasks of a gang together.
	Gangs bool
	// Spans: a job has its slots for its declared length and no longer.
	Spans bool
	// Stays: what others owe depends on a job from when it bids until it ends, so that it
	// cannot be put on hold meanwhile.
	Stays bool
	// Raises says which terms of a bid may be raised once it was taken; none may be lowered,
	// and the others stay. Each mechanism's doc says why.
	Raises Terms
	// Plans: the mechanism plans with the likely run times of tasks.
	Plans bool
	// Order compares two jobs by who gets a slot first, where that never changes and the
	// mechanism heeds [mechanism.Job].Stuck; nil: neither.
	Order func(x, y *mechanism.Job) int
}

// Terms are terms of a bid.
type Terms struct {
	Budget bool
	Rate   bool // as long as no task has been started
}

// Orders are what the last allocation said beside weights.
type Orders struct {
	Directives []mechanism.Directive
	Tariffs    []mechanism.Tariff // by class; none: it does not charge by time
}

// directives are what a mechanism ordered last, and what may be claimed by that.
type directives struct {
	manner  Manner
	orders  Orders
	named   []*entry // by directive: its job; nil: it is gone
	scratch []*entry // of touched
	roster  *roster
}

// permit works out how many tasks of some jobs may be claimed. It returns when that
// changes by itself, wake or earlier.
func (s *directives) permit(now, wake messages.Time, jobs []*entry) messages.Time {
	s.named = s.named[:0]
	for _, d := range s.orders.Directives {
		s.named = append(s.named, s.roster.number.get(d.Job))
	}
	if !s.manner.Directs {
		return wake
	}
	for _, e := range jobs {
		copy(e.most, e.running())
		for k, n := range e.Ordered {
			switch {
			case n == 0:
			case e.OrderedAt <= now:
				e.most[k] = n
			default:
				wake = messages.Earlier(wake, e.OrderedAt)
			}
		}
		if e.Ordered == nil && e.job.Width > 1 { // a gang that has begun to gather goes on
			for k, n := range e.running() {
				if n > 0 {
					e.most[k] = n + e.pending()[k]
				}
			}
		}
	}
	if !s.manner.Commits {
		s.direct(now)
	}
	for _, e := range jobs {
		s.roster.count(e)
	}
	return wake
}

// direct carries the directives out.
func (s *directives) direct(now messages.Time) {
	for i, d := range s.orders.Directives {
		e := s.named[i]
		if e == nil {
			continue
		}
		switch most := &e.most[d.Class]; {
		case d.Action == mechanism.Start && d.At <= now:
			*most += max(d.Slots, 1)
		case d.Action == mechanism.Suspend && d.Slots == 0:
			*most = 0
		case d.Action == mechanism.Suspend:
			*most = max(0, *most-d.Slots)
		}
		s.roster.count(e)
	}
}

// Orders are what the last allocation said. They are valid until the next.
func (s *directives) Orders() Orders { return s.orders }

// touched are the jobs that have changed, and the jobs that the last allocation
// directed.
func (s *directives) touched() []*entry {
	if !s.manner.Directs {
		return nil
	}
	s.scratch = append(s.scratch[:0], s.roster.told...)
	for _, e := range s.named {
		if e != nil && !e.gone && !e.told {
			s.scratch = append(s.scratch, e)
		}
	}
	return s.scratch
}
