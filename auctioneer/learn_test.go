package auctioneer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
)

// runtimes starts an estimator that has seen a number of runs, each with this run time in seconds.
func (f *fixture) runtimes(runs, seconds float64) {
	f.t.Helper()
	answer := func(_ context.Context, caller messages.Name, r market.RuntimeRequest) (reply market.RuntimeReply, err error) {
		if caller != "$auctioneer" || r.Account != "alice" || len(r.Stages) != 1 || r.Stages[0].Command == "" {
			f.t.Errorf("%s asks %+v", caller, r)
		}
		reply.Stages = []market.RuntimeEstimate{{Stage: r.Stages[0].Name, Samples: []float64{seconds, seconds}, Runs: runs}}
		return reply, nil
	}
	f.estimates(answer)
}

// unlearned starts an estimator that has seen no runs. Without it, each quote would wait for a timeout.
func (f *fixture) unlearned() {
	f.t.Helper()
	f.estimates(func(context.Context, messages.Name, market.RuntimeRequest) (reply market.RuntimeReply, err error) {
		return reply, nil
	})
}

// estimates starts an estimator that answers questions about run times with the given function.
func (f *fixture) estimates(answer func(context.Context, messages.Name, market.RuntimeRequest) (market.RuntimeReply, error)) {
	f.t.Helper()
	sub, err := f.net.Connect("$estimator").Serve(bus.Service{Name: "estimator", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "runtime", Subject: messages.Subject("west", messages.Estimator, market.VerbRuntime, "*"), Handle: bus.Handle("runtime", answer)},
		{Name: "classes", Subject: messages.Subject("west", messages.Estimator, market.VerbClasses, "*"), Handle: bus.Handle("classes",
			func(context.Context, messages.Name, messages.Empty) (market.ClassesReply, error) {
				return market.ClassesReply{}, nil
			})},
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = sub.Stop() })
}

// A job declares 10 s, and similar jobs took 25 s. The quote must plan with 25 s, and the owner can read why. If too
// few runs were seen, it must plan with the declared time.
func TestContractsArePlannedWithWhatWasSeen(t *testing.T) {
	for _, c := range []struct {
		runs  float64
		after messages.Duration
		says  string
	}{
		{40, 25 * second, "the plan gives a task 25 s, estimated from 40 runs"},
		{2, 10 * second, "the declared run time of 10 s, because only 2 runs"},
	} {
		g := newGrid(t, 1, sold(func(*market.Market) {}))
		g.runtimes(c.runs, 25)
		spec := bids(1, valued)
		menu := must[market.QuoteReply](g.fixture, "alice", market.VerbQuote, market.QuoteRequest{Spec: spec})
		soonest := slices.MinFunc(menu.Contracts, func(a, b market.QuotedContract) int { return int(a.Completion - b.Completion) })
		if got := soonest.Completion.Sub(epoch); got != c.after {
			t.Errorf("after %v runs it is quoted for after %v, want %v", c.runs, got, c.after)
		}
		spec.Contract, spec.Budget = soonest.ID, soonest.Budget
		id := g.submit("alice", "a", spec).Job
		await.Until(t, "why says "+c.says, func() bool { return strings.Contains(g.why(id).Message, c.says) })
	}
}
