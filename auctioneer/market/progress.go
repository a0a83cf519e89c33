package market

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Progress is the progress of a job, by class, as a mechanism needs it.
type Progress struct {
	Started   messages.Time
	Pending   []int             // slots of tasks that could be claimed on a node that takes tasks, or that wait for a slot on a node
	Ahead     []int             // part of Pending: slots of tasks that wait on a node; nil means none
	Running   []int             // slots of claimed tasks, except tasks that are suspended or about to end
	Suspended []int             // slots of suspended tasks; nil means none
	Done      int               // number of tasks that have ended in any way
	Complete  bool              // when prices are computed, all tasks count as completed
	Budget    *messages.Credits // what is left of the budget; nil means the declared budget
	// A mechanism can give a job slots in a decision that is final. Then Ordered has the number of slots of each class
	// that the job has from OrderedAt on, and the mechanism treats these slots as taken. Ordered is nil if there is no
	// such decision.
	Ordered   []int
	OrderedAt messages.Time
	Changes   int // number of changes of the job's description
	// Closes is when the first pending task can no longer start, because all nodes for it have maintenance windows, or
	// 0 for never.
	Closes messages.Time
}

// ProgressOf returns the progress of a job of the book. It does not count tasks that no node may start now, because
// they do not compete for slots.
func (m *Market) ProgressOf(b *book.Book, j *book.Job, now messages.Time) Progress {
	classes := len(m.Config.Classes)
	counts := make([]int, 2*classes)
	p := Progress{Started: j.Started, Complete: j.Complete(), Changes: j.Changes, Pending: counts[:classes:classes], Running: counts[classes:]}
	if left := j.Left(); j.Paid > 0 {
		p.Budget = &left
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		p.Done += s.Done + s.Failed + s.Cancelled
		k := m.Class(j.Spec.Stages[i].Class)
		if k < 0 {
			continue
		}
		of := &j.Spec.Stages[i]
		if of.Allocation && m.manner.Even {
			m.addWhole(&p, b, j, i, now)
			continue
		}
		width := of.Slots() // a mechanism counts slots, not tasks
		p.Pending[k] += width * s.Ahead
		if free := m.freeFor(b, of, k, now); book.Before(now, of.TimeLimit, free) {
			p.Pending[k] += width * b.Claimable(j, i)
			if free != book.ToTheirEnd {
				p.Closes = messages.Earlier(p.Closes, free.Add(1000-of.TimeLimit))
			}
		}
		if s.Ahead > 0 {
			if p.Ahead == nil {
				p.Ahead = make([]int, classes)
			}
			p.Ahead[k] += width * s.Ahead
		}
		p.Running[k] += width * s.OnSlots()
		if s.Suspended > 0 {
			if p.Suspended == nil {
				p.Suspended = make([]int, classes)
			}
			p.Suspended[k] += width * s.Suspended
		}
	}
	if o := j.Order; o != nil {
		p.Ordered, p.OrderedAt = make([]int, classes), o.At
		if k := m.Class(o.Class); k >= 0 {
			p.Ordered[k] = o.Slots
		}
	}
	return p
}

// addWhole adds an allocation to a job's progress. It is used for a mechanism that treats all slots of an allocation as
// one unit. Until all tasks of the allocation have their slots, all its slots count as waiting.
func (m *Market) addWhole(p *Progress, b *book.Book, j *book.Job, i int, now messages.Time) {
	s, of := &j.Stages[i], &j.Spec.Stages[i]
	k, slots := m.Class(of.Class), s.Total*of.Slots()
	switch {
	case s.Suspended > 0:
		if p.Suspended == nil {
			p.Suspended = make([]int, len(p.Pending))
		}
		p.Suspended[k] += slots
	case s.OnSlots() > s.Gathering:
		p.Running[k] += slots
	case b.Claimable(j, i)+s.Nodes+s.Gathering == s.Total:
		if free := m.freeFor(b, of, k, now); book.Before(now, of.TimeLimit, free) {
			p.Pending[k] += slots
			if free != book.ToTheirEnd {
				p.Closes = messages.Earlier(p.Closes, free.Add(1000-of.TimeLimit))
			}
		}
	}
}

func (m *Market) opens(n *book.Node) bool {
	return n.Up && n.Drain == 0 && n.Health.Quarantined == 0 && (len(m.Config.Nodes) == 0 || slices.Contains(m.Config.Nodes, n.Name))
}

