package contract

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
)

// schedule says when the job would complete. It has one of three forms. The first is a list with a completion time for
// each surrogate. The second is a problem of package deadlineaware that contains the job. The third is the deadlines of
// other jobs, which are served in the order of their deadlines.
type schedule struct {
	Completion []float64 `json:"completion,omitempty"`

	DeadlineAware *deadlineaware.Document `json:"deadline_aware,omitempty"`
	Job           *int                    `json:"job,omitempty"` // the job's index in DeadlineAware; default 0

	Slots  *float64 `json:"slots,omitempty"` // default 1
	Demand float64  `json:"demand,omitempty"`
	Jobs   []Other  `json:"jobs,omitempty"`
}

func (s *schedule) box() (Scheduler, error) {
	simple := s.Slots != nil || s.Demand != 0 || s.Jobs != nil
	if count(s.Completion != nil, s.DeadlineAware != nil, simple) > 1 {
		return nil, casefile.Invalid("schedule", "give either completion, or deadline_aware, or slots, demand and jobs")
	}
	if s.Job != nil && s.DeadlineAware == nil {
		return nil, casefile.Invalid("schedule.job", "can be used only together with deadline_aware: leave it out")
	}
	switch {
	case s.Completion != nil:
		return Fixed(s.Completion), nil
	case s.DeadlineAware != nil:
		return s.deadlineAware()
	}
	return EarliestDeadline(casefile.Or(s.Slots, 1), s.Demand, s.Jobs)
}

func (s *schedule) deadlineAware() (Scheduler, error) {
	const place = "schedule.deadline_aware"
	p, err := s.DeadlineAware.Problem()
	if err != nil {
		return nil, within(place, err)
	}
	job := casefile.Or(s.Job, 0)
	if job < 0 || job >= len(p.Jobs) {
		return nil, casefile.Invalid("schedule.job", "must be the index of one of the %d jobs of deadline_aware, is %d", len(p.Jobs), job)
	}
	return DeadlineAware(p, job), nil
}
