package market

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Orders are what the last allocation decided in addition to weights.
type Orders struct {
	Directives []mechanism.Directive
	Tariffs    []mechanism.Tariff // by class; none: it does not charge by time
}

// directives are what a mechanism last ordered, and the claims that this allows.
type directives struct {
	manner  mechanism.Manner
	orders  Orders
	named   []*entry // by directive: its job; nil: it is gone
	scratch []*entry // memory for the entries of touched
	roster  *roster
}

// permit computes how many tasks of some jobs may be claimed. It returns the time at which this
// number changes without an event, at the latest wake.
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
		if e.Ordered == nil && e.job.Width > 1 && e.job.Alone == 0 { // a job that has begun to gather may continue
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

// direct carries out the directives.
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

// Orders returns what the last allocation decided. The result is valid until the next allocation.
func (s *directives) Orders() Orders { return s.orders }

// touched returns the jobs that have changed, and the jobs that the last allocation directed.
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
