package job_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someProfile() job.Profile {
	return job.Profile{Name: "patient", Class: job.Sigmoidal, Prior: []job.Sample{{10, 60, 60}}, Bounds: []job.ParameterBounds{
		{Parameter: "max", High: 100}, {Parameter: "mu", High: 3600}, {Parameter: "delta", Low: 1, High: 7200}}}
}

// The error for each fault of a profile must name the path of the field.
func TestProfileRefuses(t *testing.T) {
	good := someProfile()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for says, change := range map[string]func(*job.Profile){
		`name: "X"`:                          func(p *job.Profile) { p.Name = "X" },
		`class: "square"`:                    func(p *job.Profile) { p.Class = "square" },
		"bounds: delta is missing":           func(p *job.Profile) { p.Bounds = p.Bounds[:2] },
		`bounds[1].parameter: "deadline"`:    func(p *job.Profile) { p.Bounds[1].Parameter = "deadline" },
		`bounds[3].parameter: "more"`:        func(p *job.Profile) { p.Bounds = append(p.Bounds, job.ParameterBounds{Parameter: "more"}) },
		"bounds[0].low: must be from 0":      func(p *job.Profile) { p.Bounds[0].Low = -1 },
		"bounds[0].low: must be from 0 to 1": func(p *job.Profile) { p.Bounds[0].Low = nan },
		"bounds[2].high: must be from 0 to":  func(p *job.Profile) { p.Bounds[2].High = math.Inf(1) },
		"bounds[2]: 9000 to 7200 is revers":  func(p *job.Profile) { p.Bounds[2].Low = 9000 },
		"bounds[2]: 7200 to 7200 is no int":  func(p *job.Profile) { p.Bounds[2].Low = 7200 },
		"prior[0]: has 2 numbers":            func(p *job.Profile) { p.Prior[0] = job.Sample{1, 2} },
		"prior[0]: delta: must be from 1":    func(p *job.Profile) { p.Prior[0][2] = 0 },
		"prior[0]: max: must be from 0":      func(p *job.Profile) { p.Prior[0][0] = nan },
		"parts: only a custom class":         func(p *job.Profile) { p.Parts = []float64{1} },
		"eps: must be from":                  func(p *job.Profile) { p.Epsilon = 0.6 },
		"eps: only a sigmoidal":              func(p *job.Profile) { p.Class, p.Epsilon = job.LinearDecay, 0.1 },
		"seconds_per_unit: 1: a recurrent":   func(p *job.Profile) { p.SecondsPerUnit = 1 },
		"parts: there are 0; a custom class": func(p *job.Profile) { p.Class = job.Custom },
		"parts[1]: must be from 0 to 1":      func(p *job.Profile) { p.Class, p.Parts = job.Custom, []float64{0.5, 0.6} },
		`bandwidth: "wide" is not one of`:    func(p *job.Profile) { p.Bandwidth = "wide" },
		"influence: must be from 1 to":       func(p *job.Profile) { p.Influence = 0.5 },
		`market: "a b" is no name`:           func(p *job.Profile) { p.Market = "a b" },
		"market: is missing; name the batch": func(p *job.Profile) { p.Class = job.Queued },
		"kernels: must be from 64":           func(p *job.Profile) { p.Kernels = 2 },
	} {
		p := someProfile()
		change(&p)
		if err := p.Validate(); err == nil || messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	p := someProfile()
	p.Prior = make([]job.Sample, job.MaxPriorSamples+1)
	if err := p.Validate(); messages.KindOf(err) != messages.TooLarge {
		t.Error(err)
	}
}

func TestSamplesAreValuations(t *testing.T) {
	unit := func(names ...string) (b []job.ParameterBounds) {
		for _, n := range names {
			b = append(b, job.ParameterBounds{Parameter: n, High: 10})
		}
		return b
	}
	for _, tc := range []struct {
		p job.Profile
		x job.Sample
	}{
		{job.Profile{Class: job.Hard, Bounds: unit("max", "deadline")}, job.Sample{1, 2}},
		{job.Profile{Class: job.Recurrent, SecondsPerUnit: 3, Bounds: unit("max", "workload")}, job.Sample{1, 2}},
		{job.Profile{Class: job.Sigmoidal, Epsilon: 0.1, Bounds: unit("max", "mu", "delta")}, job.Sample{1, 2, 3}},
		{job.Profile{Class: job.LinearDecay, Bounds: unit("max", "mu", "delta")}, job.Sample{1, 2, 3}},
		{job.Profile{Class: job.Custom, Parts: []float64{1, 0.5}, Bounds: unit("max", "at1", "at2")}, job.Sample{1, 2, 3}},
	} {
		tc.p.Name = "some"
		if err := tc.p.Validate(); err != nil {
			t.Fatal(err)
		}
		v, err := tc.p.Valuation(tc.x)
		if err != nil {
			t.Errorf("%s: %v", tc.p.Class, err)
		}
		if back, ok := tc.p.Sample(&v); !ok || !slices.Equal(back, tc.x) {
			t.Errorf("%s: %v, want %v", tc.p.Class, back, tc.x)
		}
		if _, ok := tc.p.Sample(&job.Valuation{Class: "another"}); ok {
			t.Errorf("%s: took a valuation of another class", tc.p.Class)
		}
		if _, err := tc.p.Valuation(job.Sample{1, 11, 1}[:len(tc.x)]); messages.KindOf(err) != messages.Invalid || err == nil {
			t.Errorf("%s: %v", tc.p.Class, err)
		}
	}
	steps := job.Profile{Class: job.Custom, Parts: []float64{1, 0.5}, Bounds: unit("max", "at1", "at2")}
	if _, err := steps.Valuation(job.Sample{1, 3, 2}); err == nil {
		t.Error("points out of order are a valuation")
	}
	if _, ok := steps.Sample(&job.Valuation{Class: job.Custom, Points: []job.ValuationPoint{{At: 1, Part: 1}, {At: 2, Part: 0.4}}}); ok {
		t.Error("took a custom valuation with other parts")
	}
}

func TestQueuedSamples(t *testing.T) {
	p := job.Profile{Name: "queue", Class: job.Queued, Market: "batch", Bounds: []job.ParameterBounds{{"value", 0, 10}, {"delay", 0, 1}, {"length", 0, 100}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	o := job.Observation{Market: "batch", Value: 3 * messages.Credit, Delay: messages.Credit / 4, Length: 60_000_000_000}
	if x, ok := p.Observed(&o); !ok || !slices.Equal(x, job.Sample{3, 0.25, 60}) || p.Contains(x) != nil {
		t.Errorf("%v, %v", x, ok)
	}
	if _, err := p.Valuation(job.Sample{3, 0.25, 60}); messages.KindOf(err) != messages.Invalid || err == nil {
		t.Error(err)
	}
	o.Market = "main"
	if _, ok := p.Observed(&o); ok {
		t.Error("a job of another market is a sample")
	}
	if _, ok := p.Observed(&job.Observation{Market: "batch"}); ok {
		t.Error("a job without a length is a sample")
	}
}

func TestEstimateRequestsRefuse(t *testing.T) {
	below := -1.0
	for says, err := range map[string]error{
		"stages: there are 0":         (&market.RuntimeRequest{}).Validate(),
		"stages[0].time_limit":        (&market.RuntimeRequest{Stages: []job.StageShape{{TimeLimit: -1}}}).Validate(),
		"part: must be above 0":       (&market.RuntimeRequest{Stages: []job.StageShape{{}}, Part: 1}).Validate(),
		"divergence: must be 0":       (&market.RuntimeRequest{Stages: []job.StageShape{{}}, Divergence: &below}).Validate(),
		"draws: must be from 1":       (&market.SamplesRequest{Class: "a"}).Validate(),
		`class: "" is no name`:        (&market.SamplesRequest{Draws: 1}).Validate(),
		"name: has a control char":    (&market.RuntimeRequest{Stages: []job.StageShape{{}}, Name: "a\nb"}).Validate(),
		"stages[0].command: has a co": (&market.RuntimeRequest{Stages: []job.StageShape{{Command: "a\nb"}}}).Validate(),
	} {
		if err == nil || !strings.HasPrefix(messages.Detail(err), says) || messages.KindOf(err) != messages.Invalid {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := (&market.RuntimeRequest{Stages: []job.StageShape{{Tasks: -1}}}).Validate(); messages.KindOf(err) != messages.TooLarge {
		t.Error(err)
	}
}

// Commands must have different IDs if only the borders between their arguments differ.
func TestCommandID(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range []job.Stage{{}, {Script: "a"}, {Command: []string{"a"}}, {Command: []string{"a", "b"}}, {Command: []string{"ab"}}, {Command: []string{"a", ""}}} {
		ids[job.CommandID(&s)] = true
	}
	if len(ids) != 6 {
		t.Errorf("%d identifiers of 6 commands", len(ids))
	}
}

func TestBasis(t *testing.T) {
	r := market.UtilityReply{Runs: 1, Default: 0.9, Utility: job.Utility{Weights: job.Weights{{"map", 1.5}, {"reduce", 0.5}}}}
	if got := r.Basis(); got != "estimated from 1 run: weights map 1.5, reduce 0.5; the runs alone do not determine the weights; the default contributes 90 %, and the runs differ from the fit by 0 %" {
		t.Error(got)
	}
	r.Runs, r.Determined, r.Errors, r.Residual = 8, true, job.Weights{{"map", 0.123}, {"reduce", 0.01}}, 0.05
	if got := r.Basis(); got != "estimated from 8 runs: weights map 1.5 ± 0.12, reduce 0.5 ± 0.01; the default contributes 90 %, and the runs differ from the fit by 5 %" {
		t.Error(got)
	}
}
