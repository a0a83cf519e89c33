package market

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// MostForked is the largest number of jobs in a market for which what-if questions are answered.
const MostForked = 20_000

// Fork is a copy of a market in which one job has another bid. In the copy, a new instance of the mechanism decides on
// the same view as in the market. This does not change the market, and the market may itself decide at the same time.
type Fork struct {
	market *Market
	job    messages.JobID
}

// Users can ask what would happen with another bid. Bids returns the field of a bid that decides how much a job gets:
// market.TermBudget or market.TermRate. If the market does not allow such questions, Bids returns "" and the reason.
func Bids(m *market.Market) (term, why string) {
	switch t := registry.Of(m); {
	case t.Unasked != "":
		return "", t.Unasked
	case t.Tells == mechanism.Queue:
		return "", "no bid decides in a " + m.Mechanism + " market, so another bid would change nothing"
	case t.Tells == mechanism.Secret:
		return "", "bids in a " + m.Mechanism + " market are sealed, and an answer would reveal the bids of others; the best bid is what the job is worth to you"
	default:
		return t.Decides, ""
	}
}

// Fork copies the market, and raises the bid of one job in the copy by the amount `more`. If the result may not be
// disclosed, Fork returns nil and the reason.
func (s Seen) Fork(now messages.Time, id messages.JobID, more messages.Credits) (*Fork, string) {
	term, why := Bids(&s.Config)
	e := s.number.get(id)
	switch {
	case term == "":
		return nil, why
	case e == nil:
		return nil, "the job was submitted just now; ask again"
	case len(s.jobs) > MostForked:
		return nil, "the market has too many jobs to work this out"
	case s.hides(e):
		return nil, "only one other account bids or waits here, and an answer would reveal its bid"
	}
	f := New(s.manner, s.Config, nil)
	slots, idle := make([]int, len(s.classes)), make([]int, len(s.classes))
	for k, c := range s.view.Classes {
		slots[k], idle[k] = c.Slots, c.Idle
	}
	f.SetSlots(now, slots, idle)
	for k := range s.view.Classes {
		f.view.Classes[k].Closings = s.view.Classes[k].Closings
	}
	// One allocation of memory holds the copies of all bids. This is faster than one for each bid, and the leader waits
	// while this function runs. The copy and the market share the lists of a Progress, because these lists do not
	// change.
	bids := make([]mechanism.Bid, len(s.jobs))
	f.jobs, f.view.Jobs = make([]*entry, 0, len(s.jobs)), make([]*mechanism.Job, 0, len(s.jobs))
	for i, o := range s.jobs {
		p, job := o.progress(), o.job
		if bids[i] = *o.job.Bid; o == e {
			raise(&bids[i], &p, term, more)
		}
		job.Bid, job.Stuck = &bids[i], nil // Stuck changes later, so the copy must not share it
		f.add(now, job, p, s.manner)
		if o.front != nil {
			g := f.number.get(job.Job)
			g.own().front = slices.Clone(o.front)
			g.countStuck()
		}
	}
	return &Fork{f, id}, ""
}

// With returns another fork of the same market, in which the job's bid is higher by the amount `more`. Call With before
// f decides, and before the new fork decides.
func (f *Fork) With(now messages.Time, more messages.Credits) *Fork {
	g, _ := f.market.SeenBy("", true).Fork(now, f.job, more) // Fork has already accepted this job, so it does not refuse now
	return g
}

// raise adds an amount to a bid: to its rate if `term` is TermRate, and otherwise to its budget.
func raise(bid *mechanism.Bid, p *Progress, term string, more messages.Credits) {
	switch {
	case term == market.TermRate:
		bid.Rate += more
	case p.Budget != nil:
		left := *p.Budget + more
		p.Budget = &left
	default:
		bid.Budget += more
	}
}

// hides reports whether a user must not learn what a higher bid would change. A user must not learn it if the outcome
// would disclose the bid of the only other account.
func (s Seen) hides(e *entry) bool {
	if s.all {
		return false
	}
	for k := range s.classes {
		if e.pending()[k]+e.running()[k]+suspended(e, k) > 0 && s.sealed(k) {
			return true
		}
	}
	return mechanism.OneRival(&s.view, &e.job)
}

// Decide makes the mechanism decide, and returns what the job gets. It returns an error if the market would not accept
// the bid.
func (f *Fork) Decide(now messages.Time) (out market.BidOutcome, err error) {
	m := f.market
	if m.mech, err = registry.Make(m.Config); err != nil {
		return out, err
	}
	e := m.number.get(f.job)
	if err = m.Admit(now, e.job.Bid); err != nil {
		return out, err
	}
	m.Allocate(now)
	x, _ := m.Explain(now, f.job)
	out.Reason, out.Message = x.Reason, x.Message
	for k, c := range m.view.Classes {
		if e.pending()[k]+e.running()[k]+suspended(e, k) == 0 {
			continue
		}
		share := m.shares(e)[k].Now
		if e.most != nil && c.Slots > 0 {
			share = float64(f.directed(e, k)) / float64(c.Slots)
		}
		out.Classes = append(out.Classes, market.ClassBidOutcome{Class: c.Name, Share: share, Slots: share * float64(c.Slots), Price: m.prices[k], PerSecond: m.perSecond(k)})
	}
	return out, nil
}

// directed returns how many slots of a class the job would have when the mechanism's directives have been carried out.
func (f *Fork) directed(e *entry, k int) int {
	n := min(e.most[k], e.running()[k]+e.pending()[k])
	for _, d := range f.market.orders.Directives {
		if d.Job == f.job && d.Class == k && d.Action == mechanism.Resume {
			if n += d.Slots; d.Slots == 0 {
				n += suspended(e, k)
			}
		}
	}
	return n
}
