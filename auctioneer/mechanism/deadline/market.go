package deadline

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Mechanism runs a live market. It implements mechanism.Mechanism, and
// mechanism.Deferred and mechanism.Remembering.
type Mechanism struct {
	config  Config
	growth  float64 // of a level by a unit served
	unit    int     // that was decided last
	decided bool
	seats   map[messages.JobID]*seat // of the jobs of the view
	ranking []*seat                  // those that compete in the unit, best first
	taken   int                      // how many of them are served
	slots   int
	past    history
	memory  memory
}

// seat is a job in units of time.
type seat struct {
	job   *mechanism.Job
	task  Task
	done  int // units it has had
	level float64
	rank  int  // −1: does not compete
	met   bool // in some unit since its arrival not all that competed had slots

	// As of the last decision: for how long the job has had its slot without a
	// break, and what it had had before.
	base  int
	since int // unit; only while it has one
	told  []int64
}

// NewMechanism makes the mechanism of a market, with its parameters.
func NewMechanism(c Config) (*Mechanism, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	return &Mechanism{config: c, growth: 1 + *c.Lambda/c.Scale, seats: map[messages.JobID]*seat{},
		past: newHistory(), memory: newMemory()}, nil
}

var (
	_ mechanism.Deferred    = (*Mechanism)(nil)
	_ mechanism.Remembering = (*Mechanism)(nil)
)

// micros is the length of a unit in the steps of messages.Time.
func (m *Mechanism) micros() int64 { return int64(m.config.Slot) / 1000 }

// starts is when a unit starts.
func (m *Mechanism) starts(unit int) messages.Time { return messages.Time(int64(unit) * m.micros()) }

// unitOf is the unit that contains an instant.
func (m *Mechanism) unitOf(t messages.Time) int {
	unit := int64(t) / m.micros()
	if int64(t)%m.micros() < 0 {
		unit--
	}
	return int(unit)
}

// taskOf puts a bid in units: the first whole one after it came, the last that
// ends by its deadline, and as many as its length takes.
func (m *Mechanism) taskOf(bid *mechanism.Bid) Task {
	length := int64(bid.Length) / 1000
	return Task{
		Arrival:  m.unitOf(bid.Arrived-1) + 1,
		Deadline: m.unitOf(bid.Deadline) - 1,
		Length:   max(1, int((length+m.micros()-1)/m.micros())),
		Value:    bid.Value.Float(),
	}
}

// Admit refuses a bid that this market cannot rank, and one that can no longer
// make its deadline.
func (m *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Value <= 0 || bid.Value > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "value: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Value)
	case bid.Budget < bid.Value:
		return messages.Errorf(messages.Invalid, "budget: must cover the value, %v credits, which is the most the job may have to pay; is %v", bid.Value, bid.Budget)
	case bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0: say how long the job runs")
	case bid.Width > 1:
		return messages.Errorf(messages.Invalid, "width: must be 1 in this market, is %d: submit a job for each slot", bid.Width)
	}
	asked := *bid
	asked.Arrived = max(bid.Arrived, view.Now)
	t := m.taskOf(&asked)
	if t.Deadline-t.Arrival >= MostUnits || t.Length > MostUnits {
		return messages.Errorf(messages.TooLarge, "deadline: is more than %d units of %v away: choose a nearer one", MostUnits, m.config.Slot)
	}
	if t.Impossible() {
		return messages.Errorf(messages.Expired, "deadline: cannot be met: the job needs %d units of %v, and %d whole ones are left until %v; ask for a later deadline",
			t.Length, m.config.Slot, max(0, t.Deadline-t.Arrival+1), bid.Deadline)
	}
	return nil
}

// Allocate decides at the start of each unit which jobs have a slot in it. What
// it decided holds until the next unit, whoever comes or goes.
func (m *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	unit := m.unitOf(view.Now)
	m.count(unit)
	m.meet(view, unit)
	if !m.decided || unit != m.unit {
		m.decide(view, unit)
	}
	out := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: []float64{m.price()}}
	sharing := 0
	for _, s := range m.ranking[:m.taken] {
		if m.seats[s.job.Job] == s && count(s.job.Pending) > 0 {
			sharing++
		}
	}
	for i, job := range view.Jobs {
		s := m.seats[job.Job]
		out.Weights[i] = []float64{0}
		if m.holds(s) && count(job.Pending) > 0 {
			out.Weights[i][0] = 1 / float64(sharing)
		}
		if d, ok := m.direct(s); ok {
			out.Directives = append(out.Directives, d)
		}
	}
	if len(view.Jobs) > 0 {
		out.Wake = m.starts(unit + 1)
	}
	return out
}

