package market

import (
	"slices"
	"unique"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Market is a market of a live site. It is not safe for concurrent use.
type Market struct {
	Config market.Market
	mech   mechanism.Mechanism
	stale  bool          // the jobs or slots have changed since the last allocation
	wake   messages.Time // when to allocate even if nothing changes; 0 means that only a change needs an allocation
	// tariffs are the tariffs that were last put into the book. They are used only for mechanisms that need not decide
	// after every change; see the field Attentive of [mechanism.Manner].
	tariffs []book.Tariff
	roster
	directives
	draws
	plan plan

	freeUntil []messages.Time // by class: see [Slots.Windows]; nil if no node has a window

	lots  map[uint32]*lot // by node: its suspended tasks
	front []waiter        // reused memory for the list of tasks on a node that may resume
}

// New returns a market without jobs and slots. The argument `manner` says how the mechanism is used.
func New(manner mechanism.Manner, config market.Market, mech mechanism.Mechanism) *Market {
	m := &Market{Config: config, mech: mech, stale: true, roster: newRoster(config.Classes), lots: map[uint32]*lot{}}
	m.directives = directives{manner: manner, roster: &m.roster}
	m.draws = newDraws(&m.roster)
	return m
}

// Bid returns the bid that a job's description declares. If spec.Contract has the ID of a contract, the argument
// `contract` is this contract. Equal account names share memory.
func (m *Market) Bid(id messages.JobID, account messages.Name, at messages.Time, spec *job.JobSpec, contract *job.Contract) *mechanism.Bid {
	bid := &mechanism.Bid{
		Job: id, Account: unique.Make(account).Value(), Arrived: at, Budget: spec.Budget,
		Form: job.Linear, Weights: make([]float64, len(m.Config.Classes)),
		Rate: spec.Rate, Value: spec.Value, Delay: spec.Delay, Length: spec.Length, Limit: limit(spec), Deadline: spec.Deadline, Width: spec.Width(), Alone: spec.Alone(),
		Tasks: spec.TaskCount(), Serial: spec.Serial(), Valuation: spec.Valuation, Contract: contract,
	}
	if u := spec.Utility; u != nil {
		bid.MinUtility = u.Minimum
		if bid.Form = unique.Make(u.Form).Value(); u.Form == "" {
			bid.Form = job.Linear
		}
		for i, c := range m.Config.Classes {
			bid.Weights[i] = u.Weights.Of(c)
		}
	}
	return bid
}

// limit returns the longest time limit of a job's tasks, or 0 if some task has no limit.
func limit(spec *job.JobSpec) (limit messages.Duration) {
	for i := range spec.Stages {
		if spec.Stages[i].TimeLimit == 0 {
			return 0
		}
		limit = max(limit, spec.Stages[i].TimeLimit)
	}
	return limit
}

// BidOf returns the bid of a job in the book.
func (m *Market) BidOf(j *book.Job) *mechanism.Bid {
	return m.Bid(j.ID, j.Account, j.Arrived(), j.Spec, j.Contract)
}

// Admit returns an error if the mechanism does not accept a bid.
func (m *Market) Admit(now messages.Time, bid *mechanism.Bid) error {
	m.look(now)
	return m.mech.Admit(&m.view, bid)
}

// SetSlots sets how many slots each class has, and how many of them are idle.
func (m *Market) SetSlots(now messages.Time, slots, idle []int) {
	for i := range m.view.Classes {
		c := &m.view.Classes[i]
		if c.Slots != slots[i] {
			for _, e := range m.members() {
				m.integrate(e, now)
			}
			m.stale = true
		}
		m.stale = m.stale || m.manner.Attentive && c.Idle != idle[i]
		c.Slots, c.Idle = slots[i], idle[i]
	}
}

// SetWindows stores the times that [Slots.Windows] returned. It reports whether other tasks can start now than before.
func (m *Market) SetWindows(free []messages.Time, closings [][]mechanism.Closing) (changed bool) {
	for i := range m.view.Classes {
		var all []mechanism.Closing
		if closings != nil {
			all = closings[i]
		}
		if c := &m.view.Classes[i]; !slices.Equal(c.Closings, all) {
			c.Closings, m.stale = all, true
		}
	}
	changed = !slices.Equal(m.freeUntil, free)
	m.freeUntil = free
	return changed
}

// Put adds a job, or updates its progress.
func (m *Market) Put(now messages.Time, bid func() *mechanism.Bid, id messages.JobID, p Progress) {
	e := m.number.get(id)
	m.Unreserve(id)
	if e == nil {
		job := mechanism.Job{Bid: bid()}
		if n := len(m.jobs); n > 0 {
			m.jobs[n-1].lend(job.Bid, &p)
		}
		m.add(now, job, p, m.manner)
		m.stale = true
		return
	}
	m.integrate(e, now)
	if int(e.changes) != p.Changes {
		m.reenter(now, e, bid(), p)
		return
	}
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

// Completed stores the cost and slot time of a running job when the price counts the job as complete. Only the first
// call has an effect.
func (m *Market) Completed(id messages.JobID, used func() (messages.Credits, messages.Duration)) {
	if e := m.number.get(id); e != nil && e.job.Complete && e.job.Whole == nil {
		accrued, received := used()
		e.job.Whole = &mechanism.Used{Accrued: accrued, Received: received, Lacked: e.job.Lacked}
	}
}

// reenter puts a job into the market again after its bid has changed. The past shares of the job are kept.
func (m *Market) reenter(now messages.Time, was *entry, bid *mechanism.Bid, p Progress) {
	m.remove(now, was)
	m.add(now, mechanism.Job{Bid: bid, Accrued: was.job.Accrued, Received: was.job.Received, Lacked: was.job.Lacked, Whole: was.job.Whole}, p, m.manner)
	e := m.number.get(bid.Job)
	for k, a := range was.ledger {
		a.counted, a.share = e.ledger[k].counted, 0
		e.ledger[k] = a
	}
	if bid.Runtimes = was.job.Runtimes; was.learned != 0 {
		e.own().learned = was.learned
	}
	m.stale = true
}

// Remove removes a job and returns it with its average shares, or nil if there is none.
func (m *Market) Remove(now messages.Time, id messages.JobID) (*mechanism.Job, []job.ClassShare) {
	e := m.number.get(id)
	if e == nil {
		return nil, nil
	}
	m.Unreserve(id)
	m.remove(now, e)
	m.stale = true
	return &e.job, m.shares(e)
}

// Settle asks the mechanism what an ended job owes.
func (m *Market) Settle(now messages.Time, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	m.look(now)
	return m.mech.Settle(&m.view, job, end)
}

// Stale reports whether Allocate has something to decide.
func (m *Market) Stale(now messages.Time) bool { return m.stale || m.wake != 0 && now >= m.wake }

// Wake returns the time at which the market must decide even if nothing changes. 0 means never.
func (m *Market) Wake() messages.Time { return m.wake }

// Allocate makes the mechanism decide. An incremental mechanism gets only the changes since the last time.
func (m *Market) Allocate(now messages.Time) {
	m.look(now)
	if mech, ok := m.mech.(mechanism.Incremental); ok {
		c := mech.Update(&m.view, m.changed, m.gone)
		m.rescale(now, c.Scale)
		for i, job := range c.Jobs {
			if e := m.number.get(job.Job); e != nil {
				m.enforce(now, e, c.Weights[i])
			}
		}
		copy(m.prices, c.Prices)
		m.orders = Orders{Directives: c.Directives, Tariffs: c.Tariffs}
		m.wake = m.permit(now, c.Wake, m.touched())
	} else {
		a := m.mech.Allocate(&m.view)
		for i, e := range m.jobs {
			m.enforce(now, e, a.Weights[i])
		}
		copy(m.prices, a.Prices)
		m.orders = Orders{Directives: a.Directives, Tariffs: a.Tariffs}
		m.wake = m.permit(now, a.Wake, m.jobs)
	}
	m.stale = false
	m.roster.forgetChanges()
	m.draws.clear(now)
}

// The view is what the mechanism sees of the market. look sets its time, and removes jobs that have left the market. If
// the mechanism is incremental, some of these jobs may stay in the view.
func (m *Market) look(now messages.Time) {
	_, told := m.mech.(mechanism.Incremental)
	m.tidy(told)
	m.view.Now = now
}

// Charge tells the mechanism the cost and the total time of each job's slots until now. An incremental mechanism is
// told only about the jobs that it asks for.
func (m *Market) Charge(used func(messages.JobID) (messages.Credits, messages.Duration)) {
	for _, e := range m.ongoing {
		e.charged = false
	}
	m.ongoing = m.ongoing[:0]
	m.view.Charge = func(job *mechanism.Job) {
		if job.Started == 0 {
			return
		}
		if e := m.number.get(job.Job); e != nil && !e.charged {
			job.Accrued, job.Received = used(job.Job)
			if e.charged = true; mechanism.Sum(job.Running) > 0 {
				m.ongoing = append(m.ongoing, e)
			}
		}
	}
	if _, asks := m.mech.(mechanism.Incremental); !asks {
		for _, job := range m.view.Jobs {
			m.view.Read(job)
		}
	}
}

// Stalled makes the market decide again, because its last decision was not committed.
func (m *Market) Stalled() { m.stale, m.tariffs = true, nil }

// Quote returns the menu of contracts for a job. It returns an error if the mechanism sells no contracts.
func (m *Market) Quote(now messages.Time, bid *mechanism.Bid, class []job.Valuation, seed uint64) (*mechanism.Quote, error) {
	q, ok := m.mech.(mechanism.Quoter)
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "market: %s sells no contracts; its jobs are submitted without a quote", m.Config.Name)
	}
	m.tidy(false)
	m.view.Now = now
	return q.Quote(&m.view, bid, class, seed)
}

// Explain returns the mechanism's explanation for a job, or false if the job is not in the market.
func (m *Market) Explain(now messages.Time, id messages.JobID) (mechanism.Explanation, bool) {
	e := m.number.get(id)
	if e == nil {
		return mechanism.Explanation{}, false
	}
	m.tidy(false)
	m.view.Now = now
	return m.mech.Explain(&m.view, &e.job), true
}
