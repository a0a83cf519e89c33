package deadlineaware

import (
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// DefaultQuantile is the quantile of a job's demand that is planned by default.
const DefaultQuantile = 0.9

// Document describes a problem of this mechanism. It is a part of the JSON document of another mechanism.
type Document struct {
	Slots      int        `json:"slots"`
	Delta      *float64   `json:"delta,omitempty"`
	Quantile   *float64   `json:"quantile,omitempty"`
	Mean       *bool      `json:"mean,omitempty"`
	Resolution *float64   `json:"resolution,omitempty"`
	Jobs       []inputJob `json:"jobs"`
}

type inputJob struct {
	Tasks     *int          `json:"tasks,omitempty"`
	Runtime   []float64     `json:"runtime,omitempty"` // samples, in seconds of one task
	Demand    []float64     `json:"demand,omitempty"`  // samples, in slot-seconds of the whole job
	Elapsed   *float64      `json:"elapsed,omitempty"`
	Valuation job.Valuation `json:"valuation"`
}

// Problem converts the document to a problem. Each error names a place in the document.
func (in *Document) Problem() (*Problem, error) {
	demand, err := in.measure()
	if err != nil {
		return nil, err
	}
	p := &Problem{Slots: in.Slots, Jobs: make([]Job, len(in.Jobs)), Resolution: DefaultResolution}
	if in.Resolution != nil {
		if p.Resolution = *in.Resolution; p.Resolution == 0 {
			return nil, casefile.Invalid("resolution", "must be above 0; the default is %g credits", DefaultResolution)
		}
	}
	for i := range in.Jobs {
		if p.Jobs[i], err = in.Jobs[i].job("jobs["+strconv.Itoa(i)+"]", demand); err != nil {
			return nil, err
		}
	}
	return p, p.Check()
}

// measure returns a function that computes one number, such as the mean, from the samples of a job's demand.
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

// within changes an error message that begins with the word "samples". It replaces this word with the place of the
// samples in the document.
func within(place string, err error) error {
	return messages.Errorf(messages.KindOf(err), "%s%s", place, strings.TrimPrefix(messages.Detail(err), "samples"))
}

func curve(place string, v job.Valuation) (valuation.Curve, error) {
	c, err := valuation.New(v)
	if err != nil {
		return c, messages.Errorf(messages.KindOf(err), "%s.%s", place, messages.Detail(err))
	}
	return c, nil
}
