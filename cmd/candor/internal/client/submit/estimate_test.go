package submit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someSpread(seconds float64) market.Spread {
	d := func(x float64) messages.Duration { return messages.Duration(x * float64(time.Second)) }
	return market.Spread{Low: d(seconds / 2), Median: d(seconds), High: d(3 * seconds), Mean: d(1.2 * seconds)}
}

func someEstimate() market.EstimateReply {
	return market.EstimateReply{
		Utility: market.UtilityReply{Runs: 12, Default: 0.07, Determined: true, Residual: 0.04, Condition: 3,
			Utility: job.Utility{Form: job.Linear, Weights: job.Weights{{Class: "map", Weight: 1.7}, {Class: "reduce", Weight: 0.3}}},
			Errors:  job.Weights{{Class: "map", Weight: 0.1}, {Class: "reduce", Weight: 0.02}}},
		Stages: []market.RuntimeEstimate{
			{Stage: "count", Spread: someSpread(60), Robust: messages.Duration(4 * time.Minute), Divergence: 0.2, Samples: []float64{30, 60, 180}, Runs: 8.6, Source: "runs of this command by this user"},
			{Stage: "total", Source: "nothing is known"},
		},
		Wait: someSpread(2), Completion: someSpread(600), Runs: 7.25, Source: "waits and slots of runs by this user",
	}
}

func someClasses() market.ClassesReply {
	bounds := []job.ParameterBounds{{Parameter: "max", High: 1000}, {Parameter: "deadline", High: 86400}}
	return market.ClassesReply{Classes: []market.ClassEstimate{
		{Profile: job.Profile{Name: "due", Class: job.Hard, Bounds: bounds}, Samples: 1234, Outside: 3, Accounts: 40, Kernels: 1024, Effective: 1100,
			Screened: 0.031, Bandwidth: []float64{20, 3000}, Mean: []float64{250.5, 40000}, Deviation: []float64{100, 9000}, Moved: 0.002, MovedBy: 0.001},
		{Profile: job.Profile{Name: "new", Class: job.Hard, Bounds: bounds}, Prior: 1, Bandwidth: []float64{180, 15000}, Mean: []float64{500, 43000}, Deviation: []float64{270, 23000}},
	}}
}

const jobOfTwoStages = `
name: flights
budget: 25
stages:
  - {name: count, class: map, tasks: 16, command: [count]}
  - {name: total, class: reduce, after: [count], command: [total]}
`

func presentOffer(clearing.OffersRequest) (clearing.OffersReply, error) {
	now := 24 * messages.Credit / 10
	return clearing.OffersReply{Offers: []clearing.Offer{{Site: "west", Market: "main", Mechanism: market.Proportional, Start: 1, Width: 4, Price: 2 * messages.Credit, Basis: "each task takes 4 slots",
		Cheapest: []clearing.CheapHour{{Class: "map", Slots: 4, Bids: true, Start: messages.TimeOf(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)), Price: 3 * messages.Credit / 10, Now: &now}}}}}, nil
}

func estimating(t *testing.T) *clienttest.Site {
	s := newSite(t)
	clienttest.Answer(s, messages.Estimator, market.VerbEstimate, func(r market.EstimateRequest) (market.EstimateReply, error) {
		if r.Account != "" || r.Spec.Name != "flights" || len(r.Spec.Stages) != 2 {
			t.Errorf("asked for %+v", r)
		}
		return someEstimate(), nil
	})
	clienttest.Answer(s, messages.Auctioneer, clearing.VerbOffers, presentOffer)
	clienttest.Answer(s, messages.Estimator, market.VerbClasses, func(messages.Empty) (market.ClassesReply, error) { return someClasses(), nil })
	s.Write("job.yaml", jobOfTwoStages)
	return s
}

func TestEstimateViews(t *testing.T) {
	s := estimating(t)
	for name, line := range map[string][]string{"estimate": {"estimate", s.Path("job.yaml")}, "classes": {"estimate", "classes"}} {
		got := s.Run(line...)
		got.Expect(t, cli.CodeOK, "", "")
		clienttest.Golden(t, name+".txt", got.Out)
	}
	declared := someEstimate()
	declared.Declared, declared.Completion, declared.Runs = true, market.Spread{}, 0
	few := func(s *clienttest.Site) {
		s.Write("job.yaml", strings.Replace(jobOfTwoStages, "flights", "x", 1))
		clienttest.Gives[market.EstimateRequest](messages.Estimator, market.VerbEstimate, declared)(s)
		clienttest.Refuse[clearing.OffersRequest](s, messages.Auctioneer, clearing.VerbOffers, messages.Errorf(messages.Unavailable, "no replica leads"))
	}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"estimate_declared": {Line: "estimate $DIR/job.yaml", Serve: few},
		"classes_none":      {Line: "estimate classes", Serve: clienttest.Gives[messages.Empty](messages.Estimator, market.VerbClasses, market.ClassesReply{})},
	})
}

func TestEstimateAsJSON(t *testing.T) {
	s := estimating(t)
	var job market.EstimateReply
	if got := s.Run("estimate", "--json", s.Path("job.yaml")); json.Unmarshal([]byte(got.Out), &job) != nil || job.Completion.Median != someEstimate().Completion.Median ||
		!strings.Contains(got.Out, `"start"`) {
		t.Errorf("%+v", got)
	}
	var classes market.ClassesReply
	if got := s.Run("estimate", "classes", "--json"); json.Unmarshal([]byte(got.Out), &classes) != nil || classes.Classes[0].Samples != 1234 {
		t.Errorf("%+v", got)
	}
}

func TestEstimateRefusals(t *testing.T) {
	s := estimating(t)
	s.Write("bad.yaml", "budget: 1\nstages:\n  - {name: A, command: [x]}\n")
	s.Run("estimate", s.Path("bad.yaml")).Expect(t, cli.CodeUsage, "", "stages[0].name")
	s.Run("estimate", s.Path("none.yaml")).Expect(t, cli.CodeUsage, "", "none.yaml")
	s.Run("estimate", "classes", "more").Expect(t, cli.CodeUsage, "", "")
	refused := newSite(t)
	clienttest.Refuse[market.EstimateRequest](refused, messages.Estimator, market.VerbEstimate, messages.Errorf(messages.NotFound, "market: there is no market \"x\""))
	refused.Write("job.yaml", jobOfTwoStages)
	refused.Run("estimate", refused.Path("job.yaml")).Expect(t, cli.CodeNotFound, "", "there is no market")
}
