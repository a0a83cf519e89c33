package market

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
)

// ReserveFreedSlots gives the slots of ended tasks to the job that the next decision would choose, in the same log
// entry that reports the ends. It returns false if only a decision can tell which job is next. For example, a task
// failed or its job has several stages, so that other jobs may run now, or a suspended task of the node must get a slot
// first.
func (m *Market) ReserveFreedSlots(b *book.Book, node uint32, ended []agentmsg.Finished, c *agentmsg.Claim) (claim book.Claim, ok bool) {
	line, lined := m.mech.(mechanism.Lining)
	k := m.Class(c.Class)
	if !lined || m.manner.Order == nil || k < 0 || !plain(b, ended) {
		return claim, false
	}
	e := m.number.get(line.Next(k))
	if e == nil || e.job.Gang() {
		return claim, false
	}
	id := e.job.Job
	n := min(c.Slots, e.pending()[k]-m.reserved[k][id])
	if n <= 0 || m.comesFirst(b.Nodes()[node], node, k, e) {
		return claim, false
	}
	m.reserved[k][id] += n
	m.sum[k] += n
	return book.Claim{Class: c.Class, Slots: n, Jobs: []messages.JobID{id}, Most: []int{e.running()[k] + m.reserved[k][id]}}, true
}

// plain reports whether all tasks ended well and their jobs have only one stage. Then the ends allow no other task to
// start.
func plain(b *book.Book, ended []agentmsg.Finished) bool {
	for i := range ended {
		f := &ended[i]
		j := b.Job(f.Attempt.Task.Job)
		if f.Outcome != agentmsg.Exited || f.ExitCode != 0 || j == nil || len(j.Stages) > 1 {
			return false
		}
	}
	return true
}

// comesFirst reports whether a suspended task of the node must get a slot before the job e.
func (m *Market) comesFirst(n *book.Node, node uint32, k int, e *entry) bool {
	l := m.lots[node]
	if l == nil {
		return false
	}
	for _, w := range l.waiting {
		if w.class == k && !w.job.gone && !n.Claims[w.Task].Leaving {
			return m.compare(w.job, e) < 0
		}
	}
	return false
}
