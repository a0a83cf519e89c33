package deadlineaware

import (
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// DefaultQuantile is of its demand what a job is planned with where nothing is said.
const DefaultQuantile = 0.9

// mostRuns bounds the runs that are printed.
const mostRuns = 10_000_000

// Document is the document of `candor solve deadline-aware`, and with neither
// Surrogates nor Runs that of a problem elsewhere.
type Document struct {
	Slots      int              `json:"slots"`
	Delta      *float64         `json:"delta,omitempty"`
	Quantile   *float64         `json:"quantile,omitempty"`
	Mean       *bool            `json:"mean,omitempty"`
	Resolution *float64         `json:"resolution,omitempty"`
	Jobs       []inputJob       `json:"jobs"`
	Surrogates *inputSurrogates `json:"surrogates,omitempty"`
	Runs       *bool            `json:"runs,omitempty"`
}

type inputJob struct {
	Tasks     *int               `json:"tasks,omitempty"`
	Runtime   []float64          `json:"runtime,omitempty"` // samples, seconds of a task
	Demand    []float64          `json:"demand,omitempty"`  // samples, slot-seconds of the job
	Elapsed   *float64           `json:"elapsed,omitempty"`
	Valuation messages.Valuation `json:"valuation"`
}

type inputSurrogates struct {
	Job   int                  `json:"job"`
	Types []messages.Valuation `json:"types"`
}

// output is what it prints: lists by job, except for order.
type output struct {
	Order      []int             `json:"order"`
	Demand     []float64         `json:"demand"`
	Targets    []float64         `json:"targets"`
	Levels     []float64         `json:"levels"`
	Start      []float64         `json:"start"`
	Completion []float64         `json:"completion"`
	Utilities  []float64         `json:"utilities"`
	GivenUp    []bool            `json:"given_up"`
	Surrogates *outputSurrogates `json:"surrogates,omitempty"`
	Runs       []Run             `json:"runs,omitempty"`
}

type outputSurrogates struct {
	Targets    []float64 `json:"targets"`
	Completion []float64 `json:"completion"`
	GivenUp    []bool    `json:"given_up"`
}

// SolveDocument answers a JSON document: {"slots", "delta"? (0), "quantile"?
// (0.9) or "mean": true, "resolution"?, "jobs": [{"tasks"? (1), "runtime" or
// "demand", "elapsed"? (0), "valuation"}…], "surrogates"?: {"job", "types":
// [valuation…]}, "runs"?: true}.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[Document](data)
	if err != nil {
		return nil, err
	}
	p, err := in.Problem()
	if err != nil {
		return nil, err
	}
	s, err := New(p)
	if err != nil {
		return nil, err
	}
	out := &output{Order: s.Order, Demand: make([]float64, len(p.Jobs)), Targets: s.Target, Levels: s.Level,
		Start: s.Start, Completion: s.Completion, Utilities: s.Utility, GivenUp: s.GivenUp}
	for i := range p.Jobs {
		out.Demand[i] = p.Jobs[i].Demand
	}
	if casefile.Or(in.Runs, false) {
		if err := fewRuns(p); err != nil {
			return nil, err
		}
		out.Runs = s.Runs(p)
	}
	out.Surrogates, err = in.surrogates(p)
	return out, err
}

// Problem is what the document asks to schedule. Errors name places in it.
func (in *Document) Problem() (*Problem, error) {
	demand, err := in.measure()
	if err != nil {
		return nil, err
	}
	p := &Problem{Slots: in.Slots, Jobs: make([]Job, len(in.Jobs)), Resolution: DefaultResolution}
	if in.Resolution != nil {
		if p.Resolution = *in.Resolution; p.Resolution == 0 {
			return nil, casefile.Invalid("resolution", "must be above 0: leave it out for %g credits", DefaultResolution)
		}
	}
	for i := range in.Jobs {
		if p.Jobs[i], err = in.Jobs[i].job("jobs["+strconv.Itoa(i)+"]", demand); err != nil {
			return nil, err
		}
	}
	return p, p.Check()
}

