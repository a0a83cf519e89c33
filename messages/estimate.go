package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verbs of the estimator beside VerbUtility.
const (
	VerbRuntime  = "runtime"  // RuntimeRequest → RuntimeReply
	VerbEstimate = "estimate" // EstimateRequest → EstimateReply
	VerbClasses  = "classes"  // Empty → ClassesReply
	VerbSamples  = "samples"  // SamplesRequest → SamplesReply; services and operators
)

// Limits of what the estimator is asked and answers.
const (
	MostRuntimes      = 32     // of a stage in an observation, or of an estimate
	MostDraws         = 10_000 // of one SamplesRequest
	MaxProfiles       = 256    // of a site
	MaxPriorSamples   = 4096   // of a profile
	MaxProfileNumbers = 1e9    // magnitude of a bound that is no time and no amount
)

// StageWork is what an observation says of a stage beside its status, for the
// estimate of run times.
type StageWork struct {
	Stage     Name     `json:"stage"`
	Command   string   `json:"command"` // as CommandID gives it
	TimeLimit Duration `json:"time_limit,omitempty"`
	// Runtimes of accepted attempts, from claim to finish, ascending: all of
	// them, or MostRuntimes evenly chosen ones.
	Runtimes []Duration `json:"runtimes,omitempty"`
}

