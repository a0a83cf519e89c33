package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// A suspended task keeps its memory. So the number of suspended tasks on a node is bounded (book.Node.SuspendedLimit).
// If a decision would exceed the bound, the suspended tasks that have run least since they were claimed are requeued:
// they end, and run again from their beginning. So the bound does not change the decided slots and prices, and as
// little work as possible is lost. The owner has paid for the lost work. (In a market with deadlines, such a job is
// usually late and owes nothing.)

// bound requeues suspended tasks on each node that would have more suspended tasks than it may have.
func (p *plan) bound() {
	gone := func(a messages.Attempt) bool { return p.book.Job(a.Task.Job) == nil } // the job ended, and the market does not know it yet
	p.suspend, p.resume = slices.DeleteFunc(p.suspend, gone), slices.DeleteFunc(p.resume, gone)
	if len(p.suspend) == 0 || p.market.Config.Preemption == market.PreemptRequeue {
		return
	}
	more := map[uint32]int{} // by node: additional suspended tasks in this plan
	for _, a := range p.suspend {
		more[p.nodeOf(a)]++
	}
	for _, a := range p.resume {
		more[p.nodeOf(a)]--
	}
	for _, node := range p.nodesOf(p.suspend) {
		n := p.book.Nodes()[node]
		if over := n.Suspended() + more[node] - n.SuspendedLimit(); over > 0 {
			p.requeueLeast(node, over)
		}
	}
}

// requeueLeast requeues suspended tasks of the market on a node. It chooses the `over` tasks with the shortest run time
// so far.
func (p *plan) requeueLeast(node uint32, over int) {
	var kept []claim
	for r, h := range p.book.Nodes()[node].Claims {
		a := messages.Attempt{Task: r, Number: h.Attempt}
		j := p.book.Job(r.Job)
		if j == nil || j.Spec.Market != p.market.Config.Name || h.Leaving || slices.Contains(p.resume, a) {
			continue
		}
		if h.Halt == book.Suspended || slices.Contains(p.suspend, a) {
			t := &j.Stages[r.Stage].Tasks[r.Index]
			kept = append(kept, claim{Attempt: a, node: node, ran: p.now.Sub(t.Claimed) - h.PausedBy(p.now)})
		}
	}
	slices.SortFunc(kept, func(x, y claim) int { return cmp.Or(cmp.Compare(x.ran, y.ran), y.Task.Compare(x.Task)) })
	for _, c := range kept[:min(over, len(kept))] {
		p.suspend = slices.DeleteFunc(p.suspend, func(a messages.Attempt) bool { return a == c.Attempt })
		p.requeue = append(p.requeue, c.Attempt)
	}
}

func (p *plan) nodeOf(a messages.Attempt) uint32 {
	return p.book.Job(a.Task.Job).Stages[a.Task.Stage].Tasks[a.Task.Index].Node
}

// nodesOf returns the nodes on which the given attempts are, in ascending order.
func (p *plan) nodesOf(attempts []messages.Attempt) (out []uint32) {
	for _, a := range attempts {
		out = append(out, p.nodeOf(a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
