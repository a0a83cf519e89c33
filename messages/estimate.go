package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
)

// Further verbs of the estimator, next to VerbUtility.
const (
	VerbRuntime  = "runtime"  // RuntimeRequest → RuntimeReply
	VerbEstimate = "estimate" // EstimateRequest → EstimateReply
	VerbClasses  = "classes"  // Empty → ClassesReply
	VerbSamples  = "samples"  // SamplesRequest → SamplesReply; services and operators
)

// MostRuntimes is the largest number of run times of one stage in an observation, or in one estimate.
const MostRuntimes = 32

// MostDraws is the largest number of draws for one SamplesRequest.
const MostDraws = 10_000

// StageWork is what an observation has about a stage in addition to its status. The estimator learns run times from
// it.
type StageWork struct {
	Stage     Name     `json:"stage"`
	Command   string   `json:"command"` // from CommandID
	TimeLimit Duration `json:"time_limit,omitempty"`
	// Runtimes are the run times of accepted attempts, from claim to finish, in ascending order: all of them, or
	// MostRuntimes evenly chosen ones.
	Runtimes []Duration `json:"runtimes,omitempty"`
}

// CommandID returns a hash of the command or script of a stage. It identifies the command without disclosing it.
func CommandID(s *Stage) string {
	h := sha256.New()
	for _, part := range append([]string{s.Script}, s.Command...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

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
		text += "; the runs alone do not determine them"
	}
	return text + fmt.Sprintf("; %.0f %% is the default's, runs differ from the fit by %.0f %%", 100*r.Default, 100*r.Residual)
}

// RuntimeRequest asks how long the tasks of a job's stages take.
type RuntimeRequest struct {
	Account Name         `json:"account,omitempty"` // default: the caller
	Name    string       `json:"name,omitempty"`    // name of the job
	Stages  []StageShape `json:"stages"`
	// Part is the quantile of the robust demand, in (0, 1); 0: 0.9.
	Part float64 `json:"part,omitempty"`
	// Divergence bounds how far the true distribution may be from the estimate, in nats: the robust demand covers the
	// worst distribution within it. nil: it depends on the number of observations.
	Divergence *float64 `json:"divergence,omitempty"`
}

// StageShape is the data of a stage that its run times are estimated from.
type StageShape struct {
	Name      Name     `json:"name"`
	Command   string   `json:"command,omitempty"` // from CommandID
	Tasks     int      `json:"tasks"`
	TimeLimit Duration `json:"time_limit,omitempty"`
}

// Shape returns the data of the stage that its run times are estimated from.
func (s *Stage) Shape() StageShape {
	return StageShape{Name: s.Name, Command: CommandID(s), Tasks: s.TaskCount(), TimeLimit: s.TimeLimit}
}

// Validate returns an error for the first fault of a request. The error names the field.
func (r *RuntimeRequest) Validate() error {
	if len(r.Stages) == 0 || len(r.Stages) > MaxStages {
		return Errorf(Invalid, "stages: are %d; name 1 to %d", len(r.Stages), MaxStages)
	}
	if err := checkLine("name", r.Name, MaxTextField); err != nil {
		return err
	}
	for i := range r.Stages {
		s, path := &r.Stages[i], fmt.Sprintf("stages[%d]", i)
		if s.Tasks < 0 || s.Tasks > MaxTasks {
			return Errorf(TooLarge, "%s.tasks: %d must be from 0 to %d", path, s.Tasks, MaxTasks)
		}
		if s.TimeLimit < 0 {
			return Errorf(Invalid, "%s.time_limit: %v is negative; leave it out for none", path, s.TimeLimit)
		}
		if err := checkLine(path+".command", s.Command, MaxTextField); err != nil {
			return err
		}
	}
	if !(r.Part >= 0 && r.Part < 1) {
		return Errorf(Invalid, "part: must be above 0 and below 1, is %v", r.Part)
	}
	if d := r.Divergence; d != nil && !(*d >= 0 && *d <= math.MaxFloat64) {
		return Errorf(Invalid, "divergence: must be 0 or above and finite, is %v", *d)
	}
	return nil
}

// RuntimeReply has an estimate for each stage of the request, in the same order.
type RuntimeReply struct {
	Stages []RuntimeEstimate `json:"stages"`
}