// measure returns what makes one number of the samples of a demand.
func (in *Document) measure() (func(samples []float64) (float64, error), error) {
	delta, part := casefile.Or(in.Delta, 0), casefile.Or(in.Quantile, DefaultQuantile)
	if err := checkDelta(delta); err != nil {
		return nil, err
	}
	if casefile.Or(in.Mean, false) {
		if in.Quantile != nil {
			return nil, casefile.Invalid("quantile", "cannot be combined with mean: leave one out")
		}
		return func(samples []float64) (float64, error) { return RobustMean(samples, delta) }, nil
	}
	return func(samples []float64) (float64, error) { return RobustQuantile(samples, delta, part) }, checkPart(part)
}

func (in *inputJob) job(place string, measure func([]float64) (float64, error)) (Job, error) {
	job := Job{Tasks: casefile.Or(in.Tasks, 1), Elapsed: casefile.Or(in.Elapsed, 0)}
	if job.Tasks < 0 || job.Tasks > MostTasks {
		return job, casefile.Invalid(place+".tasks", "must be from 0 to %d, is %d", MostTasks, job.Tasks)
	}
	var err error
	if job.Valuation, err = curve(place+".valuation", in.Valuation); err != nil {
		return job, err
	}
	name, samples, times := "runtime", in.Runtime, float64(job.Tasks)
	if in.Demand != nil {
		name, samples, times = "demand", in.Demand, 1
	}
	if (in.Runtime == nil) == (in.Demand == nil) {
		return job, casefile.Invalid(place, "give samples of either runtime (seconds of a task) or demand (slot-seconds of the job)")
	}
	one, err := measure(samples)
	if err != nil {
		return job, within(place+"."+name, err)
	}
	job.Demand = one * times
	return job, nil
}

// within names the document's place of samples that an error calls samples.
func within(place string, err error) error {
	return messages.Errorf(messages.KindOf(err), "%s%s", place, strings.TrimPrefix(messages.Detail(err), "samples"))
}

func curve(place string, v messages.Valuation) (valuation.Curve, error) {
	c, err := valuation.New(v)
	if err != nil {
		return c, messages.Errorf(messages.KindOf(err), "%s.%s", place, messages.Detail(err))
	}
	return c, nil
}

func fewRuns(p *Problem) error {
	runs := 0
	for i := range p.Jobs {
		runs += min(p.Jobs[i].Tasks, p.Slots)
	}
	if runs > mostRuns {
		return messages.Errorf(messages.TooLarge, "runs: there are up to %d, above the limit of %d: leave it out", runs, mostRuns)
	}
	return nil
}

func (in *Document) surrogates(p *Problem) (*outputSurrogates, error) {
	if in.Surrogates == nil {
		return nil, nil
	}
	if i := in.Surrogates.Job; i < 0 || i >= len(p.Jobs) {
		return nil, casefile.Invalid("surrogates.job", "must be the index of one of the %d jobs, is %d", len(p.Jobs), i)
	}
	types := make([]valuation.Curve, len(in.Surrogates.Types))
	for k, t := range in.Surrogates.Types {
		var err error
		if types[k], err = curve("surrogates.types["+strconv.Itoa(k)+"]", t); err != nil {
			return nil, err
		}
	}
	all, err := Hypotheses(p, in.Surrogates.Job, types)
	if err != nil {
		return nil, err
	}
	out := &outputSurrogates{Targets: []float64{}, Completion: []float64{}, GivenUp: []bool{}}
	for _, h := range all {
		out.Targets = append(out.Targets, h.Target)
		out.Completion = append(out.Completion, h.Completion)
		out.GivenUp = append(out.GivenUp, h.GivenUp)
	}
	return out, nil
}
