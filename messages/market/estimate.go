package market

import (
	"fmt"
	"math"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are the verbs of the estimator, except VerbUtility.
const (
	VerbRuntime  = "runtime"  // RuntimeRequest → RuntimeReply
	VerbEstimate = "estimate" // EstimateRequest → EstimateReply
	VerbClasses  = "classes"  // Empty → ClassesReply
	VerbSamples  = "samples"  // SamplesRequest → SamplesReply; services and operators
)

// MostDraws is the largest number of draws for one SamplesRequest.
const MostDraws = 10_000

// Basis returns a clause that says which data an estimated utility function is based on.
func (r *UtilityReply) Basis() string {
	if r.Runs == 0 {
		return "default: every class the job uses counts the same"
	}
	runs := fmt.Sprintf("estimated from %d runs", r.Runs)
	if r.Runs == 1 {
		runs = "estimated from 1 run"
	}
	terms := make([]string, len(r.Utility.Weights))
	for i, w := range r.Utility.Weights {
		terms[i] = fmt.Sprintf("%s %.3g", w.Class, w.Weight)
		if e := r.Errors.Of(w.Class); e > 0 {
			terms[i] += fmt.Sprintf(" ± %.2g", e)
		}
	}
	text := fmt.Sprintf("%s: weights %s", runs, strings.Join(terms, ", "))
	if !r.Determined {
		text += "; the runs alone do not determine the weights"
	}
	return text + fmt.Sprintf("; the default contributes %.0f %%, and the runs differ from the fit by %.0f %%", 100*r.Default, 100*r.Residual)
}

// RuntimeRequest asks how long the tasks of a job's stages take.
type RuntimeRequest struct {
	Account messages.Name    `json:"account,omitempty"` // the default is the caller
	Name    string           `json:"name,omitempty"`    // name of the job
	Stages  []job.StageShape `json:"stages"`
	// Part is the probability with which a task must not exceed its robust run time, the field Robust of the answer. It
	// is in (0, 1); 0 means 0.9.
	Part float64 `json:"part,omitempty"`
	// Divergence limits how far the true distribution may be from the estimate; it is a Kullback-Leibler divergence in
	// nats. The robust demand is enough for every distribution within this limit. nil means a limit that depends on the
	// number of observations.
	Divergence *float64 `json:"divergence,omitempty"`
}

// Validate returns an error for the first fault of a request. The error names the field.
func (r *RuntimeRequest) Validate() error {
	if len(r.Stages) == 0 || len(r.Stages) > job.MaxStages {
		return messages.Errorf(messages.Invalid, "stages: there are %d; name 1 to %d", len(r.Stages), job.MaxStages)
	}
	if err := messages.CheckLine("name", r.Name, job.MaxTextField); err != nil {
		return err
	}
	for i := range r.Stages {
		s, path := &r.Stages[i], fmt.Sprintf("stages[%d]", i)
		if s.Tasks < 0 || s.Tasks > job.MaxTasks {
			return messages.Errorf(messages.TooLarge, "%s.tasks: %d must be from 0 to %d", path, s.Tasks, job.MaxTasks)
		}
		if s.TimeLimit < 0 {
			return messages.Errorf(messages.Invalid, "%s.time_limit: %v is negative; for no limit, leave the field out", path, s.TimeLimit)
		}
		if err := messages.CheckLine(path+".command", s.Command, job.MaxTextField); err != nil {
			return err
		}
	}
	if !(r.Part >= 0 && r.Part < 1) {
		return messages.Errorf(messages.Invalid, "part: must be above 0 and below 1, is %v", r.Part)
	}
	if d := r.Divergence; d != nil && !(*d >= 0 && *d <= math.MaxFloat64) {
		return messages.Errorf(messages.Invalid, "divergence: must be 0 or above and finite, is %v", *d)
	}
	return nil
}

// RuntimeReply has an estimate for each stage of the request, in the same order.
type RuntimeReply struct {
	Stages []RuntimeEstimate `json:"stages"`
}

// RuntimeEstimate is an estimate of the run time of one task of a stage.
type RuntimeEstimate struct {
	Stage  messages.Name `json:"stage"`
	Spread Spread        `json:"spread"`
	// Robust is a run time that a task does not exceed with the requested probability. This holds for every
	// distribution of run times whose Kullback-Leibler divergence from the estimate is at most Divergence, in nats.
	Robust     messages.Duration `json:"robust"`
	Divergence float64           `json:"divergence"`
	// Samples are run times in seconds. The estimate says that they are all equally likely. A scheduler that plans with
	// uncertain run times can use them.
	Samples []float64 `json:"samples"`
	Runs    float64   `json:"runs"` // number of observed tasks or jobs behind it; old ones count less
	Source  string    `json:"source"`
}

// Spread has three quantiles of a time, and its mean.
type Spread struct {
	Low    messages.Duration `json:"low"` // one time in ten is lower
	Median messages.Duration `json:"median"`
	High   messages.Duration `json:"high"` // one time in ten is higher
	Mean   messages.Duration `json:"mean"`
}

// EstimateRequest asks for an estimate of a job that is not submitted.
type EstimateRequest struct {
	Account messages.Name `json:"account,omitempty"` // the default is the caller
	Spec    job.JobSpec   `json:"spec"`
}

// EstimateReply is the estimate for a job.
type EstimateReply struct {
	Utility  UtilityReply      `json:"utility"`
	Declared bool              `json:"declared"` // Utility is the one that the job declares
	Stages   []RuntimeEstimate `json:"stages"`   // run times of one task each
	Wait     Spread            `json:"wait"`     // from submission to the first claim
	// Completion is the time from submission to the end of the last task.
	Completion Spread  `json:"completion"`
	Runs       float64 `json:"runs"` // number of observed jobs behind Wait and the pace; old ones count less
	Source     string  `json:"source"`
}

// ClassesReply lists the job profile classes of a site in the order of its
// configuration.
type ClassesReply struct {
	Classes []ClassEstimate `json:"classes"`
}

// ClassEstimate is what the estimator knows about a job profile class. Users see the profile, the number of samples,
// the number of accounts that submitted these samples, and the weight of the prior.
type ClassEstimate struct {
	Profile   job.Profile `json:"profile"`
	Samples   float64     `json:"samples"`           // number of accepted samples
	Outside   uint64      `json:"outside,omitempty"` // number of refused samples: outside of the template's bounds
	Accounts  int         `json:"accounts"`
	Kernels   int         `json:"kernels,omitempty"`
	Effective float64     `json:"effective,omitempty"` // number of samples that count after capping and screening
	Screened  float64     `json:"screened,omitempty"`  // part of the influence that screening removed
	Prior     float64     `json:"prior"`               // part of the estimate that comes from the prior
	// Bandwidth is the standard deviation of a kernel along each parameter.
	Bandwidth []float64 `json:"bandwidth,omitempty"`
	Mean      []float64 `json:"mean,omitempty"`      // mean of each parameter
	Deviation []float64 `json:"deviation,omitempty"` // standard deviation of each parameter
	// Moved is how far the estimate is from the previous one, as a divergence in nats. MovedBy is its standard error.
	// Both are 0 before there are two estimates.
	Moved   float64 `json:"moved,omitempty"`
	MovedBy float64 `json:"moved_by,omitempty"`
}

// SamplesRequest asks for types drawn from a job profile class.
type SamplesRequest struct {
	Class messages.Name `json:"class"`
	Draws int           `json:"draws"` // 1 to MostDraws
	Seed  uint64        `json:"seed,omitempty"`
}

// Validate returns an error for the first fault of a request. The error names the field.
func (r *SamplesRequest) Validate() error {
	if !messages.ValidName(r.Class) {
		return messages.BadName("class", r.Class)
	}
	if r.Draws < 1 || r.Draws > MostDraws {
		return messages.Errorf(messages.Invalid, "draws: must be from 1 to %d, are %d", MostDraws, r.Draws)
	}
	return nil
}

// SamplesReply has types that were drawn from a job profile class. The same seed gives the same types, as long as the
// estimator learns nothing new.
type SamplesReply struct {
	Class      messages.Name   `json:"class"`
	Parameters []string        `json:"parameters"`
	Samples    []float64       `json:"samples"`    // len(Parameters) numbers each
	Valuations []job.Valuation `json:"valuations"` // the same types as valuations; empty for a class of queued jobs
	Runs       float64         `json:"runs"`       // number of samples behind it, after capping and screening
	Prior      float64         `json:"prior"`      // part of the estimate that comes from the prior
}

// UtilityRequest asks the estimator for a utility function of a job that declares none: the worth of each class that
// the job uses.
type UtilityRequest struct {
	Account messages.Name   `json:"account"`
	Name    string          `json:"name"`
	Market  messages.Name   `json:"market"`
	Classes []messages.Name `json:"classes"` // classes of the job's stages
}

// UtilityReply has the utility that the estimator returns, and the number of runs from which it was learned. If the
// number is 0, the utility is the default: equal weights of all classes that the job uses.
type UtilityReply struct {
	Utility job.Utility `json:"utility"`
	Runs    int         `json:"runs"`
	// The estimated weights are a mean of two sets of weights: the default weights, and the weights that fit the runs
	// best. Default is the part of the default weights in this mean. It is 1 without runs, and near 0 with many runs.
	Default    float64 `json:"default"`
	Determined bool    `json:"determined"` // the runs alone determine the weights
	// Residual is the root mean square of the differences between the runs and the fit, divided by the root mean
	// square of their utilities.
	Residual float64 `json:"residual"`
	// Errors are the standard errors of the weights, in the unit of the weights. Errors is empty if there are not more
	// runs than weights.
	Errors job.Weights `json:"errors,omitempty"`
	// Condition says how much the fit amplifies noise in the runs. A noise in the runs causes an error in the weights
	// that is about Condition times as large. Condition is 0 if the runs do not determine the weights.
	Condition float64 `json:"condition"`
}