// RuntimeEstimate is an estimate of the run time of one task of a stage.
type RuntimeEstimate struct {
	Stage  Name   `json:"stage"`
	Spread Spread `json:"spread"`
	// Robust is a run time that a task does not exceed with the requested probability, under every distribution
	// within Divergence nats of the estimate.
	Robust     Duration `json:"robust"`
	Divergence float64  `json:"divergence"`
	// Samples are quantiles of the estimate in seconds, all equally likely, for a scheduler that
	// plans with uncertain run times.
	Samples []float64 `json:"samples"`
	Runs    float64   `json:"runs"` // number of observed tasks or jobs behind it; old ones count less
	Source  string    `json:"source"`
}

// Spread is three quantiles of a time, and its mean.
type Spread struct {
	Low    Duration `json:"low"` // one time in ten is lower
	Median Duration `json:"median"`
	High   Duration `json:"high"` // one time in ten is higher
	Mean   Duration `json:"mean"`
}

// EstimateRequest asks for an estimate of a job that is not submitted.
type EstimateRequest struct {
	Account Name    `json:"account,omitempty"` // default: the caller
	Spec    JobSpec `json:"spec"`
}

// EstimateReply is the estimate for a job.
type EstimateReply struct {
	Utility  UtilityReply      `json:"utility"`
	Declared bool              `json:"declared"` // Utility is the one that the job declares
	Stages   []RuntimeEstimate `json:"stages"`   // run times of one task each
	Wait     Spread            `json:"wait"`     // from submission to the first claim
	// Completion is from submission to the end of the last task.
	Completion Spread  `json:"completion"`
	Runs       float64 `json:"runs"` // number of observed jobs behind Wait and the pace; old ones count less
	Source     string  `json:"source"`
}

// ClassesReply lists the job profile classes of a site in the order of its
// configuration.
type ClassesReply struct {
	Classes []ClassEstimate `json:"classes"`
}

// ClassEstimate is what the estimator knows about a job profile class. Users see the profile, the number of samples
// and of their accounts, and the weight of the prior.
type ClassEstimate struct {
	Profile   Profile `json:"profile"`
	Samples   float64 `json:"samples"`           // number of accepted samples
	Outside   uint64  `json:"outside,omitempty"` // number of refused samples: outside of the template's bounds
	Accounts  int     `json:"accounts"`
	Kernels   int     `json:"kernels,omitempty"`
	Effective float64 `json:"effective,omitempty"` // number of samples that count after capping and screening
	Screened  float64 `json:"screened,omitempty"`  // part of the influence that screening removed
	Prior     float64 `json:"prior"`               // part of the estimate that comes from the prior
	// Bandwidth is the standard deviation of a kernel along each parameter.
	Bandwidth []float64 `json:"bandwidth,omitempty"`
	Mean      []float64 `json:"mean,omitempty"`      // mean of each parameter
	Deviation []float64 `json:"deviation,omitempty"` // standard deviation of each parameter
	// Moved is how far the estimate is from the one before it, as a divergence in nats. MovedBy is the standard error
	// of Moved. Both are 0 before there are two estimates.
	Moved   float64 `json:"moved,omitempty"`
	MovedBy float64 `json:"moved_by,omitempty"`
}

// SamplesRequest asks for types drawn from a job profile class.
type SamplesRequest struct {
	Class Name   `json:"class"`
	Draws int    `json:"draws"` // 1 to MostDraws
	Seed  uint64 `json:"seed,omitempty"`
}

// Validate returns an error for the first fault of a request. The error names the field.
func (r *SamplesRequest) Validate() error {
	if !ValidName(r.Class) {
		return badName("class", r.Class)
	}
	if r.Draws < 1 || r.Draws > MostDraws {
		return Errorf(Invalid, "draws: must be from 1 to %d, are %d", MostDraws, r.Draws)
	}
	return nil
}

// SamplesReply is types drawn from a class. The same seed gives the same types, until the estimator learns something
// new.
type SamplesReply struct {
	Class      Name        `json:"class"`
	Parameters []string    `json:"parameters"`
	Samples    []float64   `json:"samples"`    // len(Parameters) numbers each
	Valuations []Valuation `json:"valuations"` // the same types as valuations; empty for a class of queued jobs
	Runs       float64     `json:"runs"`       // number of samples behind it, after capping and screening
	Prior      float64     `json:"prior"`      // part of the estimate that comes from the prior
}
