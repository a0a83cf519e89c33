package desk

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// All nodes of a class have a maintenance window. A task must compete for slots only while it could still end before
// the window. It must compete again after the window, and also when a node without a window registers.
func TestTasksThatWouldRunIntoMaintenanceBidForNoSlot(t *testing.T) {
	const hour = messages.Duration(time.Hour)
	s := newSite(t, func(c *Config) { c.Lease = 100 * hour })
	register := func(node messages.Name) {
		s.must(&book.Command{Register: &book.Register{Node: node, Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}}})
	}
	submit := func(key string, limit messages.Duration, nodes ...messages.Name) messages.JobID {
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
			Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 3, TimeLimit: limit, Nodes: nodes}}}
		return s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Spec: &spec, Hold: key, Held: 10}}).(book.Receipt).Job
	}
	register("n1")
	register("n2")
	short, long, endless, named := submit("a", hour), submit("b", 5*hour), submit("c", 0), submit("d", hour, "n1")
	pending := func(when string, want ...int) {
		t.Helper()
		s.step()
		for i, id := range []messages.JobID{short, long, endless, named} {
			if n := s.desk.trading.market("main").Pending(id, 0); n != want[i] {
				t.Errorf("%s: %d tasks of job %d bid, want %d", when, n, id, want[i])
			}
		}
	}
	pending("at first", 3, 3, 3, 3)
	w := s.must(&book.Command{ChangeWindows: &book.ChangeWindows{Add: &market.Window{Nodes: []messages.Name{"n1"}, From: epoch.Add(3 * hour), To: epoch.Add(4 * hour)}}}).(market.Window)
	pending("with a window of one node", 3, 3, 3, 3)
	s.must(&book.Command{ChangeWindows: &book.ChangeWindows{Add: &market.Window{Nodes: []messages.Name{"n2"}, From: w.From.Add(hour / 2), To: w.To}}})
	pending("with windows of both", 3, 0, 0, 3)
	s.pass(2 * hour)
	pending("an hour before", 3, 0, 0, 3)
	s.pass(1000)
	pending("less than an hour before", 3, 0, 0, 0)
	s.pass(hour / 2)
	pending("half an hour before", 0, 0, 0, 0)
	register("n3")
	pending("with another node", 3, 3, 3, 0)
	s.must(&book.Command{Lost: &book.Lost{Node: "n3", Session: 1}})
	pending("without it", 0, 0, 0, 0)
	s.pass(2 * hour)
	pending("after the windows", 3, 3, 3, 3)
	if at := s.desk.closing.next(); at != 0 {
		t.Errorf("a job is followed again at %v", at)
	}
}
