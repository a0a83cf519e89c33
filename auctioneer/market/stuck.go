package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// A suspended task goes on where it is, so that it waits for a slot of its node and no other.
// The front of a node are those of its suspended tasks that may get a slot there: as many as
// it has free slots, those of the best bids. The others are stuck: their bids count as those of
// tasks that wait, but nobody loses a slot for them, and none is kept free. A node is looked at
// when something has changed there; so a decision costs what has changed, however many tasks
// are suspended.
//
// Where the order of jobs may change by itself, no task is stuck, and the front is all
// suspended tasks of a node.

// waiter is a suspended task at its node.
type waiter struct {
	claim
	job   *entry
	class int
}

// Visit is for a node on which something has changed, by its position in the book.
func (m *Market) Visit(b *book.Book, node uint32) {
	n := b.Nodes()[node]
	if !m.manner.Directs || n.Version == 0 { // nothing was ever suspended there
		return
	}
	was, is := m.fronts[node], m.front[:0]
	for k, class := range m.classes {
		is = append(is, m.frontOf(b, node, k, n.Idle(class))...)
	}
	if m.front = is; slices.EqualFunc(was, is, waiter.same) {
		return
	}
	for _, w := range was {
		if !w.job.gone {
			w.job.leaveFront(w.class, w.Attempt)
			m.change(w.job)
		}
	}
	for _, w := range is {
		w.job.joinFront(w.class, w.claim)
		m.change(w.job)
	}
	m.stale = true
	if m.fronts[node] = append(was[:0], is...); len(is) == 0 {
		delete(m.fronts, node)
	}
}

func (w waiter) same(x waiter) bool {
	return w.Attempt == x.Attempt && w.since == x.since && w.job == x.job
}

// turnAway takes a suspended task of a job out of the front of its node, which has no slot for
// it, until something changes there.
func (m *Market) turnAway(e *entry, class int, c claim) {
	m.fronts[c.node] = slices.DeleteFunc(m.fronts[c.node], func(w waiter) bool { return w.Attempt == c.Attempt })
	e.leaveFront(class, c.Attempt)
	m.change(e)
}

// frontOf finds the front of a node's class: as many as there are free slots, or the best
// task alone if it would go before one that runs there, should that be the one to go.
func (m *Market) frontOf(b *book.Book, node uint32, k, idle int) []waiter {
	n, list := b.Nodes()[node], m.waiting[:0]
	var worst *entry
	for r, h := range n.Claims {
		e := m.number.get(r.Job)
		switch {
		case e == nil || h.Class != m.classes[k] || h.Leaving:
		case h.Halt == book.Suspended:
			list = append(list, waiter{claim{Attempt: messages.Attempt{Task: r, Number: h.Attempt}, node: node, since: h.Since}, e, k})
		case h.Halt == book.Goes && (worst == nil || m.compare(worst, e) < 0):
			worst = e
		}
	}
	m.waiting = list
	slices.SortFunc(list, func(x, y waiter) int { return cmp.Or(m.compare(x.job, y.job), longest(x.claim, y.claim)) })
	if m.manner.Order == nil || len(list) == 0 {
		return list
	}
	if idle == 0 && worst != nil && m.compare(list[0].job, worst) < 0 {
		idle = 1
	}
	return list[:min(idle, len(list))]
}

func (m *Market) compare(x, y *entry) int {
	if m.manner.Order == nil {
		return 0
	}
	return m.manner.Order(&x.job, &y.job)
}

// longest orders suspended claims: those for longest first.
func longest(x, y claim) int {
	return cmp.Or(cmp.Compare(x.since, y.since), compareTasks(x.Task, y.Task))
}

// joinFront notes that a task of a job may get a slot.
func (e *entry) joinFront(class int, c claim) {
	r := e.own()
	if r.front == nil {
		r.front = make([][]claim, len(e.ledger))
	}
	at, _ := slices.BinarySearchFunc(r.front[class], c, longest)
	r.front[class] = slices.Insert(r.front[class], at, c)
	e.countStuck()
}

// leaveFront notes that a task of a job gets no slot.
func (e *entry) leaveFront(class int, a messages.Attempt) {
	e.front[class] = slices.DeleteFunc(e.front[class], func(c claim) bool { return c.Attempt == a })
	e.countStuck()
}

// countStuck counts the suspended tasks that are in no front.
func (e *entry) countStuck() {
	if e.Suspended == nil || !e.ordered {
		e.job.Stuck = nil
		return
	}
	if e.job.Stuck == nil {
		e.job.Stuck = make([]int, len(e.ledger))
	}
	for k, n := range e.Suspended {
		if e.front != nil {
			n -= len(e.front[k])
		}
		e.job.Stuck[k] = max(0, n)
	}
}

// visitNew visits the nodes of the suspended tasks of jobs that came with such tasks.
func (m *Market) visitNew(b *book.Book) {
	var nodes []uint32
	for _, e := range m.unseen {
		j := b.Job(e.job.Job)
		if e.gone || j == nil {
			continue
		}
		for i := range j.Stages {
			for t := range j.Stages[i].Tasks {
				if x := &j.Stages[i].Tasks[t]; j.Stages[i].Suspended > 0 && x.Phase == book.Claimed {
					nodes = append(nodes, x.Node)
				}
			}
		}
	}
	m.unseen = nil
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		m.Visit(b, node)
	}
}
