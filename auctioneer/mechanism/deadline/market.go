package deadline

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// Mechanism runs a live market. It implements mechanism.Mechanism, mechanism.Deferred and mechanism.Remembering.
type Mechanism struct {
	config  marketmsg.Market
	units   calendar
	seats   map[messages.JobID]*seat // by job of the view
	ranking ranking
	past    history
	memory  memory
}

// Describe returns the traits of the mechanism.
func Describe(m *marketmsg.Market) mechanism.Traits {
	t := mechanism.Traits{
		Name: marketmsg.DeadlineBid, Make: mechanism.Maker(NewMechanism), Solve: SolveDocument,
		Who:        "jobs that can still meet their deadlines, by value and work done",
		Cost:       "the smallest value that was enough, if the job had its time by its deadline; outputs and logs can be read then",
		Parameters: []string{"preemption", "settle", "lambda", "slot", "scale", "hand_over"}, Bid: []string{"budget", "length", "value", "deadline"},
		Manner: mechanism.Manner{Attentive: true, Directs: true, Wide: true, Even: true, Stays: true},
		Owes:   mechanism.UpToValue, Rule: "the price is at most the value: the critical value is known at the deadline",
		AtDeadline: true, Keeps: m.HandOver != marketmsg.HandOverEnd,
		Gains: "none was found; only some of the possible commands of owners were tried",
	}
	if !t.Keeps {
		t.Gains = "a later deadline than the true one"
	}
	return t
}

// NewMechanism makes the mechanism of a valid market.
func NewMechanism(m marketmsg.Market) (*Mechanism, error) {
	c, err := prepared(m)
	if err != nil {
		return nil, err
	}
	return &Mechanism{config: c, units: calendar(c.Slot / 1000), seats: map[messages.JobID]*seat{},
		ranking: ranking{growth: 1 + *c.Lambda/c.Scale}, past: newHistory(), memory: memory{changed: map[messages.JobID]bool{}, left: map[messages.JobID]int{}}}, nil
}

var (
	_ mechanism.Deferred    = (*Mechanism)(nil)
	_ mechanism.Remembering = (*Mechanism)(nil)
)

// Admit refuses a bid that this market cannot rank, or that can no longer meet its deadline.
func (m *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Value <= 0 || bid.Value > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "value: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Value)
	case bid.Budget < bid.Value:
		return messages.Errorf(messages.Invalid, "budget: must cover the value, %s, because the job may have to pay its value; the budget is %v", bid.Value.Words(), bid.Budget)
	case bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0: say how long the job runs")
	case bid.Width > max(bid.Alone, 1):
		return messages.Errorf(messages.Invalid, "width: this market starts tasks one by one and cannot keep %d tasks together: submit a job for each slot", bid.Width)
	}
	asked := *bid
	asked.Arrived = max(bid.Arrived, view.Now)
	t := m.units.taskOf(&asked)
	if t.Deadline-t.Arrival >= MostUnits || t.Length > MostUnits {
		return messages.Errorf(messages.TooLarge, "deadline: is more than %d units of %v away: choose an earlier deadline", MostUnits, m.config.Slot)
	}
	if t.Impossible() {
		return messages.Errorf(messages.Expired, "deadline: cannot be met: the job needs %s of %v, and %s left until %v; ask for a later deadline",
			spelling.Number(t.Length, "unit", "units"), m.config.Slot, spelling.Number(max(0, t.Deadline-t.Arrival+1), "whole unit is", "whole units are"), bid.Deadline)
	}
	if left := t.Deadline - t.Arrival + 1 - m.units.closed(view, &t); left < t.Length {
		return messages.Errorf(messages.Expired, "deadline: cannot be met because of maintenance: the job needs %s of %v, and maintenance leaves %d until %v; ask for a later deadline",
			spelling.Number(t.Length, "unit", "units"), m.config.Slot, left, bid.Deadline)
	}
	return nil
}

// Allocate decides at the start of each unit which jobs have a slot in it. The decision holds until the next unit,
// whichever jobs come or go.
func (m *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	unit := m.units.unitOf(view.Now)
	m.ranking.count(unit)
	m.meet(view, unit)
	if !m.ranking.decided || unit != m.ranking.unit {
		m.decide(view, unit)
	}
	out := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: []float64{m.ranking.price()}}
	sharing := 0
	for _, s := range m.ranking.seats {
		if s.holds && m.seats[s.job.Job] == s && mechanism.Sum(s.job.Pending) > 0 {
			sharing++
		}
	}
	for i, job := range view.Jobs {
		s := m.seats[job.Job]
		out.Weights[i] = []float64{0}
		if s.holds && mechanism.Sum(job.Pending) > 0 {
			out.Weights[i][0] = 1 / float64(sharing)
		}
		if d, ok := m.direct(s); ok {
			out.Directives = append(out.Directives, d)
		}
	}
	if len(view.Jobs) > 0 {
		out.Wake = m.units.starts(unit + 1)
	}
	return out
}

// meet makes a seat for each new job of the view. A seat is the ranking's record of a job. meet also removes the seats
// of jobs that have left. A job that has left does not compete in the units of time that begin later.
func (m *Mechanism) meet(view *mechanism.View, unit int) {
	undecided, under := unit, 0 // under is 1 if the present unit has begun but is not counted yet
	if m.ranking.decided && unit == m.ranking.unit {
		undecided, under = unit+1, 1
	}
	present := make(map[messages.JobID]bool, len(view.Jobs))
	for _, job := range view.Jobs {
		present[job.Job] = true
		s := m.seats[job.Job]
		if s == nil {
			s = &seat{task: m.units.taskOf(job.Bid), rank: -1, since: -1}
			m.seats[job.Job] = s
		}
		s.job = job
	}
	for id := range m.seats {
		if !present[id] {
			m.leave(id, undecided, under)
			delete(m.seats, id)
		}
	}
}

func (m *Mechanism) leave(id messages.JobID, undecided, under int) {
	s := m.seats[id]
	if by, known := m.memory.left[id]; known && by < undecided { // the job ended while there was no leader
		if s.holds {
			s.done = max(0, s.done-(undecided-by+1-under))
			under = 1
		}
		undecided = by
	}
	delete(m.memory.left, id)
	work := s.done
	if s.holds {
		work += under
	}
	m.past.left(id, undecided, work, s.hopeless(undecided))
	m.memory.changed[id] = true
}

func (m *Mechanism) decide(view *mechanism.View, unit int) {
	for _, job := range view.Jobs {
		s := m.seats[job.Job]
		received, _ := m.units.had(job.Bid, job.Received)
		s.done = max(s.done, received)
	}
	m.ranking.decide(m.seats, unit, max(0, view.Classes[0].Slots))
	m.past.record(m, view, unit)
	m.remember()
}

// direct compares a job's present state with the ranking's decision. It returns the directive that is needed to carry
// out the decision, or false if none is needed.
func (m *Mechanism) direct(s *seat) (mechanism.Directive, bool) {
	d := mechanism.Directive{Job: s.job.Job, Slots: s.task.slots()}
	running := mechanism.Sum(s.job.Running) > 0
	switch {
	case s.hopeless(m.ranking.unit):
		d.Action = mechanism.Discard
	case s.holds && !running && mechanism.Sum(s.job.Suspended) > 0:
		d.Action = mechanism.Resume
	case s.holds && !running && mechanism.Sum(s.job.Pending) > 0:
		d.Action = mechanism.Start
	case !s.holds && running:
		d.Action, d.Slots = mechanism.Suspend, 0
	default:
		return d, false
	}
	return d, true
}
