package auctioneer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// estimator starts an estimator. The function `answer` gives its answers to requests about the worth of jobs.
func (f *fixture) estimator(answer func(context.Context, messages.Name, market.UtilityRequest) (market.UtilityReply, error)) {
	f.t.Helper()
	sub, err := f.net.Connect("$estimator").Serve(bus.Service{Name: "estimator", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "utility", Subject: messages.Subject("west", messages.Estimator, messages.VerbUtility, "*"), Handle: bus.Handle("utility", answer)}}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = sub.Stop() })
}

func (f *fixture) assumed(job messages.JobID) string {
	f.t.Helper()
	return must[market.WhyReply](f, "alice", messages.VerbWhy, jobmsg.JobRequest{Job: job}).Message
}

// twoClasses returns a job with two stages, one in each of two classes. Its utility depends on the weights of these
// classes.
func twoClasses() jobmsg.JobSpec {
	spec := oneStage(1)
	spec.Stages = append(spec.Stages, jobmsg.Stage{Name: "reduce", Class: "reduce", After: []messages.Name{"map"}, Command: []string{"true"}})
	return spec
}

// A job declares no utility. The estimator's answer must be used, and the owner must be able to read where the utility
// came from. The answer has a weight for each class. If the job has only one class, weights have no effect, and nothing
// must be reported.
func TestUtilityIsAssumed(t *testing.T) {
	f := start(t)
	f.estimator(func(_ context.Context, caller messages.Name, r market.UtilityRequest) (market.UtilityReply, error) {
		if caller != "$auctioneer" || r.Account != "alice" || r.Name != "count" || r.Market != "main" || len(r.Classes) > 2 {
			t.Errorf("%s asks %+v", caller, r)
		}
		return market.UtilityReply{Utility: jobmsg.Utility{Form: jobmsg.Linear, Weights: jobmsg.Weights{{Class: "map", Weight: 3}, {Class: "reduce", Weight: 1}}[:len(r.Classes)]}, Runs: 7, Determined: true, Default: 0.25}, nil
	})
	if text := f.assumed(f.submit("alice", "one", oneStage(1)).Job); strings.Contains(text, "assumed") {
		t.Error(text)
	}
	// On a slow machine the answer may come too late, so the test tries several times.
	for k := range 100 {
		job := f.submit("alice", fmt.Sprint("k", k), twoClasses()).Job
		if text := f.assumed(job); strings.Contains(text, "estimated from 7 runs") && strings.Contains(text, "the default contributes 25 %") {
			detail := must[jobmsg.JobDetail](f, "alice", messages.VerbJob, jobmsg.JobRequest{Job: job})
			if detail.Spec.Utility.Weights.Of("map") != 3 {
				t.Errorf("utility %+v", detail.Spec.Utility)
			}
			return
		}
	}
	t.Error("the estimator was never heard")
}

// A submission does not wait for a silent estimator, and uses the default.
func TestSilentEstimator(t *testing.T) {
	f, over := start(t), make(chan struct{})
	f.estimator(func(context.Context, messages.Name, market.UtilityRequest) (market.UtilityReply, error) {
		<-over
		return market.UtilityReply{}, nil
	})
	t.Cleanup(func() { close(over) })
	// time for a submission that waits for the estimator
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	reply, err := bus.Call[jobmsg.SubmitReply](ctx, f.net.Connect("alice"), messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"),
		jobmsg.SubmitRequest{Key: "k", Spec: twoClasses()})
	if err != nil {
		t.Fatal(err)
	}
	if text := f.assumed(reply.Job); !strings.Contains(text, "default: every class the job uses counts the same") {
		t.Error(text)
	}
}
