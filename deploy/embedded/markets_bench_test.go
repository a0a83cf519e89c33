package embedded

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// BenchmarkPreemption submits bids that take the only slot of a spot market from a job. It measures the time from a
// submission until the bid's process has run. The first task must be suspended and resumed each time, and never
// restarted.
func BenchmarkPreemption(b *testing.B) {
	c := small(b.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "spot", Slots: 1}})
	c.Markets = []market.Market{{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"spot"}}}
	c.Accounts = []Account{{Name: "alice", Grant: messages.MaxCredits / 10}}
	s, err := Start(b.Context(), c, Options{Log: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conn, err := s.Connect("alice")
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	end := filepath.Join(b.TempDir(), "end")
	submit := func(key string, rate messages.Credits, script string) messages.JobID {
		spec := job("spot", 1, script, func(s *jobmsg.JobSpec) { s.Rate, s.Budget = rate*messages.Credit, 100_000*messages.Credit })
		r, err := bus.Call[jobmsg.SubmitReply](b.Context(), conn, messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"),
			jobmsg.SubmitRequest{Key: key, Spec: spec})
		if err != nil {
			b.Fatal(err)
		}
		return r.Job
	}
	until := func(id messages.JobID, holds func(jobmsg.JobDetail) bool) jobmsg.JobDetail {
		for {
			j, err := bus.Call[jobmsg.JobDetail](b.Context(), conn, messages.Subject("west", messages.Auctioneer, messages.VerbJob, "alice"), jobmsg.JobRequest{Job: id})
			if err != nil {
				b.Fatal(err)
			}
			if holds(j) {
				return j
			}
		}
	}
	long := submit("long", 2, untilFile(end))
	until(long, func(j jobmsg.JobDetail) bool { return j.State == jobmsg.Running })
	var took []time.Duration
	for i := range b.N {
		id := submit(fmt.Sprint(i), 3, "exit 0\n")
		j := until(id, func(j jobmsg.JobDetail) bool { return j.Done == 1 })
		took = append(took, j.Ended.Sub(j.Submitted).Std())
	}
	touch(b, end)
	if j := until(long, func(j jobmsg.JobDetail) bool { return j.State.Final() }); j.State != jobmsg.Completed || j.Stages[0].Retried != 0 {
		b.Fatalf("%+v", j.Stages)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms/median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms/p99")
}
