package auctioneer

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A job has a begin time. It must begin at this time, even if nothing else happens at the site.
func TestAJobBeginsAtItsTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) { s.Rate, s.Begin = messages.Credit, epoch.Add(minute) })
	g.look(g.node)
	if w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id}); len(g.node.running) != 0 ||
		w.Reason != "BeginTime" || !strings.Contains(w.Message, "the job begins at") {
		t.Fatalf("%d run; %+v", len(g.node.running), w)
	}
	g.pass(minute)
	g.until(id)
	if j := must[job.JobDetail](g.fixture, "alice", messages.VerbJob, job.JobRequest{Job: id}); j.Started < epoch.Add(minute) {
		t.Errorf("started %v", j.Started)
	}
	never := g.enter("alice", "b", 1, func(s *job.JobSpec) { s.Rate, s.Begin = messages.Credit, epoch.Add(1000*minute) })
	must[job.CancelReply](g.fixture, "alice", messages.VerbCancel, job.CancelRequest{Job: never})
	await.Until(t, "a job that never began is final", func() bool {
		return must[job.JobDetail](g.fixture, "alice", messages.VerbJob, job.JobRequest{Job: never}).State == job.Cancelled
	})
	for want, change := range map[string]func(*job.JobSpec){
		"begin: contract q1-1":    func(s *job.JobSpec) { s.Begin, s.Contract = epoch, "q1-1" },
		"not before the deadline": func(s *job.JobSpec) { s.Begin, s.Deadline = epoch, epoch },
		"too far away":            func(s *job.JobSpec) { s.Begin = job.MaxBegin + 1 },
	} {
		_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "x", Spec: bids(1, change)})
		if wantKind(t, err, messages.Invalid); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
