package market

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Market is a live market. It is not safe for concurrent use.
type Market struct {
	Config messages.Market
	mech   mechanism.Mechanism
	view   mechanism.View
	jobs   []*entry // as view.Jobs
	number map[messages.JobID]*entry
	prices []float64
	stale  bool // the set of bidders or slots changed since the last allocation
	wake   messages.Time

	manner   Manner
	orders   Orders
	directed []messages.JobID // by the last allocation
	hidden   []*entry         // with tasks that the mechanism is not to count on
	open     []int            // by class: tasks that could be claimed
	changed  []*mechanism.Job // since the last allocation
	gone     []messages.JobID

	substitutes [][]messages.JobID // by class, drawn ahead
}

// entry is a job of the market.
type entry struct {
	job     *mechanism.Job
	share   []float64 // in force, by class
	ledger  []account // by class
	since   messages.Time
	learned messages.Time // when its run times were asked for; 0: never
	told    bool          // it is among the changed
	Progress
	most    []int     // by class, where the mechanism directs: claims that it may come to have
	hidden  []int     // by class: suspended tasks that the mechanism is not to count on; nil: none
	counted []int     // by class: its part of the market's open
	claims  [][]claim // by class, that go and that are suspended; nil: not read since it changed
}

// account integrates the shares of a class over the time with work pending there.
type account struct {
	allocated, received float64 // share-seconds
	seconds             float64
}

// New makes a market for a mechanism that gives weights, empty and without slots.
func New(config messages.Market, mech mechanism.Mechanism) *Market {
	return NewIn(Manner{}, config, mech)
}

// NewIn makes a market for a mechanism that is to be dealt with in some manner.
func NewIn(manner Manner, config messages.Market, mech mechanism.Mechanism) *Market {
	m := &Market{Config: config, mech: mech, manner: manner, number: map[messages.JobID]*entry{}, stale: true}
	for _, c := range config.Classes {
		m.view.Classes = append(m.view.Classes, mechanism.Class{Name: c})
	}
	m.prices, m.open = make([]float64, len(config.Classes)), make([]int, len(config.Classes))
	m.substitutes = make([][]messages.JobID, len(config.Classes))
	return m
}

// Class returns the position of a class in the market, -1 if it has none such.
func (m *Market) Class(name messages.Name) int { return slices.Index(m.Config.Classes, name) }

// Bid translates what a job declares. Its contract is what spec.Contract names.
func (m *Market) Bid(id messages.JobID, account messages.Name, at messages.Time, spec *messages.JobSpec, contract *messages.Contract) *mechanism.Bid {
	bid := &mechanism.Bid{
		Job: id, Account: account, Arrived: at, Budget: spec.Budget,
		Form: messages.Linear, Weights: make([]float64, len(m.Config.Classes)),
		Rate: spec.Rate, Value: spec.Value, Delay: spec.Delay, Length: spec.Length, Deadline: spec.Deadline, Width: spec.Width(),
		Tasks: spec.TaskCount(), Valuation: spec.Valuation, Contract: contract,
	}
	if u := spec.Utility; u != nil {
		bid.Form, bid.MinUtility = cmp.Or(u.Form, messages.Linear), u.Minimum
		for i, c := range m.Config.Classes {
			bid.Weights[i] = u.Weights.Of(c)
		}
	}
	return bid
}

// Admit asks the mechanism whether it takes a bid.
func (m *Market) Admit(now messages.Time, bid *mechanism.Bid) error {
	m.view.Now = now
	return m.mech.Admit(&m.view, bid)
}

// SetSlots says how many slots each class has and how many are idle.
func (m *Market) SetSlots(now messages.Time, slots, idle []int) {
	for i := range m.view.Classes {
		c := &m.view.Classes[i]
		if c.Slots != slots[i] {
			for _, e := range m.jobs {
				m.integrate(e, now)
			}
			m.stale = true
		}
		m.stale = m.stale || m.manner.Attentive && c.Idle != idle[i]
		c.Slots, c.Idle = slots[i], idle[i]
	}
}

// Put enters a job, or says how far it has come.
func (m *Market) Put(now messages.Time, bid func() *mechanism.Bid, id messages.JobID, p Progress) {
	e := m.number[id]
	if e == nil {
		e = &entry{
			job:     &mechanism.Job{Bid: bid()},
			share:   make([]float64, len(p.Pending)),
			ledger:  make([]account, len(p.Pending)),
			counted: make([]int, len(p.Pending)),
			since:   now,
		}
		if m.manner.Directs {
			e.most = slices.Clone(p.Running)
		}
		e.become(p)
		m.count(e)
		m.number[id] = e
		i := m.position(id)
		m.jobs = slices.Insert(m.jobs, i, e)
		m.view.Jobs = slices.Insert(m.view.Jobs, i, e.job)
		m.stale = true
		m.change(e)
		return
	}
	m.integrate(e, now)
	m.change(e)
	m.stale = m.stale || m.manner.Attentive && !e.same(&p)
	for k := range p.Pending {
		if (e.job.Pending[k] > 0) != (p.Pending[k] > 0) {
			m.stale = true
		}
	}
	e.become(p)
	m.count(e)
}

