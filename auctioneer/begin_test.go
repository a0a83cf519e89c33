package auctioneer

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestAJobBeginsAtItsTime checks that a job begins at its begin time, even if nothing else happens at the site.
func TestAJobBeginsAtItsTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	id := g.enter("alice", "a", 1, func(s *messages.JobSpec) { s.Rate, s.Begin = messages.Credit, epoch.Add(minute) })
	g.look(g.node)
	if w := must[messages.WhyReply](g.fixture, "alice", messages.VerbWhy, messages.JobRequest{Job: id}); len(g.node.running) != 0 ||
		w.Reason != "BeginTime" || !strings.Contains(w.Message, "the job begins at") {
		t.Fatalf("%d run; %+v", len(g.node.running), w)
	}
	g.pass(minute)
	g.until(id)
	if j := must[messages.JobDetail](g.fixture, "alice", messages.VerbJob, messages.JobRequest{Job: id}); j.Started < epoch.Add(minute) {
		t.Errorf("started %v", j.Started)
	}
	never := g.enter("alice", "b", 1, func(s *messages.JobSpec) { s.Rate, s.Begin = messages.Credit, epoch.Add(1000*minute) })
	must[messages.CancelReply](g.fixture, "alice", messages.VerbCancel, messages.CancelRequest{Job: never})
	await.Until(t, "a job that never began is final", func() bool {
		return must[messages.JobDetail](g.fixture, "alice", messages.VerbJob, messages.JobRequest{Job: never}).State == messages.Cancelled
	})
	for want, change := range map[string]func(*messages.JobSpec){
		"begin: contract q1-1":    func(s *messages.JobSpec) { s.Begin, s.Contract = epoch, "q1-1" },
		"not before the deadline": func(s *messages.JobSpec) { s.Begin, s.Deadline = epoch, epoch },
		"too far away":            func(s *messages.JobSpec) { s.Begin = messages.MaxBegin + 1 },
	} {
		_, err := call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "x", Spec: bids(1, change)})
		if wantKind(t, err, messages.Invalid); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