func count(by []int) int {
	n := 0
	for _, x := range by {
		n += x
	}
	return n
}

// meet brings the seats in line with the view. A job that has left competes no
// more from the next unit that is not decided yet.
func (m *Mechanism) meet(view *mechanism.View, unit int) {
	undecided, under := unit, 0 // under way: units not counted yet
	if m.decided && unit == m.unit {
		undecided, under = unit+1, 1
	}
	present := make(map[messages.JobID]bool, len(view.Jobs))
	for _, job := range view.Jobs {
		present[job.Job] = true
		s := m.seats[job.Job]
		if s == nil {
			s = &seat{task: m.taskOf(job.Bid), rank: -1, since: -1}
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
	if by, known := m.memory.left[id]; known && by < undecided { // nobody decided when it ended
		if m.holds(s) {
			s.done = max(0, s.done-(undecided-by+1-under))
			under = 1
		}
		undecided = by
	}
	delete(m.memory.left, id)
	work := s.done
	if m.holds(s) {
		work += under
	}
	m.past.left(id, undecided, work, m.hopelessAt(s, undecided))
	m.memory.changed[id] = true
}

// decide ranks the jobs for a unit.
func (m *Mechanism) decide(view *mechanism.View, unit int) {
	for _, job := range view.Jobs {
		s := m.seats[job.Job]
		s.done = max(s.done, int(int64(job.Received)/1000/m.micros()))
	}
	m.rank(unit, max(0, view.Classes[0].Slots))
	m.past.record(m, view, unit)
	m.remember()
}

// rank gives the slots of a unit to the jobs that are worth most for what they
// still need.
func (m *Mechanism) rank(unit, slots int) {
	m.unit, m.decided, m.slots = unit, true, slots
	m.ranking = m.ranking[:0]
	for _, s := range m.seats {
		s.rank = -1
		if s.task.Arrival <= unit && m.left(s, unit) >= max(1, s.task.Length-s.done) {
			s.level = m.levelOf(s)
			m.ranking = append(m.ranking, s)
		}
	}
	slices.SortFunc(m.ranking, compareSeats)
	m.taken = min(m.slots, len(m.ranking))
	for k, s := range m.ranking {
		s.rank = k
		s.met = s.met || m.taken < len(m.ranking)
	}
}

// count adds the units since the last decision, if it is for another one, to
// those of the jobs that had slots in them. It comes once before each decision.
func (m *Mechanism) count(unit int) {
	if !m.decided || unit <= m.unit {
		return
	}
	for _, s := range m.ranking[:m.taken] {
		s.done += unit - m.unit
	}
}

// left is how many units a job has until its deadline, the given one included.
func (m *Mechanism) left(s *seat, unit int) int { return s.task.Deadline - unit + 1 }

// levelOf is the level at which a job competes: that of a job that has had all
// the time it asked for is 0, and it goes on only where a slot is left.
func (m *Mechanism) levelOf(s *seat) float64 {
	if s.done >= s.task.Length {
		return 0
	}
	return min(s.task.Value/float64(s.task.Length)*math.Pow(m.growth, float64(s.done)), math.MaxFloat64)
}

func compareSeats(a, b *seat) int {
	return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.task.Arrival, b.task.Arrival), cmp.Compare(a.job.Job, b.job.Job))
}

func (m *Mechanism) holds(s *seat) bool { return s.rank >= 0 && s.rank < m.taken }

// price is what a slot costs for the unit, in credits: the level of the best
// that has none.
func (m *Mechanism) price() float64 {
	if m.taken < len(m.ranking) {
		return m.ranking[m.taken].level
	}
	return 0
}

// direct is the order that brings a job to where it should be.
func (m *Mechanism) direct(s *seat) (mechanism.Directive, bool) {
	d := mechanism.Directive{Job: s.job.Job, Slots: 1}
	running := count(s.job.Running) > 0
	switch {
	case m.hopeless(s):
		d.Action = mechanism.Discard
	case m.holds(s) && !running && count(s.job.Suspended) > 0:
		d.Action = mechanism.Resume
	case m.holds(s) && !running && count(s.job.Pending) > 0:
		d.Action = mechanism.Start
	case !m.holds(s) && running:
		d.Action, d.Slots = mechanism.Suspend, 0
	default:
		return d, false
	}
	return d, true
}

// hopeless says whether a job can no longer make its deadline.
func (m *Mechanism) hopeless(s *seat) bool { return m.hopelessAt(s, m.unit) }

func (m *Mechanism) hopelessAt(s *seat, unit int) bool {
	return m.left(s, max(unit, s.task.Arrival)) < max(1, s.task.Length-s.done)
}