func (m *Market) change(e *entry) {
	if !e.told {
		e.told = true
		m.changed = append(m.changed, e.job)
	}
}

// Remove takes a job out and returns it with its average shares, nil if it was
// not there.
func (m *Market) Remove(now messages.Time, id messages.JobID) (*mechanism.Job, []messages.ClassShare) {
	e := m.number[id]
	if e == nil {
		return nil, nil
	}
	delete(m.number, id)
	m.integrate(e, now)
	for k, n := range e.counted {
		m.open[k] -= n
	}
	i := m.position(id)
	m.jobs = slices.Delete(m.jobs, i, i+1)
	m.view.Jobs = slices.Delete(m.view.Jobs, i, i+1)
	m.stale = true
	m.gone = append(m.gone, id)
	return e.job, m.shares(e)
}

// Settle asks the mechanism what a job that has ended owes.
func (m *Market) Settle(now messages.Time, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	m.view.Now = now
	return m.mech.Settle(&m.view, job, end)
}

// Stale says whether Allocate has something to decide at this time.
func (m *Market) Stale(now messages.Time) bool { return m.stale || m.wake != 0 && now >= m.wake }

// Wake is when to allocate again though nothing changed; 0: not before a change.
func (m *Market) Wake() messages.Time { return m.wake }

// Allocate asks the mechanism to decide, of one that can decide about changes
// alone just those.
func (m *Market) Allocate(now messages.Time) {
	m.view.Now = now
	if mech, ok := m.mech.(mechanism.Incremental); ok {
		m.update(now, mech)
	} else {
		a := m.mech.Allocate(&m.view)
		for i, e := range m.jobs {
			m.enforce(now, e, a.Weights[i])
		}
		copy(m.prices, a.Prices)
		m.wake = a.Wake
		m.orders = Orders{Directives: a.Directives, Tariffs: a.Tariffs}
		m.permit(now, m.jobs)
	}
	for _, job := range m.changed {
		if e := m.number[job.Job]; e != nil {
			e.told = false
		}
	}
	m.stale, m.changed, m.gone = false, m.changed[:0], m.gone[:0]
	for i := range m.substitutes {
		m.substitutes[i] = nil
	}
}

func (m *Market) update(now messages.Time, mech mechanism.Incremental) {
	present := m.changed[:0]
	for _, job := range m.changed {
		if m.number[job.Job] != nil {
			present = append(present, job)
		}
	}
	m.changed = present
	c := mech.Update(&m.view, m.changed, m.gone)
	for i, job := range c.Jobs {
		if e := m.number[job.Job]; e != nil {
			m.enforce(now, e, c.Weights[i])
		}
	}
	copy(m.prices, c.Prices)
	m.wake = c.Wake
	m.orders = Orders{Directives: c.Directives, Tariffs: c.Tariffs}
	m.permit(now, m.touched())
}

// touched are the jobs that have changed, and those that the last allocation
// directed.
func (m *Market) touched() (out []*entry) {
	if !m.manner.Directs {
		return nil
	}
	for _, job := range m.changed {
		if e := m.number[job.Job]; e != nil {
			out = append(out, e)
		}
	}
	for _, id := range m.directed {
		if e := m.number[id]; e != nil {
			out = append(out, e)
		}
	}
	return out
}

func (m *Market) enforce(now messages.Time, e *entry, share []float64) {
	m.integrate(e, now)
	copy(e.share, share)
}

// integrate accounts for the shares that were in force since the entry was
// last touched.
func (m *Market) integrate(e *entry, now messages.Time) {
	seconds := now.Sub(e.since).Seconds()
	if seconds <= 0 {
		return
	}
	e.since = now
	for k := range e.ledger {
		if e.job.Pending[k] == 0 || m.view.Classes[k].Slots == 0 {
			continue
		}
		a := &e.ledger[k]
		a.seconds += seconds
		a.allocated += seconds * e.share[k]
		a.received += seconds * float64(e.job.Running[k]) / float64(m.view.Classes[k].Slots)
	}
}

// position is where a job is among the jobs, or belongs.
func (m *Market) position(id messages.JobID) int {
	if n := len(m.jobs); n == 0 || m.jobs[n-1].job.Job < id {
		return n
	}
	i, _ := slices.BinarySearchFunc(m.jobs, id, func(e *entry, id messages.JobID) int { return cmp.Compare(e.job.Job, id) })
	return i
}

func (m *Market) shares(e *entry) []messages.ClassShare {
	out := make([]messages.ClassShare, len(e.ledger))
	for k, a := range e.ledger {
		out[k] = messages.ClassShare{Class: m.Config.Classes[k], Now: e.share[k]}
		if a.seconds > 0 {
			out[k].Allocated, out[k].Received = a.allocated/a.seconds, a.received/a.seconds
			out[k].Over = messages.Duration(math.Round(a.seconds*1e3)) * messages.Duration(time.Millisecond)
		}
	}
	return out
}
