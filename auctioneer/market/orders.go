package market

import (
	"slices"

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
	// Gangs: it keeps the tasks of a gang together.
	Gangs bool
	// Spans: a job has its slots for its declared length and no longer.
	Spans bool
	// Plans: it plans with how long tasks are likely to run.
	Plans bool
}

// Orders are what the last allocation said beside weights.
type Orders struct {
	Directives []mechanism.Directive
	Tariffs    []mechanism.Tariff // by class; none: it does not charge by time
}

// Progress is how far a job has come. Slices are by class.
type Progress struct {
	Started   messages.Time
	Pending   []int // tasks that could be claimed
	Running   []int // tasks claimed, but for those suspended or about to end
	Suspended []int // nil: none
	Done      int
	Budget    *messages.Credits // what is left of it; nil: as declared
	// Ordered is how many slots were given to the job for good, from OrderedAt
	// on; nil: none. The mechanism is shown them as taken.
	Ordered   []int
	OrderedAt messages.Time
}

// same says whether p is as far; Done and Started follow from the counts.
func (e *entry) same(p *Progress) bool {
	return slices.Equal(e.Pending, p.Pending) && slices.Equal(e.Running, p.Running) &&
		slices.Equal(e.Suspended, p.Suspended) && slices.Equal(e.Ordered, p.Ordered)
}

// become takes over how far a job has come.
func (e *entry) become(p Progress) {
	e.Progress, e.hidden, e.claims = p, nil, nil
	e.job.Pending, e.job.Running, e.job.Suspended = p.Pending, p.Running, p.Suspended
	e.job.Started, e.job.Done = p.Started, p.Done
	if p.Budget != nil {
		e.job.Budget = *p.Budget
	}
	if p.Ordered == nil {
		return
	}
	e.job.Pending, e.job.Running = slices.Clone(p.Pending), slices.Clone(p.Running)
	for k, n := range p.Ordered {
		if n > 0 {
			e.job.Pending[k], e.job.Running[k] = 0, max(n, p.Running[k])
		}
	}
}

// permit works out from the directives how many tasks may be claimed, of jobs of
// which that may have changed.
func (m *Market) permit(now messages.Time, jobs []*entry) {
	if !m.manner.Directs {
		return
	}
	for _, e := range jobs {
		copy(e.most, e.Running)
		for k, n := range e.Ordered {
			switch {
			case n == 0:
			case e.OrderedAt <= now:
				e.most[k] = n
			case m.wake == 0 || e.OrderedAt < m.wake:
				m.wake = e.OrderedAt
			}
		}
		if e.Ordered == nil && e.job.Width > 1 { // a gang that has begun to gather goes on
			for k, n := range e.Running {
				if n > 0 {
					e.most[k] = n + e.Pending[k]
				}
			}
		}
	}
	if !m.manner.Commits {
		m.direct(now)
	}
	for _, e := range jobs {
		m.count(e)
	}
}

// direct carries the directives out.
func (m *Market) direct(now messages.Time) {
	m.directed = m.directed[:0]
	for _, d := range m.orders.Directives {
		e := m.number[d.Job]
		if e == nil {
			continue
		}
		m.directed = append(m.directed, d.Job)
		switch most := &e.most[d.Class]; {
		case d.Action == mechanism.Start && d.At <= now:
			*most += max(d.Slots, 1)
		case d.Action == mechanism.Suspend && d.Slots == 0:
			*most = 0
		case d.Action == mechanism.Suspend:
			*most = max(0, *most-d.Slots)
		}
		m.count(e)
	}
}

// count keeps the sums of what could be claimed.
func (m *Market) count(e *entry) {
	for k, was := range e.counted {
		e.counted[k] = e.open(k)
		m.open[k] += e.counted[k] - was
	}
}

// open is how many tasks of a class could be claimed.
func (e *entry) open(k int) int {
	if e.most == nil {
		return e.job.Pending[k]
	}
	return min(e.Pending[k], max(0, e.most[k]-e.Running[k]))
}

// pull is the weight with which a class's slots are drawn to the job.
func (e *entry) pull(k int) float64 {
	if e.most == nil {
		return e.share[k]
	}
	return float64(e.open(k))
}

// Directs says whether tasks may be claimed only as the mechanism orders.
func (m *Market) Directs() bool { return m.manner.Directs }

// Attentive says whether the mechanism decides about all changes.
func (m *Market) Attentive() bool { return m.manner.Attentive }

// Commits says whether the mechanism's word is final.
func (m *Market) Commits() bool { return m.manner.Commits }

// Orders are what the last allocation said. They are valid until the next.
func (m *Market) Orders() Orders { return m.orders }

// Most is how many claims of class k a job may come to have.
func (m *Market) Most(id messages.JobID, k int) int {
	if e := m.number[id]; e != nil && e.most != nil {
		return e.most[k]
	}
	return 0
}

// Hide has the mechanism decide as if n of a job's suspended tasks were not
// there, until the job's progress is put again or Reveal is called.
func (m *Market) Hide(id messages.JobID, k, n int) {
	e := m.number[id]
	if e == nil || e.Suspended == nil {
		return
	}
	if e.hidden == nil {
		e.hidden = make([]int, len(e.Suspended))
		e.job.Suspended = slices.Clone(e.Suspended)
		m.hidden = append(m.hidden, e)
	}
	m.change(e)
	e.hidden[k] += n
	e.job.Suspended[k] = max(0, e.Suspended[k]-e.hidden[k])
}

// Reveal ends what Hide said.
func (m *Market) Reveal() {
	for _, e := range m.hidden {
		if e.hidden != nil {
			e.hidden, e.job.Suspended = nil, e.Suspended
			m.change(e)
		}
	}
	m.hidden = m.hidden[:0]
}

// Charge tells the mechanism what jobs owe for their slots so far, and for how
// long they have had them: all, or those it asks about.
func (m *Market) Charge(used func(messages.JobID) (messages.Credits, messages.Duration)) {
	m.view.Charge = func(job *mechanism.Job) {
		if job.Started != 0 {
			job.Accrued, job.Received = used(job.Job)
		}
	}
	if _, asks := m.mech.(mechanism.Incremental); !asks {
		for _, job := range m.view.Jobs {
			m.view.Read(job)
		}
	}
}

// Charged tells what one job owes for its slots so far, and for how long it has had
// them.
func (m *Market) Charged(id messages.JobID, cost messages.Credits, slotTime messages.Duration) {
	if e := m.number[id]; e != nil && e.Started != 0 {
		e.job.Accrued, e.job.Received = cost, slotTime
	}
}

// Stalled has the market decide again at the next occasion.
func (m *Market) Stalled() { m.stale = true }

// Job returns a job as the mechanism sees it, nil if it is not there.
func (m *Market) Job(id messages.JobID) *mechanism.Job {
	if e := m.number[id]; e != nil {
		return e.job
	}
	return nil
}

// SettleAt is when a job that has ended is to be settled; 0: at once.
func (m *Market) SettleAt(job *mechanism.Job, end mechanism.End) messages.Time {
	if d, ok := m.mech.(mechanism.Deferred); ok {
		return d.SettleAt(job, end)
	}
	return 0
}

// Quote asks a mechanism that sells contracts for the menu of a job.
func (m *Market) Quote(now messages.Time, bid *mechanism.Bid, class []messages.Valuation, seed uint64) (*mechanism.Quote, error) {
	q, ok := m.mech.(mechanism.Quoter)
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "market: %s sells no contracts; its jobs are submitted without a quote", m.Config.Name)
	}
	m.view.Now = now
	return q.Quote(&m.view, bid, class, seed)
}
