package job

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/candor-grid/candor/messages"
)

// These are limits on what one job may ask for. They bound the memory of a replica and the work of an agent. A request
// above them is refused as TooLarge.
const (
	MaxStages       = 64
	MaxTasks        = 1_000_000 // tasks of all stages of a job
	MaxArguments    = 1024
	MaxVariables    = 4096
	MaxVariable     = 128<<10 - 2 // bytes of a variable's name and value; this is the kernel's limit
	MaxScript       = 256 << 10   // bytes of a script, or of all arguments of a stage
	MaxProgram      = 768 << 10   // bytes of a job's environment, scripts and arguments, of all stages together
	MaxDescription  = 960 << 10   // bytes of an encoded job; less than the limit of a mailbox's command
	MaxAttemptLimit = 100
	MinMemory       = 1 << 20 // bytes; a process cannot start with less memory
	MaxTextField    = 4096    // bytes of any other text
)

// JobSpec is what a user submits: the work, and its worth. In an optional field, the zero value means the default.
type JobSpec struct {
	Name    string           `json:"name,omitempty"`
	Project messages.Name    `json:"project,omitempty"` // the account that pays; the default is the submitter's own
	Market  messages.Name    `json:"market,omitempty"`  // the default is the site's first market
	Budget  messages.Credits `json:"budget"`            // the most the job may cost; held at submission
	// Utility says how much a share of each class is worth to the job. nil means that the estimator chooses the
	// utility.
	Utility *Utility `json:"utility,omitempty"`
	Stages  []Stage  `json:"stages"`
	Env     Env      `json:"env,omitempty"`
	// Dir is the working directory of every task; the default is a new directory for each task.
	Dir string `json:"dir,omitempty"`

	// The following fields are the bid. A job gives the fields that its market's mechanism asks for; the other fields
	// are 0.

	Rate   messages.Credits  `json:"rate,omitempty"`   // credits for a second on a slot
	Value  messages.Credits  `json:"value,omitempty"`  // credits for the completion of the job
	Delay  messages.Credits  `json:"delay,omitempty"`  // cost of a second of waiting
	Length messages.Duration `json:"length,omitempty"` // run time of the job; where slots are sold one by one, of a task
	// Deadline is the time before which the job must complete. The field Value counts only for a job that completes
	// before its deadline.
	Deadline messages.Time `json:"deadline,omitempty"`
	// Valuation gives the worth of the job for each completion time. Markets of contracts use it.
	Valuation *Valuation `json:"valuation,omitempty"`
	Contract  string     `json:"contract,omitempty"` // the accepted contract of a quote
	// The job waits for the jobs in the four lists below. No task starts before each listed job is in the state that
	// the comment on its list names. This job ends without a start if a job in AfterOK does not complete, or a job in
	// AfterFailed completes.
	AfterJobs   []messages.JobID `json:"after_jobs,omitempty"`   // have ended
	AfterOK     []messages.JobID `json:"after_ok,omitempty"`     // have completed
	AfterFailed []messages.JobID `json:"after_failed,omitempty"` // have ended, and have not completed
	AfterStart  []messages.JobID `json:"after_start,omitempty"`  // have started a task, or ended
	// AfterAny is true if the job needs to wait for only one of the jobs in the four lists AfterJobs, AfterOK,
	// AfterFailed and AfterStart. If none of these jobs can reach the state that its list demands any more, this job
	// ends without a start.
	AfterAny bool `json:"after_any,omitempty"`
	// StartDelay is how long the first task waits after the starts of the jobs in AfterStart.
	StartDelay messages.Duration `json:"start_delay,omitempty"`
	// AfterEach is the number of another job whose tasks have the same array indices. A task of this job starts when
	// the other job's task with the same index has completed. It is cancelled if that task did not complete. 0 means
	// that this job waits for no array.
	AfterEach messages.JobID `json:"after_each,omitempty"`
	// If Hold is true, no task starts until the owner or an operator releases the job.
	Hold bool `json:"hold,omitempty"`
	// RerunOf is the number of an earlier job. This job runs the tasks of the earlier job again that did not end well.
	// 0 means that there is no earlier job.
	RerunOf messages.JobID `json:"rerun_of,omitempty"`

	// Labels and Comment are for people. They do not change how the job runs.
	Labels  Labels `json:"labels,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Notify asks for notifications about the job, if the site sends them.
	Notify []Notify `json:"notify,omitempty"`
	// Begin is the earliest start of the first task; 0 or a time in the past means now.
	Begin messages.Time `json:"begin,omitempty"`
	// Umask is the umask of the tasks, three octal digits; the default is 022.
	Umask string `json:"umask,omitempty"`
	// If Numbered is true, each element of the array of the job's only stage has a separate job number: the job's
	// number plus the element's position.
	Numbered bool `json:"numbered,omitempty"`
	// Together makes one allocation of all stages, which may differ in class, resources and nodes: a heterogeneous job.
	// All tasks start together, and the first task of the first stage runs its command. When this task has succeeded,
	// all other tasks are ended.
	Together bool `json:"together,omitempty" since:"2"`
}

// Numbers returns how many job numbers the job and the elements of its array need.
func (s *JobSpec) Numbers() int {
	switch {
	case !s.Numbered || len(s.Stages) != 1:
		return 1
	case s.Stages[0].Repeats != nil: // a rerun: the elements keep their positions in the earlier job
		return s.Stages[0].Repeats.Tasks
	}
	return s.Stages[0].TaskCount()
}

// DefaultUmask is the umask of tasks whose job sets no umask.
const DefaultUmask = 0o022

// ParseUmask reads the umask of a job; "" is the default.
func ParseUmask(text string) (mask uint32, err error) {
	if text == "" {
		return DefaultUmask, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || len(text) != 3 {
		return 0, messages.Errorf(messages.Invalid, "umask: %q must be three octal digits, such as 022 or 077", messages.Clipped(text))
	}
	return uint32(n), nil
}

// Stage is a part of a job: tasks that run the same command, each on one or more slots of one class. Exactly one of
// Command and Script is set.
type Stage struct {
	Name  messages.Name `json:"name"`
	Class messages.Name `json:"class,omitempty"` // the default is the market's first class
	Tasks int           `json:"tasks,omitempty"` // the default is the number of Array's indices, or 1
	// After names the stages whose tasks must all finish before this stage starts.
	After   []messages.Name `json:"after,omitempty"`
	Command []string        `json:"command,omitempty"`
	// Script is written to a file and run by the interpreter in its first line, or else by /bin/sh.
	Script    string            `json:"script,omitempty"`
	Env       Env               `json:"env,omitempty"`
	TimeLimit messages.Duration `json:"time_limit,omitempty"` // limit for one attempt; 0 means the market's limit
	// Attempts is how often a task may be tried; attempts lost with a node do not count. 0 means no second try for a
	// task that fails, and 3 tries for a task that cannot be started.
	Attempts int   `json:"attempts,omitempty"`
	Array    Array `json:"array,omitempty"`
	// MaxRunning bounds how many tasks of the stage run at the same time; 0 means no bound.
	MaxRunning int `json:"max_running,omitempty"`
	// Gang makes all tasks of the stage start together, or none if there are not enough slots.
	Gang bool `json:"gang,omitempty"`
	// Allocation makes the tasks start together, each on a different node. The first task runs the command, and starts
	// processes on the other tasks' nodes as steps. The other tasks only hold their slots until the first task has
	// ended.
	Allocation bool `json:"allocation,omitempty"`
	// Memory is the memory of each task in bytes. A node that can enforce it limits the task to it. -1 means all memory
	// of a node. 0 means the memory of the class's unit times the task's width, or the node's default.
	Memory int64 `json:"memory,omitempty"`
	// CPUs, GPUs, GPUType and Disk (in bytes) are what each task gets, in a class whose slots have a unit of resources.
	// 0 means the value of the unit, multiplied by the number of slots of the task.
	CPUs    int           `json:"cpus,omitempty"`
	GPUs    int           `json:"gpus,omitempty"`
	GPUType messages.Name `json:"gpu_type,omitempty"` // "" means any
	Disk    int64         `json:"disk,omitempty"`
	// Exclusive gives each task a whole node.
	Exclusive bool `json:"exclusive,omitempty"`
	// Constraint names labels that a node must have, combined with & and |; & binds tighter. If Nodes is not empty,
	// only these nodes may run tasks. Nodes in Exclude may run none.
	Constraint string          `json:"constraint,omitempty"`
	Nodes      []messages.Name `json:"nodes,omitempty"`
	Exclude    []messages.Name `json:"exclude,omitempty"`
	// Licenses is how many of the site's licences each task uses while it runs. The tasks of an allocation share
	// them.
	Licenses Licenses `json:"licenses,omitempty"`
	// Width is how many slots of its class each task takes on one node: the smallest number with room for its sizes.
	// The site computes it, and ignores a submitted value. 0 means 1.
	Width int `json:"width,omitempty"`
	// Inputs are put into each task's working directory before it starts. The
	// submitter has stored them at the depot.
	Inputs []File `json:"inputs,omitempty"`
	// Outputs are patterns in the syntax of path.Match. When a task has succeeded, matching files of its working
	// directory are stored at the depot.
	Outputs []string `json:"outputs,omitempty"`
	// OnFailure is what happens to the other tasks of the job when a task has failed in all its attempts. The default
	// is [GoOn] if the tasks do not need one another, otherwise [Stop].
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Repeats says which tasks of an earlier job the tasks of this stage repeat. nil means that they repeat none.
	Repeats *Repeats `json:"repeats,omitempty"`
	// Interactive streams the input and output of the stage's only task, or of an allocation's first task, to and from
	// the job's owner. nil means no input, and a log as output.
	Interactive *Interactive `json:"interactive,omitempty"`
	// Signal is sent to each task before its time limit, and before its job has spent its budget; nil means none.
	Signal *EarlySignal `json:"signal,omitempty"`
	// OOM is the result of a task that exits with 0 although the memory limit killed one of its processes; the default
	// is [IgnoreOOM].
	OOM OOM `json:"oom,omitempty"`
}

// OOM says whether a task fails if the memory limit killed one of its processes, but the task itself continued.
type OOM string

// A task can exit with 0 although the memory limit killed one of its processes. These are the possible results of such
// a task. In both cases, the reason of the task's end mentions the killed process.
const (
	FailOOM   OOM = "fail"   // the task fails, as if the memory limit had ended all of it
	IgnoreOOM OOM = "ignore" // the exit code decides
)

// Time returns how long before the time limit the signal is sent.
func (e *EarlySignal) Time() messages.Duration {
	return cmp.Or(e.Before, messages.Duration(time.Minute))
}

// EarlySignal is a signal that a task gets shortly before it is ended: at its time limit, at the end of its budget, or
// when its node must stop it.
type EarlySignal struct {
	Name   string            `json:"name"`            // such as USR2
	Before messages.Duration `json:"before"`          // how long before the time limit, or the end of the budget; 0 means a minute
	First  bool              `json:"first,omitempty"` // only to the task's first process, the script
	Rest   bool              `json:"rest,omitempty"`  // only to processes that srun has started
}

// Repeats are tasks of an earlier job that run again. A task's environment has the task's position in the earlier job's
// stage, and the number of tasks of that stage.
type Repeats struct {
	Tasks     int   `json:"tasks"`     // number of tasks of the earlier stage
	Positions Array `json:"positions"` // position of each task in the earlier stage
}

// Narrow is called for a copy of a stage of an earlier job. It reduces the copy to the tasks at some positions. The
// argument `all` is the number of tasks of the earlier stage. The tasks keep their indices and positions.
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
		return messages.Errorf(messages.TooLarge, "the failed tasks have indices in %d ranges, and a job can have at most %d; submit these tasks as several jobs with --array", n, MaxRanges)
	}
	s.Tasks, s.Array, s.Repeats = 0, indices, repeats
	return nil
}

// OnFailure is what happens to the other tasks of a job when one task fails.
type OnFailure string

// These values say what happens when a task has failed. With both values, a stage that waits for the stage of the
// failed task does not run.
const (
	Stop OnFailure = "stop"     // the job ends
	GoOn OnFailure = "continue" // the other tasks continue; then the job ends as failed
)

// Independent reports whether each task of a stage is useful without the stage's other tasks. It assumes this if there
// are several tasks, they need not start together, and no other stage waits for this stage.
func (s *JobSpec) Independent(stage int) bool {
	of := &s.Stages[stage]
	for i := range s.Stages {
		if slices.Contains(s.Stages[i].After, of.Name) {
			return false
		}
	}
	return !of.Gang && of.TaskCount() > 1
}

// Array is the array index of each task of a stage, as ascending ranges that do not overlap. Empty means that task i
// has index i.
type Array []Range

// Range is the indices First, First+Step, … up to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	Step  int64 `json:"step"`
}

// Form is the form of a utility function.
type Form string

// These are the forms of a utility function of shares s with weights w. Linear is Σ w·s, and Log is Σ w·ln s.
const (
	Linear Form = "linear"
	Log    Form = "log"
)

// Utility is the worth of a share of each class to a job. Only the ratios of the weights count.
type Utility struct {
	Form    Form    `json:"form,omitempty"` // the default is linear
	Weights Weights `json:"weights"`
	// Minimum is the smallest utility with which the job wants to be served (its SLO, service level objective). In a
	// market with "settle: on-completion", a job that got a lower utility pays nothing. 0 means that the job has no
	// minimum.
	Minimum float64 `json:"minimum,omitempty"`
}

// Weights are the weights of classes, in the order of the class names. In JSON they are an object.
type Weights []ClassWeight

// ClassWeight is the weight of one class.
type ClassWeight struct {
	Class  messages.Name `json:"class"`
	Weight float64       `json:"weight"`
}

// Of returns the weight of a class. If the class has no weight, it returns 0.
func (w Weights) Of(class messages.Name) float64 {
	for _, cw := range w {
		if cw.Class == class {
			return cw.Weight
		}
	}
	return 0
}

// Env is a set of environment variables, in the order of their names. In JSON it is an object.
type Env []Variable

// Variable is one environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ClassSlots is a number of slots of one class.
type ClassSlots struct {
	Class messages.Name `json:"class"`
	Slots int           `json:"slots"`
}