// CommandID identifies what the tasks of a stage run, without telling it: equal
// for equal commands and scripts.
func CommandID(s *Stage) string {
	h := sha256.New()
	for _, part := range append([]string{s.Script}, s.Command...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Basis says what an answered utility function rests on, in a clause.
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
	Name    string       `json:"name,omitempty"`    // the job's
	Stages  []StageShape `json:"stages"`
	// Part is the quantile that the robust demand is of, in (0, 1); 0: 0.9.
	Part float64 `json:"part,omitempty"`
	// Divergence is the radius of the ball around the estimate in which the
	// robust demand is the worst, in nats; nil: by how much was observed.
	Divergence *float64 `json:"divergence,omitempty"`
}

// StageShape is what the run time of a stage's tasks is estimated from.
type StageShape struct {
	Name      Name     `json:"name"`
	Command   string   `json:"command,omitempty"` // as CommandID gives it
	Tasks     int      `json:"tasks"`
	TimeLimit Duration `json:"time_limit,omitempty"`
}

// Shape returns what the run time of the stage's tasks is estimated from.
func (s *Stage) Shape() StageShape {
	return StageShape{Name: s.Name, Command: CommandID(s), Tasks: s.TaskCount(), TimeLimit: s.TimeLimit}
}

// Validate reports what is wrong with a request, naming the field.
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

// RuntimeReply has an estimate for each stage asked about, in that order.
type RuntimeReply struct {
	Stages []RuntimeEstimate `json:"stages"`
}

// RuntimeEstimate is how long one task of a stage is taken to run.
type RuntimeEstimate struct {
	Stage  Name   `json:"stage"`
	Spread Spread `json:"spread"`
	// Robust is what a task needs at most with the probability asked for, under
	// every distribution within Divergence nats of the estimate.
	Robust     Duration `json:"robust"`
	Divergence float64  `json:"divergence"`
	// Samples are quantiles of the estimate, as equally likely seconds: what a
	// scheduler that plans with uncertain run times takes.
	Samples []float64 `json:"samples"`
	Runs    float64   `json:"runs"` // observed tasks or jobs that it rests on, faded
	Source  string    `json:"source"`
}

// Spread is three quantiles of a time, and its mean.
type Spread struct {
	Low    Duration `json:"low"` // one in ten is below
	Median Duration `json:"median"`
	High   Duration `json:"high"` // one in ten is above
	Mean   Duration `json:"mean"`
}

// EstimateRequest asks what is expected of a job that might be submitted.
type EstimateRequest struct {
	Account Name    `json:"account,omitempty"` // default: the caller
	Spec    JobSpec `json:"spec"`
}

// EstimateReply is what is expected of a job.
type EstimateReply struct {
	Utility  UtilityReply      `json:"utility"`
	Declared bool              `json:"declared"` // Utility is the job's own
	Stages   []RuntimeEstimate `json:"stages"`   // of one task each
	Wait     Spread            `json:"wait"`     // from submission to the first claim
	// Completion is from submission to the end of the last task.
	Completion Spread  `json:"completion"`
	Runs       float64 `json:"runs"` // observed jobs that Wait and the pace rest on, faded
	Source     string  `json:"source"`
}

// ClassesReply lists the job profile classes of a site in the order of its
// configuration.
type ClassesReply struct {
	Classes []ClassEstimate `json:"classes"`
}

// ClassEstimate is what is known of a job profile class.
type ClassEstimate struct {
	Profile   Profile `json:"profile"`
	Samples   float64 `json:"samples"` // taken in
	Outside   uint64  `json:"outside"` // refused: not within the template's bounds
	Accounts  int     `json:"accounts"`
	Kernels   int     `json:"kernels"`
	Effective float64 `json:"effective"` // what the samples count as, capped and screened
	Screened  float64 `json:"screened"`  // part of the influence that was screened out
	Prior     float64 `json:"prior"`     // part of the estimate that is the prior's
	// Bandwidth is the standard deviation of a kernel along each parameter.
	Bandwidth []float64 `json:"bandwidth"`
	Mean      []float64 `json:"mean"`      // of each parameter
	Deviation []float64 `json:"deviation"` // of each parameter
	// Moved is the divergence of the estimate from the one before it, in nats,
	// and MovedBy the standard error of that; 0 before there are two.
	Moved   float64 `json:"moved"`
	MovedBy float64 `json:"moved_by"`
}

// SamplesRequest asks for types drawn from a job profile class.
type SamplesRequest struct {
	Class Name   `json:"class"`
	Draws int    `json:"draws"` // 1 to MostDraws
	Seed  uint64 `json:"seed,omitempty"`
}

// Validate reports what is wrong with a request, naming the field.
func (r *SamplesRequest) Validate() error {
	if !ValidName(r.Class) {
		return badName("class", r.Class)
	}
	if r.Draws < 1 || r.Draws > MostDraws {
		return Errorf(Invalid, "draws: must be from 1 to %d, are %d", MostDraws, r.Draws)
	}
	return nil
}

// SamplesReply is types drawn from a class: the same for the same seed, as long
// as nothing new is learned.
type SamplesReply struct {
	Class      Name        `json:"class"`
	Parameters []string    `json:"parameters"`
	Samples    []float64   `json:"samples"` // len(Parameters) numbers each
	Valuations []Valuation `json:"valuations"`
	Runs       float64     `json:"runs"`  // samples that it rests on, capped and screened
	Prior      float64     `json:"prior"` // part of the estimate that is the prior's
}

// Profile is a job profile class: a template of the types that users of one
// sort of job declare, with the bounds of its parameters and what to go by until
// there are enough samples.
type Profile struct {
	Name  Name           `json:"name"`
	Class ValuationClass `json:"class"`
	// Bounds of every parameter of the class: max, with mu and delta
	// (sigmoidal, linear-decay), deadline (hard), workload (recurrent) or at1,
	// at2, … (custom: when the first, second, … of Parts is reached).
	Bounds []ParameterBounds `json:"bounds"`
	// Parts of max that a custom valuation has left at its points, from 1
	// downwards.
	Parts          []float64 `json:"parts,omitempty"`
	Epsilon        float64   `json:"eps,omitempty"`              // sigmoidal, as in Valuation
	SecondsPerUnit float64   `json:"seconds_per_unit,omitempty"` // recurrent
	// Prior is types to go by until there are 20 samples, a number for each of
	// Bounds; without, everything within the bounds is as likely.
	Prior []Sample `json:"prior,omitempty"`
	// Bandwidth is the rule by which the kernels' width is chosen: scott_full
	// (the default), silverman_full, scott_diag, silverman_diag, cross_validated.
	Bandwidth string `json:"bandwidth,omitempty"`
	// Influence is how many times an even part of the weight one account has at
	// most; 0: 2.
	Influence float64 `json:"influence,omitempty"`
	// Kernels is how many are kept before samples are merged; 0: 1024.
	Kernels int `json:"kernels,omitempty"`
}

// Sample is the parameters of one type, in the order of a profile's bounds.
type Sample []float64

// ParameterBounds is the range of one parameter of a type.
type ParameterBounds struct {
	Parameter string  `json:"parameter"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
}

// Bandwidths are the rules that a profile may name.
var Bandwidths = []string{"scott_full", "silverman_full", "scott_diag", "silverman_diag", "cross_validated"}

// Parameters names the parameters of the profile's types, in the order in
// which samples have them.
func (p *Profile) Parameters() []string {
	names := []string{"max"}
	switch p.Class {
	case Sigmoidal, LinearDecay:
		return append(names, "mu", "delta")
	case Hard:
		return append(names, "deadline")
	case Recurrent:
		return append(names, "workload")
	case Custom:
		for i := range p.Parts {
			names = append(names, fmt.Sprintf("at%d", i+1))
		}
	}
	return names
}

// Validate reports the first thing that is wrong with a profile; the message
// begins with the field's path.
func (p *Profile) Validate() error {
	if !ValidName(p.Name) {
		return badName("name", p.Name)
	}
	if !slices.Contains(ValuationClasses, p.Class) {
		return Errorf(Invalid, "class: %q is none of %v", clip(string(p.Class)), ValuationClasses)
	}
	for _, check := range []func() error{p.validateParts, p.validateBounds, p.validatePrior, p.validateRules} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Profile) validateParts() error {
	if p.Class != Custom && len(p.Parts) > 0 {
		return Errorf(Invalid, "parts: only a custom class has them; leave them out")
	}
	if p.Class == Custom && (len(p.Parts) == 0 || len(p.Parts) > 31) {
		return Errorf(Invalid, "parts: are %d; a custom class needs 1 to 31 parts of max, like [1, 0.5, 0]", len(p.Parts))
	}
	for i, part := range p.Parts {
		if !(part >= 0 && part <= 1) || i > 0 && part > p.Parts[i-1] {
			return Errorf(Invalid, "parts[%d]: must be from 0 to 1 and not above the one before, is %v", i, part)
		}
	}
	if p.Class != Sigmoidal && p.Epsilon != 0 {
		return Errorf(Invalid, "eps: only a sigmoidal class has it; leave it out")
	}
	if p.Epsilon != 0 && !(p.Epsilon >= LeastEpsilon && p.Epsilon < 0.5) {
		return Errorf(Invalid, "eps: must be from %v to below 0.5, is %v", float64(LeastEpsilon), p.Epsilon)
	}
	if (p.Class == Recurrent) != (p.SecondsPerUnit != 0) || !(p.SecondsPerUnit >= 0 && p.SecondsPerUnit <= MaxValuationTime) {
		return Errorf(Invalid, "seconds_per_unit: a recurrent class needs it, above 0, and others have none; it is %v", p.SecondsPerUnit)
	}
	return nil
}

func (p *Profile) validateBounds() error {
	want := p.Parameters()
	for i, b := range p.Bounds {
		path := fmt.Sprintf("bounds[%d]", i)
		if i >= len(want) || b.Parameter != want[i] {
			return Errorf(Invalid, "%s.parameter: %q; a class %s has the parameters %s, in this order", path, clip(b.Parameter), p.Class, strings.Join(want, ", "))
		}
		least, most := 0.0, float64(MaxValuationTime)
		if i == 0 {
			most = MaxCredits.Float()
		}
		switch {
		case !(b.Low >= least && b.Low <= most):
			return Errorf(Invalid, "%s.low: must be from %v to %v, is %v", path, least, most, b.Low)
		case !(b.High >= least && b.High <= most):
			return Errorf(Invalid, "%s.high: must be from %v to %v, is %v", path, least, most, b.High)
		case b.Low > b.High:
			return Errorf(Invalid, "%s: %v to %v is reversed; give the lower end as low", path, b.Low, b.High)
		case b.Low == b.High:
			return Errorf(Invalid, "%s: %v to %v is no interval; give two different numbers", path, b.Low, b.High)
		}
	}
	if len(p.Bounds) < len(want) {
		return Errorf(Invalid, "bounds: %s is missing; a class %s has the parameters %s", want[len(p.Bounds)], p.Class, strings.Join(want, ", "))
	}
	return nil
}

func (p *Profile) validatePrior() error {
	if len(p.Prior) > MaxPriorSamples {
		return Errorf(TooLarge, "prior: %d samples are more than the limit of %d", len(p.Prior), MaxPriorSamples)
	}
	for k, x := range p.Prior {
		if err := p.Contains(x); err != nil {
			return Errorf(Invalid, "prior[%d]: %s", k, AsError("", err).Message)
		}
	}
	return nil
}

// Contains refuses a sample that is not within the bounds.
func (p *Profile) Contains(x []float64) error {
	if len(x) != len(p.Bounds) {
		return Errorf(Invalid, "has %d numbers; a class %s has the %d parameters %s", len(x), p.Class, len(p.Bounds), strings.Join(p.Parameters(), ", "))
	}
	for j, b := range p.Bounds {
		if !(x[j] >= b.Low && x[j] <= b.High) {
			return Errorf(Invalid, "%s: must be from %v to %v, is %v", b.Parameter, b.Low, b.High, x[j])
		}
	}
	return nil
}

func (p *Profile) validateRules() error {
	if p.Bandwidth != "" && !slices.Contains(Bandwidths, p.Bandwidth) {
		return Errorf(Invalid, "bandwidth: %q is none of %s", clip(p.Bandwidth), strings.Join(Bandwidths, ", "))
	}
	if p.Influence != 0 && !(p.Influence >= 1 && p.Influence <= MaxProfileNumbers) {
		return Errorf(Invalid, "influence: must be 1 or more times an even part, is %v", p.Influence)
	}
	if p.Kernels != 0 && (p.Kernels < 64 || p.Kernels > 1<<16) {
		return Errorf(Invalid, "kernels: must be from 64 to %d, are %d", 1<<16, p.Kernels)
	}
	return nil
}

// Sample returns the parameters of a valuation as a sample of the profile;
// false if the valuation is not of the profile's shape.
func (p *Profile) Sample(v *Valuation) (Sample, bool) {
	if v.Class != p.Class {
		return nil, false
	}
	if p.Class != Custom {
		return v.Parameters(), true
	}
	if len(v.Points) != len(p.Parts) {
		return nil, false
	}
	x := Sample{v.Max}
	for i, point := range v.Points {
		if point.Part != p.Parts[i] {
			return nil, false
		}
		x = append(x, point.At)
	}
	return x, true
}

// Valuation returns the valuation of a sample of the profile; an error if it is
// none, such as a custom one whose points are out of order.
func (p *Profile) Valuation(x []float64) (Valuation, error) {
	if err := p.Contains(x); err != nil {
		return Valuation{}, err
	}
	v := Valuation{Class: p.Class, Epsilon: p.Epsilon, SecondsPerUnit: p.SecondsPerUnit}
	if p.Class == Custom {
		v.Max = x[0]
		for i, at := range x[1:] {
			v.Points = append(v.Points, ValuationPoint{At: at, Part: p.Parts[i]})
		}
		return v, v.Validate()
	}
	v, err := v.WithParameters(x)
	if err != nil {
		return v, err
	}
	return v, v.Validate()
}
