package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// A suspended task continues on its own node, so it waits for a slot of that node only. The front of a node is the set
// of its suspended tasks that may get a slot there. If the node has n free slots, these are the n tasks with the best
// bids.
//
// The other suspended tasks are stuck. Their bids count like bids of waiting tasks, but no task loses a slot for them,
// and no slot is kept free. A decision looks only at nodes where something changed.
//
// If the order of jobs can change over time, no task is stuck, and the front has all suspended tasks of a node.

// waiter is a suspended task on its node.
type waiter struct {
	claim
	job   *entry
	class int
}

// lot has the suspended tasks of one class on one node that the market knows.
type lot struct {
	halted  []messages.Attempt // the node's list of halted attempts, as it was last read
	waiting []waiter           // the market's suspended tasks on the node; the first gets a slot first
	front   []waiter
}

// Visit tells the market that something has changed on the node at this position in the book.
func (m *Market) Visit(b *book.Book, node uint32) { m.visit(b, node, false) }

// visit does the work of [Market.Visit]. The argument `anew` must be true if the jobs of the node's suspended tasks may
// have changed too.
func (m *Market) visit(b *book.Book, node uint32, anew bool) {
	n := b.Nodes()[node]
	if !m.manner.Directs || n.Version == 0 { // no task was ever suspended on the node
		return
	}
	l, halted := m.lots[node], n.Halted()
	switch {
	case l == nil && len(halted) == 0:
		return
	case l == nil:
		l = &lot{}
		m.lots[node] = l
	}
	if anew || !oneList(l.halted, halted) {
		m.read(l, n, node)
	}
	is := m.front[:0]
	for k := range m.classes {
		is = m.frontOf(l, n, k, is)
	}
	if m.front = is; slices.EqualFunc(l.front, is, waiter.same) {
		return
	}
	for _, w := range l.front {
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
	l.front = append(l.front[:0], is...)
}

// oneList reports whether a and b are the same list in memory. Then they have equal elements, because a list of
// attempts never changes.
func oneList(a, b []messages.Attempt) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (w waiter) same(x waiter) bool {
	return w.Attempt == x.Attempt && w.since == x.since && w.job == x.job
}

// turnAway is called when the node has no slot for a suspended task. The front of a node is the list of suspended tasks
// that may resume next. turnAway removes the task from this list, until something changes on the node.
func (m *Market) turnAway(e *entry, class int, c claim) {
	l := m.lots[c.node]
	l.front = slices.DeleteFunc(l.front, func(w waiter) bool { return w.Attempt == c.Attempt })
	e.leaveFront(class, c.Attempt)
	m.change(e)
}

func (m *Market) read(l *lot, n *book.Node, node uint32) {
	l.halted, l.waiting = n.Halted(), l.waiting[:0]
	for _, a := range l.halted {
		h, e := n.Claims[a.Task], m.number.get(a.Task.Job)
		if k := m.Class(h.Class); e != nil && k >= 0 && h.Halt == book.Suspended {
			l.waiting = append(l.waiting, waiter{claim{Attempt: a, node: node, since: h.Since, width: max(h.Width, 1)}, e, k})
		}
	}
	slices.SortFunc(l.waiting, func(x, y waiter) int { return cmp.Or(m.compare(x.job, y.job), longest(x.claim, y.claim)) })
}

// The front of a class on a node is the list of suspended tasks that may resume next: the best ones, as many as there
// are free slots. If no slot is free, the front is only the best suspended task, and only if its job comes before the
// job of a running task. frontOf appends the front to a list.
func (m *Market) frontOf(l *lot, n *book.Node, k int, front []waiter) []waiter {
	room, first := n.Idle(m.classes[k]), true
	for _, w := range l.waiting {
		if w.class != k || w.job.gone || n.Claims[w.Task].Leaving {
			continue
		}
		if m.manner.Order != nil && room < w.width && !(first && room+m.behind(w.job, n, k) >= w.width) {
			continue
		}
		if front = append(front, w); !w.job.job.Gang() { // a gang keeps no slots on this node while its other nodes have no room
			room, first = max(0, room-w.width), false
		}
	}
	return front
}

// behind returns how many slots of a class on the node belong to jobs that come after job e.
func (m *Market) behind(e *entry, n *book.Node, k int) (slots int) {
	for r, h := range n.Claims {
		if h.Halt == book.Goes && !h.Leaving && h.Class == m.classes[k] {
			if x := m.number.get(r.Job); x != nil && m.compare(e, x) < 0 {
				slots += max(h.Width, 1)
			}
		}
	}
	return slots
}

func (m *Market) compare(x, y *entry) int {
	if m.manner.Order == nil {
		return 0
	}
	return m.manner.Order(&x.job, &y.job)
}

// longest compares two claims for sorting: the claim that has been suspended for the longest time comes first.
func longest(x, y claim) int {
	return cmp.Or(cmp.Compare(x.since, y.since), x.Task.Compare(y.Task))
}

// joinFront adds a suspended task to the job's list of tasks that may resume on their nodes. The task that has been
// suspended for the longest time comes first.
func (e *entry) joinFront(class int, c claim) {
	r := e.own()
	if r.front == nil {
		r.front = make([][]claim, len(e.ledger))
	}
	at, _ := slices.BinarySearchFunc(r.front[class], c, longest)
	r.front[class] = slices.Insert(r.front[class], at, c)
	e.countStuck()
}

// The front of a node has the suspended tasks that may get a slot next. leaveFront removes a suspended task of the job
// from this list.
func (e *entry) leaveFront(class int, a messages.Attempt) {
	e.front[class] = slices.DeleteFunc(e.front[class], func(c claim) bool { return c.Attempt == a })
	e.countStuck()
}

// countStuck counts the slots of a job's stuck tasks. A suspended task is stuck if other tasks of its node must resume
// first. A gang resumes only as a whole, so one stuck task makes all its tasks stuck.
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
			for i := range e.front[k] {
				n -= e.front[k][i].width
			}
		}
		if e.job.Stuck[k] = max(0, n); n > 0 && e.job.Gang() {
			e.job.Stuck[k] = e.Suspended[k]
		}
	}
}

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
		m.visit(b, node, true)
	}
}
