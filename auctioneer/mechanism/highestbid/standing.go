package highestbid

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// standing is one class of a live market: the jobs with slots in it, and the jobs that wait. The method decide changes
// it to show which jobs should have slots, and the method undo changes it back. A bidder of the auction and the seat of
// the same job in the roster have the same number.
type standing struct {
	*roster
	class   int
	auction *auction
	pending heap // bidders with tasks that could be claimed, the best first
}

func newStanding(r *roster, class int) *standing {
	s := &standing{roster: r, class: class, auction: newAuction(r.rule, 0)}
	s.auction.ranks = true
	s.pending.ties = s.auction.firstOf
	return s
}

// enter adds a job as a bidder that has no slots and wants none.
func (s *standing) enter(id int32, job *mechanism.Job) {
	s.auction.arrive(id, float64(job.Rate), float64(s.rule.microseconds(job.Length)), 0, job.Width)
	b := &s.auction.bidders[id]
	b.since, b.order = job.Arrived, uint64(job.Job)
}

// put sets the slots that a job has and wants. If `out` is true, the job does not bid.
func (s *standing) put(id int32, job *mechanism.Job, out bool) {
	if out {
		s.auction.set(id, 0, 0, 0)
		s.pending.keep(id, 0, false)
		return
	}
	s.auction.set(id, job.Running[s.class], job.Pending[s.class]+suspended(job, s.class), stuck(job, s.class)+nowhere(job, s.class))
	s.pending.keep(id, -s.auction.bidders[id].key, job.Pending[s.class] > nowhere(job, s.class))
}

func suspended(job *mechanism.Job, class int) int {
	if job.Suspended == nil {
		return 0
	}
	return job.Suspended[class]
}

func stuck(job *mechanism.Job, class int) int {
	if job.Stuck == nil {
		return 0
	}
	return job.Stuck[class]
}

func nowhere(job *mechanism.Job, class int) int {
	if job.Nowhere == nil {
		return 0
	}
	return job.Nowhere[class]
}

func (s *standing) decide(slots int) {
	s.auction.settled()
	s.auction.nodes = slots
	s.auction.decide()
}

// tariff returns the tariff of the class after the last decision.
func (s *standing) tariff() mechanism.Tariff {
	t := mechanism.Tariff{Basis: s.auction.basis(s.rule)}
	if t.Basis != mechanism.AtLevel {
		return t
	}
	best := s.seats[s.auction.waiting.first()].job
	if t.Rate = best.Rate; s.rule.byLength() {
		t.Length = best.Length
	}
	return t
}

// price returns the price that Allocation.Prices shows for this class.
func (s *standing) price() float64 {
	switch t := s.tariff(); {
	case t.Basis == mechanism.AtLevel && s.rule.byLength():
		return t.Rate.Float() / t.Length.Seconds()
	case t.Basis == mechanism.AtLevel:
		return t.Rate.Float()
	case t.Basis == mechanism.OwnBid && !s.auction.running.empty():
		return s.seats[s.auction.running.first()].job.Rate.Float()
	}
	return s.reserve.Float()
}

// directives appends the directives that follow from a decision to a list. They suspend, resume and start tasks, until
// each job has the slots that the decision gave it. Directives that suspend tasks come first.
func (s *standing) directives(list []mechanism.Directive) []mechanism.Directive {
	for _, id := range s.auction.changed {
		if n := s.seats[id].job.Running[s.class] - int(s.auction.bidders[id].running); n > 0 {
			list = append(list, s.directive(id, mechanism.Suspend, n))
		}
	}
	for _, id := range s.auction.changed {
		resume, start := s.gains(id)
		if resume > 0 {
			list = append(list, s.directive(id, mechanism.Resume, resume))
		}
		if start > 0 {
			list = append(list, s.directive(id, mechanism.Start, start))
		}
	}
	return list
}

func (s *standing) directive(id int32, action mechanism.Action, slots int) mechanism.Directive {
	return mechanism.Directive{Job: s.seats[id].job.Job, Action: action, Slots: slots, Class: s.class}
}

// gains returns how many slots a job gets by the decision: slots on which suspended tasks are resumed, and slots on
// which tasks are started.
func (s *standing) gains(id int32) (resume, start int) {
	job := s.seats[id].job
	n := int(s.auction.bidders[id].running) - job.Running[s.class]
	if n <= 0 {
		return 0, 0
	}
	resume = min(n, suspended(job, s.class)-stuck(job, s.class))
	return resume, n - resume
}

// The method `next` returns the job whose pending task gets the next free slot. It returns 0 if there is no such job,
// or if a suspended task gets the slot.
func (s *standing) next() messages.JobID {
	a := s.auction
	if a.waiting.empty() || a.wide { // if some tasks need several slots, a bidder that is not the first may get the slot
		return 0
	}
	id := a.waiting.first()
	job := s.seats[id].job
	if a.bidders[id].free() == 0 || suspended(job, s.class) > stuck(job, s.class) {
		return 0
	}
	return job.Job
}

// weigh gives weights to the jobs whose pending tasks get slots by the decision. For each of these jobs, it calls the
// function `weight` with the fraction of these slots that the job gets. If no pending task gets a slot, the first job
// with pending tasks gets the weight 1.
func (s *standing) weigh(weight func(id int32, class int, part float64)) {
	total := 0
	for _, id := range s.auction.changed {
		_, start := s.gains(id)
		total += start
	}
	if total == 0 && !s.pending.empty() {
		weight(s.pending.first(), s.class, 1)
		return
	}
	for _, id := range s.auction.changed {
		if _, start := s.gains(id); start > 0 {
			weight(id, s.class, float64(start)/float64(total))
		}
	}
}
