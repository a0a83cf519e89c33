package highestbid

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
)

// standing is one class of a view, decided. Bidders are numbered as the jobs
// of the view.
type standing struct {
	config  *Config
	view    *mechanism.View
	class   int
	auction *auction
}

// stand decides on a class, given the jobs by seniority.
func (c *Mechanism) stand(view *mechanism.View, order []int, class int) *standing {
	s := &standing{&c.config, view, class, newAuction(c.config.Rule, view.Classes[class].Slots)}
	s.auction.reserve(len(view.Jobs))
	for _, i := range order {
		job := view.Jobs[i]
		running, others := job.Running[class], job.Pending[class]+suspended(job, class)
		if running+others == 0 || spent(job) {
			continue
		}
		s.auction.arrive(int32(i), float64(job.Rate), float64(c.config.Rule.microseconds(job.Length)), running+others)
		s.auction.move(int32(i), running, -running)
	}
	s.auction.settled()
	s.auction.decide()
	return s
}

func suspended(job *mechanism.Job, class int) int {
	if job.Suspended == nil {
		return 0
	}
	return job.Suspended[class]
}

func (s *standing) tariff() mechanism.Tariff {
	t := mechanism.Tariff{Basis: s.auction.basis(s.config.Rule)}
	if t.Basis == mechanism.AtLevel {
		best := s.view.Jobs[s.auction.waiting.first()]
		t.Rate = best.Rate
		if s.config.Rule.byLength() {
			t.Length = best.Length
		}
	}
	return t
}

// price is what Allocation.Prices shows.
func (s *standing) price() float64 {
	switch t := s.tariff(); {
	case t.Basis == mechanism.AtLevel && s.config.Rule.byLength():
		return t.Rate.Float() / t.Length.Seconds()
	case t.Basis == mechanism.AtLevel:
		return t.Rate.Float()
	case t.Basis == mechanism.OwnBid:
		worst := s.worst()
		if worst >= 0 {
			return s.view.Jobs[worst].Rate.Float()
		}
	}
	return s.config.Reserve.Float()
}

// worst is the job that has slots with the lowest bid; −1: none has.
func (s *standing) worst() int {
	worst := int32(-1)
	for i := range s.view.Jobs {
		if s.auction.bidders[i].running > 0 && (worst < 0 || s.auction.better(worst, int32(i))) {
			worst = int32(i)
		}
	}
	return int(worst)
}

// directives appends what leads from the slots that jobs have to those they
// should have: suspensions first.
func (s *standing) directives(list []mechanism.Directive) []mechanism.Directive {
	for _, i := range s.auction.changed {
		if n := s.view.Jobs[i].Running[s.class] - s.auction.bidders[i].running; n > 0 {
			list = append(list, s.directive(int(i), mechanism.Suspend, n))
		}
	}
	for _, i := range s.auction.changed {
		resume, start := s.gains(int(i))
		if resume > 0 {
			list = append(list, s.directive(int(i), mechanism.Resume, resume))
		}
		if start > 0 {
			list = append(list, s.directive(int(i), mechanism.Start, start))
		}
	}
	return list
}

func (s *standing) directive(i int, action mechanism.Action, slots int) mechanism.Directive {
	return mechanism.Directive{Job: s.view.Jobs[i].Job, Action: action, Slots: slots, Class: s.class}
}

// gains is how many tasks of a job are to be resumed, and how many to start.
func (s *standing) gains(i int) (resume, start int) {
	job := s.view.Jobs[i]
	n := s.auction.bidders[i].running - job.Running[s.class]
	if n <= 0 {
		return 0, 0
	}
	resume = min(n, suspended(job, s.class))
	return resume, n - resume
}

// weigh fills in the class's column of the weights.
func (s *standing) weigh(weights [][]float64) {
	total := 0
	for _, i := range s.auction.changed {
		_, start := s.gains(int(i))
		total += start
	}
	for _, i := range s.auction.changed {
		if _, start := s.gains(int(i)); start > 0 {
			weights[i][s.class] = float64(start) / float64(total)
		}
	}
	if best := s.next(); total == 0 && best >= 0 {
		weights[best][s.class] = 1
	}
}

// next is the best job with a task pending that gets no slot; −1: there is none.
func (s *standing) next() int {
	best := int32(-1)
	for i, job := range s.view.Jobs {
		if job.Pending[s.class] > 0 && s.auction.bidders[i].waiting > 0 && (best < 0 || s.auction.better(int32(i), best)) {
			best = int32(i)
		}
	}
	return int(best)
}

// spend adds what each job will pay for its slots in a second.
func (s *standing) spend(rates []float64) {
	t := s.tariff()
	for i, job := range s.view.Jobs {
		if n := s.auction.bidders[i].running; n > 0 {
			rates[i] += float64(n) * s.config.Rule.PriceOf(t, s.config.Reserve, job.Rate, job.Length)
		}
	}
}
