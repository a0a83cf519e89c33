package market

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Orders are the decisions of the last allocation, except the weights.
type Orders struct {
	Directives []mechanism.Directive
	Tariffs    []mechanism.Tariff // by class; empty if the mechanism does not charge by time
}

// directives are the last orders of a mechanism. The type computes how many tasks of each job may be claimed under
// these orders.
type directives struct {
	manner  mechanism.Manner
	orders  Orders
	named   []*entry // the job of each directive; nil if the job is gone
	scratch []*entry // memory for the result of the method touched
	roster  *roster
}

// permit computes for each job how many of its tasks may be claimed now. Some of these numbers change as time passes.
// permit returns the earlier of two times: the time of the next such change, and the argument `wake`.
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
		if e.Ordered == nil && e.job.Gang() { // a gang that has begun to gather slots may continue
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

// direct applies the directives of the last allocation: it changes how many tasks of each job may be claimed.
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

// Orders returns the decisions of the last allocation. The result is valid until the next allocation.
func (s *directives) Orders() Orders { return s.orders }

// touched returns two kinds of jobs: jobs that have changed since the last allocation, and jobs that are named by a
// directive of the last allocation.
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
