package auctioneer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// runtimes is an estimator that has seen so many runs of so many seconds.
func (f *fixture) runtimes(runs, seconds float64) {
	f.t.Helper()
	answer := func(_ context.Context, caller messages.Name, r messages.RuntimeRequest) (reply messages.RuntimeReply, err error) {
		if caller != "$auctioneer" || r.Account != "alice" || len(r.Stages) != 1 || r.Stages[0].Command == "" {
			f.t.Errorf("%s asks %+v", caller, r)
		}
		reply.Stages = []messages.RuntimeEstimate{{Stage: r.Stages[0].Name, Samples: []float64{seconds, seconds}, Runs: runs}}
		return reply, nil
	}
	sub, err := f.net.Connect("$estimator").Serve(bus.Service{Name: "estimator", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "runtime", Subject: messages.Subject("west", messages.Estimator, messages.VerbRuntime, "*"), Handle: bus.Handle("runtime", answer)},
		{Name: "classes", Subject: messages.Subject("west", messages.Estimator, messages.VerbClasses, "*"), Handle: bus.Handle("classes",
			func(context.Context, messages.Name, messages.Empty) (messages.ClassesReply, error) {
				return messages.ClassesReply{}, nil
			})},
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = sub.Stop() })
}

// TestContractsArePlannedWithWhatWasSeen: a job of 10 s as declared, whose like
// took 25 s, is quoted for after 25 s, and its owner can read why; with too few
// runs seen it is quoted as declared.
func TestContractsArePlannedWithWhatWasSeen(t *testing.T) {
	for _, c := range []struct {
		runs  float64
		after messages.Duration
		says  string
	}{
		{40, 25 * second, "planned with 25 s, by 40 runs"},
		{2, 10 * second, "planned with the 10 s declared, as only 2 runs"},
	} {
		g := newGrid(t, 1, sold(func(*messages.Market) {}))
		g.runtimes(c.runs, 25)
		spec := bids(1, valued)
		menu := must[messages.QuoteReply](g.fixture, "alice", messages.VerbQuote, messages.QuoteRequest{Spec: spec})
		soonest := slices.MinFunc(menu.Contracts, func(a, b messages.QuotedContract) int { return int(a.Completion - b.Completion) })
		if got := soonest.Completion.Sub(epoch); got != c.after {
			t.Errorf("after %v runs it is quoted for after %v, want %v", c.runs, got, c.after)
		}
		spec.Contract, spec.Budget = soonest.ID, soonest.Budget
		id := g.submit("alice", "a", spec).Job
		eventually(t, "why says "+c.says, func() bool { return strings.Contains(g.why(id).Message, c.says) })
	}
}

// TestTogether: by tasks at each quantile, and no better than the worst stage.
func TestTogether(t *testing.T) {
	shapes := []messages.StageShape{{Tasks: 3}, {Tasks: 1}}
	got := together(shapes, []messages.RuntimeEstimate{
		{Samples: []float64{4, 2}, Runs: 9, Divergence: 0.1}, {Samples: []float64{10, 30}, Runs: 7, Divergence: 0.3}})
	if !slices.Equal(got.Seconds, []float64{4, 10.5}) || got.Runs != 7 || got.Divergence != 0.3 {
		t.Errorf("%+v", got)
	}
	if got := together(shapes, []messages.RuntimeEstimate{{Samples: []float64{4, 2}, Runs: 9}, {Runs: 7}}); got != nil {
		t.Errorf("a stage that nothing is known of: %+v", got)
	}
}

// TestTypesOf: what is no type is left out.
func TestTypesOf(t *testing.T) {
	got := typesOf(&messages.SamplesReply{Samples: []float64{5, 0.5, 60, -1, 0, 1, 7, 1e300, 9, 1, 2}})
	want := []messages.QueuedType{{Value: 5 * messages.Credit, Delay: messages.Credit / 2, Length: 60 * second}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestBatchQueueAsksWhatIsLikely: of the profile of its own market, if enough of it
// was seen.
func TestBatchQueueAsksWhatIsLikely(t *testing.T) {
	for samples, asked := range map[float64]bool{fewestTypes - 1: false, fewestTypes: true} {
		f, drawn := start(t), make(chan messages.SamplesRequest, 8)
		profile := func(name, market messages.Name) messages.ClassEstimate {
			return messages.ClassEstimate{Profile: messages.Profile{Name: name, Class: messages.Queued, Market: market}, Samples: samples}
		}
		sub, err := f.net.Connect("$estimator").Serve(bus.Service{Name: "estimator", Version: "1.0.0", Endpoints: []bus.Endpoint{
			{Name: "classes", Subject: messages.Subject("west", messages.Estimator, messages.VerbClasses, "*"), Handle: bus.Handle("classes",
				func(context.Context, messages.Name, messages.Empty) (messages.ClassesReply, error) {
					return messages.ClassesReply{Classes: []messages.ClassEstimate{profile("theirs", "other"), profile("ours", "batch")}}, nil
				})},
			{Name: "samples", Subject: messages.Subject("west", messages.Estimator, messages.VerbSamples, "*"), Handle: bus.Handle("samples",
				func(_ context.Context, _ messages.Name, r messages.SamplesRequest) (messages.SamplesReply, error) {
					drawn <- r
					return messages.SamplesReply{Samples: []float64{5, 0.5, 60}}, nil
				})},
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Stop() })
		l := &leader{Auctioneer: f.Auctioneer}
		types := l.queuedTypes(t.Context(), "batch")
		if (types != nil) != asked || len(drawn) > 0 && (<-drawn).Class != "ours" {
			t.Errorf("of %v samples: %+v", samples, types)
		}
	}
}
