package messages

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Limits on what one job may ask for. They bound what a replica stores and
// what an agent can be made to do; a request beyond them is TooLarge.
const (
	MaxStages       = 64
	MaxTasks        = 1_000_000 // of all stages of a job
	MaxArguments    = 1024
	MaxVariables    = 4096
	MaxVariable     = 128<<10 - 2 // bytes of a variable's name and value, as the kernel has it
	MaxScript       = 256 << 10   // bytes, script or all arguments of a stage
	MaxProgram      = 768 << 10   // bytes of a job's environment, scripts and arguments, of all its stages together
	MaxDescription  = 960 << 10   // bytes of a job as it is encoded: less than a command of a mailbox may have
	MaxAttemptLimit = 100
	MinMemory       = 1 << 20 // bytes: less starts no process
	MaxTextField    = 4096    // bytes of any other text
)

// JobSpec is what a user submits: the work, and what it is worth. The zero
// value of an optional field means its default.
type JobSpec struct {
	Name    string  `json:"name,omitempty"`
	Project Name    `json:"project,omitempty"` // the account that pays; default: the submitter's own
	Market  Name    `json:"market,omitempty"`  // default: the site's first market
	Budget  Credits `json:"budget"`            // the most the job may cost; held at submission
	// Utility is what a share of each class is worth; nil asks the estimator.
	Utility *Utility `json:"utility,omitempty"`
	Stages  []Stage  `json:"stages"`
	Env     Env      `json:"env,omitempty"`
	// Dir is the working directory of every task; default: a fresh directory of the task's own.
	Dir string `json:"dir,omitempty"`

	// What follows is bid in markets whose mechanism asks for it, and 0 elsewhere.

	Rate   Credits  `json:"rate,omitempty"`   // for a second on a slot
	Value  Credits  `json:"value,omitempty"`  // of the job's completion
	Delay  Credits  `json:"delay,omitempty"`  // cost of a second of waiting
	Length Duration `json:"length,omitempty"` // run time of the job; where slots are bid for one by one, of a task
	// Deadline is by when the job must have completed to be worth Value.
	Deadline Time `json:"deadline,omitempty"`
	// Valuation says what completion at any time is worth; for contracts.
	Valuation *Valuation `json:"valuation,omitempty"`
	Contract  string     `json:"contract,omitempty"` // the contract of a quote's menu that is taken
	// AfterJobs must have ended, and AfterOK have completed, before any task starts.
	AfterJobs []JobID `json:"after_jobs,omitempty"`
	AfterOK   []JobID `json:"after_ok,omitempty"`
	// Hold: the job gets no tasks until its owner, or an operator, releases it.
	Hold bool `json:"hold,omitempty"`
	// RerunOf is an earlier job: this job runs again the tasks of it that did not end well; 0: none.
	RerunOf JobID `json:"rerun_of,omitempty"`

	// Labels and Comment are for people: they change nothing about the job.
	Labels  Labels `json:"labels,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Notify asks for words about the job, where the site sends any.
	Notify []Notify `json:"notify,omitempty"`
	// Begin is when the first task may start; 0, or a time that has passed: at once.
	Begin Time `json:"begin,omitempty"`
	// Umask is what the tasks' files are made without, three octal digits as of umask(1); default: 022.
	Umask string `json:"umask,omitempty"`
}

// DefaultUmask is the umask of tasks whose job names none.
const DefaultUmask = 0o022

// ParseUmask reads the umask of a job; "" is the default.
func ParseUmask(text string) (mask uint32, err error) {
	if text == "" {
		return DefaultUmask, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || len(text) != 3 {
		return 0, Errorf(Invalid, "umask: %q must be three octal digits, such as 022 or 077", clip(text))
	}
	return uint32(n), nil
}

// Stage is a phase of a job: tasks that run the same command on one slot of
// one class each. Exactly one of Command and Script is set.
type Stage struct {
	Name  Name `json:"name"`
	Class Name `json:"class,omitempty"` // default: the market's first class
	Tasks int  `json:"tasks,omitempty"` // default: the number of Array's indices, or 1
	// After names the stages whose every task must have finished first.
	After   []Name   `json:"after,omitempty"`
	Command []string `json:"command,omitempty"`
	// Script is written to a file and run by the interpreter its first line names, /bin/sh without one.
	Script    string   `json:"script,omitempty"`
	Env       Env      `json:"env,omitempty"`
	TimeLimit Duration `json:"time_limit,omitempty"` // of one attempt; 0: the market's
	// Attempts is how often a task may be tried; default 3. Attempts lost with a node do not count.
	Attempts int   `json:"attempts,omitempty"`
	Array    Array `json:"array,omitempty"`
	// MaxRunning bounds the tasks of the stage that run at once; 0: no bound.
	MaxRunning int `json:"max_running,omitempty"`
	// Gang: all tasks of the stage start together, on as many slots at once, or none does.
	Gang bool `json:"gang,omitempty"`
	// Allocation: the tasks start together, each on a node of its own. The first one runs the command, and starts
	// others' processes as steps; the other tasks hold their slots until the first has ended.
	Allocation bool `json:"allocation,omitempty"`
	// Memory is each task's, in bytes: a bound, where its node can; -1: all memory of a node; 0: as
	// the class's unit says, times the width of the task, or as the node says.
	Memory int64 `json:"memory,omitempty"`
	// CPUs, GPUs, their type and Disk, in bytes, are each task's, where the class is sold by a
	// unit; 0: as the unit says, times the width of the task.
	CPUs    int   `json:"cpus,omitempty"`
	GPUs    int   `json:"gpus,omitempty"`
	GPUType Name  `json:"gpu_type,omitempty"` // "": any
	Disk    int64 `json:"disk,omitempty"`
	// Exclusive: each task has a whole node.
	Exclusive bool `json:"exclusive,omitempty"`
	// Constraint names the labels that a node must have to run a task, with & and |; & binds
	// tighter. Nodes are the only nodes that may run one, where any are named; Exclude may not.
	Constraint string `json:"constraint,omitempty"`
	Nodes      []Name `json:"nodes,omitempty"`
	Exclude    []Name `json:"exclude,omitempty"`
	// Width is how many slots of its class each task takes, on one node: the least number that
	// contains its shape. The site works it out; what a submission says is replaced. 0: 1.
	Width int `json:"width,omitempty"`
	// Inputs are put into each task's working directory before it starts. The
	// submitter has stored them at the depot.
	Inputs []File `json:"inputs,omitempty"`
	// Outputs are patterns, as of package path, of the files of the working directory
	// that are stored at the depot when a task has ended well.
	Outputs []string `json:"outputs,omitempty"`
	// OnFailure is what becomes of the rest of the job when a task has used up its attempts;
	// default: [GoOn] where the tasks do not need one another, else [Stop].
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Repeats says which tasks of a stage of an earlier job the tasks do again; nil: none.
	Repeats *Repeats `json:"repeats,omitempty"`
	// Interactive has the input and output of the one task streamed to its owner; nil: it
	// has no input, and its output is a log.
	Interactive *Interactive `json:"interactive,omitempty"`
	// Signal is sent to each task before its time limit; nil: none.
	Signal *EarlySignal `json:"signal,omitempty"`
	// OOM is what becomes of a task that ended well after its memory limit had ended one of its
	// processes; default: [IgnoreOOM].
	OOM OOM `json:"oom,omitempty"`
}

// OOM says whether a task fails when the memory limit ended one of its processes, and the
// task itself went on.
type OOM string

// What such a task is. It says so in either case.
const (
	FailOOM   OOM = "fail"   // failed, as if the limit had ended all of it
	IgnoreOOM OOM = "ignore" // what its exit code says
)

// Time is how long before the time limit the signal is sent.
func (e *EarlySignal) Time() Duration { return cmp.Or(e.Before, Duration(time.Minute)) }

// EarlySignal tells a task that its time limit is near, or that its node ends it.
type EarlySignal struct {
	Name   string   `json:"name"`            // such as USR2
	Before Duration `json:"before"`          // how long before the time limit; 0: a minute
	First  bool     `json:"first,omitempty"` // to the first process of the task alone, the script
	Rest   bool     `json:"rest,omitempty"`  // to all processes but the first
}

// Repeats are tasks of an earlier job that are done again. Each finds the position that it
// had there, and how many tasks there were, in its environment.
type Repeats struct {
	Tasks     int   `json:"tasks"`     // of the earlier stage
	Positions Array `json:"positions"` // in it, of each task
}

// Narrow has a stage of an earlier job, which had so many tasks, do only the tasks at some
// positions again. The tasks find the indices and positions that they had.
func (s *Stage) Narrow(positions []uint32, all int) error {
	repeats := &Repeats{Tasks: all}
	if s.Repeats != nil {
		repeats.Tasks = s.Repeats.Tasks
	}
	var indices Array
	for _, k := range positions {
		indices = indices.With(s.Array.At(int64(k)))
		position := int64(k)
		if s.Repeats != nil {
			position = s.Repeats.Positions.At(position)
		}
		repeats.Positions = repeats.Positions.With(position)
	}
	if n := max(len(indices), len(repeats.Positions)); n > MaxRanges {
		return Errorf(TooLarge, "the tasks that did not end well are in %d runs of indices, more than the %d that a job can have; submit them as several jobs with --array", n, MaxRanges)
	}
	s.Tasks, s.Array, s.Repeats = 0, indices, repeats
	return nil
}

// OnFailure says what a task that fails does to the other tasks.
type OnFailure string

// What a failed task does to others. A stage that waits for the stage of the failed task
// does not run in either case.
const (
	Stop OnFailure = "stop"     // the job ends
	GoOn OnFailure = "continue" // the others go on, and the job ends as failed when they have
)

// Independent says whether the tasks of a stage do not need one another, as far as the
// job tells: there are several, they do not start together, and no stage comes after.
func (s *JobSpec) Independent(stage int) bool {
	of := &s.Stages[stage]
	for i := range s.Stages {
		if slices.Contains(s.Stages[i].After, of.Name) {
			return false
		}
	}
	return !of.Gang && of.TaskCount() > 1
}

// Array gives the array index of each task of a stage, as ascending,
// non-overlapping ranges. Empty: task i has index i.
type Array []Range

// Range is the indices First, First+Step, … up to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	Step  int64 `json:"step"`
}

// Form is the form of a utility function.
type Form string

// The forms of a utility function of shares s with weights w: Σ w·s, Σ w·ln s.
const (
	Linear Form = "linear"
	Log    Form = "log"
)

// Utility says what a share of each class is worth to a job, up to a common
// factor: only the ratios of the weights matter.
type Utility struct {
	Form    Form    `json:"form,omitempty"` // default: linear
	Weights Weights `json:"weights"`
	// Minimum is the utility below which the job is not served (its SLO), and below which it
	// owes nothing where the market has settle: on-completion; 0: none.
	Minimum float64 `json:"minimum,omitempty"`
}

// Weights maps classes to weights, in the order of the class names; a JSON
// object on the outside.
type Weights []ClassWeight

// ClassWeight is the weight of one class.
type ClassWeight struct {
	Class  Name    `json:"class"`
	Weight float64 `json:"weight"`
}

// Of returns the weight of a class, 0 if there is none.
func (w Weights) Of(class Name) float64 {
	for _, cw := range w {
		if cw.Class == class {
			return cw.Weight
		}
	}
	return 0
}

// Env is a set of environment variables, in the order of their names; a JSON
// object on the outside.
type Env []Variable

// Variable is one environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ClassSlots is a number of slots of one class.
type ClassSlots struct {
	Class Name `json:"class"`
	Slots int  `json:"slots"`
}
