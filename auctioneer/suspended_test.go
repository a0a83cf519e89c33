package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A node has room for one suspended task. When a task is displaced for the second time, there are two tasks to suspend.
// The task that has run less must lose its work and begin again. The prices must be the same as with unlimited room,
// and all jobs must complete.
func TestNodeKeepsSoManySuspendedTasks(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	g.node.most = 1
	must[agent.RegisterReply](g.fixture, "n1", messages.VerbRegister,
		agent.RegisterRequest{Session: g.node.session(), Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}, MostSuspended: g.node.most})
	first := g.enter("alice", "a", 1, rate(2))
	g.until(first)
	g.pass(10 * second)
	next := g.enter("bob", "b", 1, rate(3))
	g.until(next)
	g.pass(4 * second)
	last := g.enter("carol", "c", 1, rate(4))
	g.until(last)
	if n := must[market.NodesReply](g.fixture, "operator", messages.VerbNodes, messages.Empty{}).Nodes[0]; n.Suspended != 1 || n.MostSuspended != 1 {
		t.Errorf("%d of at most %d are suspended, want 1 of 1", n.Suspended, n.MostSuspended)
	}
	if a, b := g.job(first), g.job(next); a.Stages[0].Retried != 0 || b.Stages[0].Retried != 1 {
		t.Errorf("begin again: %d and %d times, want the second that has run 4 s only", a.Stages[0].Retried, b.Stages[0].Retried)
	}
	g.complete(last)
	g.until(next)
	g.complete(next)
	g.until(first)
	g.complete(first)
	for _, id := range []messages.JobID{first, next, last} {
		if j := g.final(id); j.State != job.Completed {
			t.Errorf("%+v", j.JobSummary)
		}
	}
}
