package market

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// ReserveFreed gives the slots of tasks that have ended to the best of those who wait, in the same
// entry of the log in which their ends are: as the next decision would, before which nobody
// else is to have them. A claim of one exchange with those ends asks for the slots. It reports
// false where only a decision can tell who is next: after ends that give others a chance, or
// where a suspended task of the node goes first.
func (m *Market) ReserveFreed(b *book.Book, node uint32, ended []messages.Finished, c *messages.Claim) (claim book.Claim, ok bool) {
	line, lined := m.mech.(mechanism.Lining)
	k := m.Class(c.Class)
	if !lined || m.manner.Order == nil || k < 0 || !plain(b, ended) {
		return claim, false
	}
	e := m.number.get(line.Next(k))
	if e == nil {
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

// plain reports whether tasks ended well, of jobs with nothing else to begin after that.
func plain(b *book.Book, ended []messages.Finished) bool {
	for i := range ended {
		f := &ended[i]
		j := b.Job(f.Attempt.Task.Job)
		if f.Outcome != messages.Exited || f.ExitCode != 0 || j == nil || len(j.Stages) > 1 {
			return false
		}
	}
	return true
}

// comesFirst reports whether a suspended task of a node goes before a job.
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
