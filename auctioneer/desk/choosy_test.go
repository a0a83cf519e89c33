package desk

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// The tasks of a job may run on only one node. They must compete for slots only while that node takes tasks. If they
// competed while it is closed, other jobs would have to pay although slots are free.
func TestAJobForAClosedNodeBidsForNoSlot(t *testing.T) {
	s := newSite(t, func(*Config) {})
	for session, node := range []messages.Name{"n1", "n2"} {
		s.must(&book.Command{Register: &book.Register{Node: node, Session: uint64(session + 1), Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}, Labels: []messages.Name{"on-" + node}}})
	}
	submit := func(key string, limit func(*job.Stage)) messages.JobID {
		spec := job.JobSpec{Market: "main", Budget: 10, Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}},
			Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 3}, {Name: "b", Class: "cpu", Tasks: 50}}}
		limit(&spec.Stages[1])
		return s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Spec: &spec, Hold: key, Held: 10}}).(book.Receipt).Job
	}
	jobs := []messages.JobID{
		submit("list", func(s *job.Stage) { s.Nodes = []messages.Name{"n2"} }),
		submit("exclude", func(s *job.Stage) { s.Exclude = []messages.Name{"n1"} }),
		submit("label", func(s *job.Stage) { s.Constraint = "on-n2" }),
	}
	free := submit("free", func(*job.Stage) {})
	pending := func(when string, want int) {
		t.Helper()
		s.step()
		m := s.desk.trading.market("main")
		for _, id := range jobs {
			if n := m.Pending(id, 0); n != want {
				t.Errorf("%s: %d tasks of job %d bid, want %d", when, n, id, want)
			}
		}
		if n := m.Pending(free, 0); n != 53 {
			t.Errorf("%s: %d tasks of the job for any node bid, want 53", when, n)
		}
	}
	pending("at first", 53)
	s.must(&book.Command{Drain: &book.Drain{Node: "n2", Until: book.ToTheirEnd}})
	pending("while the node drains", 3)
	s.must(&book.Command{Drain: &book.Drain{Node: "n2"}})
	pending("when it takes tasks again", 53)
	s.must(&book.Command{Lost: &book.Lost{Node: "n2", Session: 2}})
	pending("when it is lost", 3)
	s.must(&book.Command{Register: &book.Register{Node: "n3", Session: 3, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}, Labels: []messages.Name{"on-n2"}}})
	s.step()
	m := s.desk.trading.market("main")
	if list, exclude, label := m.Pending(jobs[0], 0), m.Pending(jobs[1], 0), m.Pending(jobs[2], 0); list != 3 || exclude != 53 || label != 53 {
		t.Errorf("with a new node: %d, %d and %d tasks bid, want 3, 53 and 53", list, exclude, label)
	}
	for _, id := range jobs {
		s.must(&book.Command{Cancel: &book.Cancel{Job: id, By: "alice"}})
	}
	if s.step(); len(s.desk.choosy) != 0 {
		t.Errorf("ended jobs are watched: %v", s.desk.choosy)
	}
}
