package auctioneer

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// An agent reports how many bytes of a task's output were lost. The site must report the loss with the job and the
// reason, whatever number the agent sent.
func TestOutputThatWasNotKeptIsTold(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 2, rate(1))
	for _, lost := range []int64{5000, -7} {
		g.until(id)
		g.exchange(g.node, agent.Exchange{Session: g.node.session(), Seq: g.node.seq + 1,
			Finished: []agent.Finished{{Attempt: g.node.running[0], Lost: lost}}})
		g.node.running = nil
	}
	if j := g.final(id); j.Stages[0].Lost != 5000 || j.Stages[0].Cut != 1 {
		t.Errorf("%+v", j.Stages)
	}
	w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if want := "; 5,000 bytes of the output of 1 attempt are lost, because the site limits the size of an output"; !strings.Contains(w.Message, want) {
		t.Errorf("%q", w.Message)
	}
}