// freeFor returns the time until which some node may run tasks of a stage. Each node is free until its next maintenance
// window begins; the result is the latest of these times. The result is [book.ToTheirEnd] if some node has no window,
// and 0 if no node takes such tasks. freeFor looks at each node only if the stage names nodes.
func (m *Market) freeFor(b *book.Book, of *job.Stage, class int, now messages.Time) messages.Time {
	switch {
	case of.NamesNodes():
		return m.freeOn(b, of, now)
	case m.freeUntil == nil:
		return book.ToTheirEnd
	}
	return m.freeUntil[class]
}

// freeOn considers the nodes on which a task of the stage fits. For each of these nodes there is a time until which it
// may run tasks. freeOn returns the latest of these times.
func (m *Market) freeOn(b *book.Book, of *job.Stage, now messages.Time) (free messages.Time) {
	for _, n := range b.Nodes() {
		if m.opens(n) && slices.ContainsFunc(n.Slots, func(s job.ClassSlots) bool { return s.Class == of.Class && s.Slots >= of.Slots() }) && n.Suits(of) {
			if free = max(free, n.FreeUntil(now)); free == book.ToTheirEnd {
				break
			}
		}
	}
	return free
}

// The method `same` reports whether p equals the job's progress in the numbers of slots and tasks, and in Complete. It
// does not compare Done and Started: whenever one of them changes, one of the compared numbers changes too.
func (e *entry) same(p *Progress) bool {
	return slices.Equal(e.pending(), p.Pending) && slices.Equal(e.running(), p.Running) && slices.Equal(e.Ahead, p.Ahead) &&
		slices.Equal(e.Suspended, p.Suspended) && slices.Equal(e.Ordered, p.Ordered) && e.job.Complete == p.Complete
}

func (e *entry) progress() Progress {
	return Progress{Started: e.job.Started, Pending: e.pending(), Ahead: e.Ahead, Running: e.running(), Suspended: e.Suspended, Done: e.job.Done, Complete: e.job.Complete,
		Budget: e.Budget, Ordered: e.Ordered, OrderedAt: e.OrderedAt, Changes: int(e.changes)}
}

// Most waiting jobs have equal lists of weights, and of pending and running tasks. lend compares the lists of another
// job (`bid` and p) with the lists of job e. If two lists are equal, the other job uses the list of job e, which saves
// memory. The lists never change.
func (e *entry) lend(bid *mechanism.Bid, p *Progress) {
	if slices.Equal(e.job.Weights, bid.Weights) {
		bid.Weights = e.job.Weights
	}
	if slices.Equal(e.pending(), p.Pending) && slices.Equal(e.running(), p.Running) {
		p.Pending, p.Running = e.pending(), e.running()
	}
}

// pending returns, for each class, the slots of the job's claimable tasks. The mechanism sees these numbers. If the job
// has an order that cannot change, the slots of the order are left out.
func (e *entry) pending() []int {
	if e.Ordered != nil {
		return e.rest.Pending
	}
	return e.job.Pending
}

// running returns the slots of claimed tasks, by class. It leaves out tasks that are suspended or about to end.
func (e *entry) running() []int {
	if e.Ordered != nil {
		return e.rest.Running
	}
	return e.job.Running
}

func (e *entry) become(p Progress) {
	e.changes, e.charged = int32(p.Changes), false
	if e.rest != nothing || p.Ahead != nil || p.Suspended != nil || p.Ordered != nil || p.Budget != nil {
		r := e.own()
		r.Ahead, r.Suspended, r.Ordered, r.OrderedAt, r.Budget = p.Ahead, p.Suspended, p.Ordered, p.OrderedAt, p.Budget
		r.Pending, r.Running, r.known = nil, nil, false
	}
	e.job.Pending, e.job.Running, e.job.Suspended = p.Pending, p.Running, p.Suspended
	if e.job.Started, e.job.Done, e.job.Complete = p.Started, p.Done, p.Complete; !p.Complete {
		e.job.Whole = nil
	}
	e.countStuck()
	if p.Budget != nil {
		e.job.Budget = *p.Budget
	}
	if p.Ordered == nil {
		return
	}
	e.rest.Pending, e.rest.Running = p.Pending, p.Running
	e.job.Pending, e.job.Running = slices.Clone(p.Pending), slices.Clone(p.Running)
	for k, n := range p.Ordered {
		if n > 0 {
			e.job.Pending[k], e.job.Running[k] = 0, max(n, p.Running[k])
		}
	}
}
