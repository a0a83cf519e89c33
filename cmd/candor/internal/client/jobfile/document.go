package jobfile

import (
	"cmp"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/yamlfile"
)

// MaxDocument is the largest size of a document or script in bytes. No job within the limits of package messages is
// larger.
const MaxDocument = 4 << 20

type document struct {
	Name    text     `yaml:"name"`
	Project text     `yaml:"project"`
	Market  text     `yaml:"market"`
	Site    text     `yaml:"site"`
	Budget  *amount  `yaml:"budget"`
	Utility *utility `yaml:"utility"`
	Stages  []stage  `yaml:"stages"`
	Env     env      `yaml:"env"`
	Dir     text     `yaml:"dir"`

	// These fields make up the bid. A market's mechanism uses some of them or none.
	Rate        rate       `yaml:"rate"`
	Value       amount     `yaml:"value"`
	Delay       amount     `yaml:"delay"`
	Length      span       `yaml:"length"`
	Deadline    due        `yaml:"deadline"`
	Valuation   *valuation `yaml:"valuation"`
	Contract    text       `yaml:"contract"`
	AfterJobs   numbers    `yaml:"after_jobs"`
	AfterOK     numbers    `yaml:"after_ok"`
	AfterFailed numbers    `yaml:"after_failed"`
	AfterStart  numbers    `yaml:"after_start"`
	AfterAny    truth      `yaml:"after_any"`
	StartDelay  span       `yaml:"start_delay"`
	AfterEach   count      `yaml:"after_each"`
	Hold        truth      `yaml:"hold"`
	Begin       text       `yaml:"begin"`

	Labels  labels  `yaml:"labels"`
	Comment text    `yaml:"comment"`
	Notify  notices `yaml:"notify"`

	// Work has the fields of the only stage, for a job without "stages". In a job with "stages", every stage also gets
	// the files given here.
	Work `yaml:",inline"`
}

type stage struct {
	Name  text  `yaml:"name"`
	After names `yaml:"after"`
	Env   env   `yaml:"env"`
	Work  `yaml:",inline"`
}

// Work is the work of a stage. It is exported because the YAML reader cannot set unexported embedded structs.
type Work struct {
	Class      text     `yaml:"class"`
	Tasks      count    `yaml:"tasks"`
	Command    command  `yaml:"command"`
	Script     text     `yaml:"script"`
	TimeLimit  span     `yaml:"time_limit"`
	Attempts   count    `yaml:"attempts"`
	Array      array    `yaml:"array"`
	MaxRunning count    `yaml:"max_running"`
	Gang       truth    `yaml:"gang"`
	CPUs       count    `yaml:"cpus"`
	Memory     memory   `yaml:"memory"`
	GPUs       gpus     `yaml:"gpus"`
	GPUType    text     `yaml:"gpu_type"`
	Disk       size     `yaml:"disk"`
	Exclusive  truth    `yaml:"exclusive"`
	Constraint text     `yaml:"constraint"`
	Nodes      names    `yaml:"nodes"`
	Exclude    names    `yaml:"exclude"`
	Licenses   licenses `yaml:"licenses"`
	Inputs     inputs   `yaml:"inputs"`
	Outputs    patterns `yaml:"outputs"`
	OnFailure  text     `yaml:"on_failure"`
	OOM        text     `yaml:"oom"`
}

type utility struct {
	Form    text    `yaml:"form"`
	Weights weights `yaml:"weights"`
	Minimum number  `yaml:"minimum"`
}

// Job is a job as its document or script describes it.
type Job struct {
	Spec job.JobSpec
	// HasBudget is false if no budget is given. A given budget of 0 is refused by the site.
	HasBudget bool
	// Site is the site that must run the job; "" means the site that gets the submission.
	Site messages.Name
	// DueIn is the time from the submission to the deadline. 0 means that the deadline, if any, is in Spec.Deadline.
	DueIn messages.Duration
	// Begin is the begin time as the user wrote it. ParseBegin reads it.
	Begin string
	// Inputs are input files that the depot does not have yet. They are first stored in the depot, and then added to
	// the inputs of their stages.
	Inputs []Input
	// Here means that the job names no directory, and so runs in the directory from which it is submitted.
	Here bool
	// Stdout and Stderr are patterns for the names of output files; "" means the log. Stdin is the pattern of a file
	// that the tasks read; "" means none.
	Stdin, Stdout, Stderr string
	Append                bool // tasks append to the output files; they do not empty them first
	// Usual has the patterns of file names for standard output and standard error if no option sets them. "" means
	// sbatch's usual name.
	Usual [2]string
	// inDirectory has a file name for each path in Usual. If the path is a directory when the task starts, the output
	// goes to this file in the directory. "" means that the path is no directory.
	inDirectory [2]string
	// system is "PBS" or "Grid Engine" if the script has directives of that system, otherwise "".
	system string
	// parallel is the parallel environment that a script for Grid Engine asks for; "" means none.
	parallel string
	// home is the home directory of the user who submits a script for PBS or Grid Engine.
	home string
	// Slurm means that tasks get Slurm's environment variables.
	Slurm bool
	// Names are the names of Slurm accounts, partitions and so on in the job's options. Translate replaces them by
	// names of this site.
	Names Names
	// Typed is the command that the user typed; "" means candor submit.
	Typed string
	// Host is the machine where the job is submitted; "" means unknown.
	Host string
	// Path is the path of the script's file; "" means the script is not in a file.
	Path string
	// Commands is the directory in the user's PATH that has candor's srun. If the PATH of a script has no srun, the
	// script uses this directory. "" means that the user's PATH has no candor srun.
	Commands string
	// Warnings are sentences about ignored options.
	Warnings []string
	// Options has the options that the script's directives set. They are not yet applied to Spec.
	Options *Options

	arguments []string // arguments of the script

	relative   relative
	allocation allocation
	split      split
	components []*Job
	asked      asked
	alike      bool // all nodes must have the same label, one of the labels in brackets

	source []byte // the document; nil for a script
}

// ParseDocument reads a YAML or JSON document. Its errors are Invalid.
func ParseDocument(source []byte) (*Job, error) {
	var d document
	decoder := yamlfile.NewDecoder(source)
	if err := decoder.Decode(&d); err != nil {
		return nil, documentError(err)
	}
	if decoder.Decode(new(any)) != io.EOF {
		return nil, messages.Errorf(messages.Invalid, "the file holds several documents: submit one job at a time")
	}
	spec, err := d.spec()
	if err != nil {
		return nil, err
	}
	job := &Job{Spec: spec, Site: string(d.Site), HasBudget: d.Budget != nil, DueIn: messages.Duration(d.Deadline.in), Options: NewOptions(nil), source: source}
	if d.Begin != "" {
		if err := setBegin(job, string(d.Begin)); err != nil {
			return nil, messages.Errorf(messages.Invalid, "begin: %v", err)
		}
	}
	job.addFiles(&d)
	return job, nil
}

func documentError(err error) error {
	if errors.Is(err, io.EOF) {
		return messages.Errorf(messages.Invalid, "the file is empty: it must describe a job; see candor help job-file")
	}
	if errors.Is(err, yamlfile.ErrShape) {
		return messages.Errorf(messages.Invalid, "the document %v", err)
	}
	at, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return messages.Errorf(messages.Invalid, "%v", err)
	}
	if at.GetToken() == nil {
		return messages.Errorf(messages.Invalid, "%s", at.GetMessage())
	}
	snippet := yaml.FormatErrorWithToken("", at.GetToken(), false, true)
	_, snippet, _ = strings.Cut(snippet, "\n")
	position := at.GetToken().Position
	return messages.Errorf(messages.Invalid, "line %d, column %d: %s\n%s", position.Line, position.Column, wanted(at), strings.TrimRight(snippet, " \n"))
}

// wanted returns the message of an error of the YAML reader, without terms of YAML. If a value has the wrong shape, the
// message says which shape is right.
func wanted(err yaml.Error) string {
	if shape, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		switch shape.Expected {
		case ast.MappingType:
			return "must be fields, like budget: 1"
		case ast.SequenceType:
			return "must be a list, like [a, b]"
		}
	}
	return err.GetMessage()
}

func (d *document) spec() (job.JobSpec, error) {
	spec := job.JobSpec{Name: string(d.Name), Project: string(d.Project), Market: string(d.Market),
		Env: job.Env(d.Env), Dir: string(d.Dir),
		Rate: messages.Credits(d.Rate), Value: messages.Credits(d.Value), Delay: messages.Credits(d.Delay), Length: messages.Duration(d.Length),
		Deadline: d.Deadline.at, Valuation: d.Valuation.spec(), Contract: string(d.Contract), AfterJobs: d.AfterJobs, AfterOK: d.AfterOK, AfterFailed: d.AfterFailed, AfterStart: d.AfterStart, AfterAny: bool(d.AfterAny), StartDelay: messages.Duration(d.StartDelay), AfterEach: messages.JobID(d.AfterEach), Hold: bool(d.Hold),
		Labels: job.Labels(d.Labels), Comment: string(d.Comment), Notify: d.Notify}
	if d.Budget != nil {
		spec.Budget = messages.Credits(*d.Budget)
	}
	if d.Utility != nil {
		spec.Utility = &job.Utility{Form: job.Form(d.Utility.Form), Minimum: float64(d.Utility.Minimum),
			Weights: job.Weights(d.Utility.Weights)}
	}
	single := d.single()
	switch {
	case single == nil && len(d.Stages) == 0:
		return spec, messages.Errorf(messages.Invalid, "stages: missing: give command, script or stages")
	case single != nil && len(d.Stages) > 0:
		return spec, messages.Errorf(messages.Invalid,
			"stages: cannot go together with the fields of a stage at the top level (class, tasks, command, script, time_limit, attempts, array, max_running, gang, cpus, memory, gpus, on_failure, oom): move these fields into a stage")
	case single != nil:
		d.Stages = []stage{*single}
	}
	for i := range d.Stages {
		spec.Stages = append(spec.Stages, d.Stages[i].spec())
	}
	return spec, nil
}

// The method `single` returns the stage that the fields at the top level of the document describe. It returns nil if
// these fields are empty.
func (d *document) single() *stage {
	own := d.Work
	own.Inputs, own.Outputs = inputs{}, nil
	if reflect.ValueOf(own).IsZero() {
		return nil
	}
	return &stage{Name: singleStage, Work: own}
}

const singleStage = "main"

func (s *stage) spec() job.Stage {
	out := job.Stage{Name: string(s.Name), Class: string(s.Class), Tasks: int(s.Tasks), After: s.After,
		Command: s.Command, Script: string(s.Script), Env: job.Env(s.Env),
		TimeLimit: messages.Duration(s.TimeLimit), Attempts: int(s.Attempts), Array: s.Array.ranges,
		MaxRunning: int(s.MaxRunning), Gang: bool(s.Gang), Memory: int64(s.Memory), CPUs: int(s.CPUs),
		GPUs: s.GPUs.number, GPUType: cmp.Or(string(s.GPUType), s.GPUs.kind), Disk: int64(s.Disk), Exclusive: bool(s.Exclusive),
		Constraint: string(s.Constraint), Nodes: s.Nodes, Exclude: s.Exclude, Licenses: job.Licenses(s.Licenses), OnFailure: job.OnFailure(s.OnFailure), OOM: job.OOM(s.OOM)}
	if out.MaxRunning == 0 {
		out.MaxRunning = s.Array.most
	}
	return out
}

// Locate returns the line of the document that a message is about, or "". The message begins with the path of a field
// ("stages[0].tasks: …"). If the field is missing in the document, Locate returns the line of the nearest field that
// encloses it.
func (j *Job) Locate(message string) string {
	field, _, ok := strings.Cut(message, ":")
	if !ok || j.source == nil {
		return ""
	}
	for field != "" {
		for _, path := range []string{field, strings.TrimPrefix(field, "stages[0].")} {
			if snippet := j.at(path); snippet != "" {
				return snippet
			}
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return ""
}

// at returns the line of the document that has a field, or "" if there is none.
func (j *Job) at(field string) string {
	path, err := yaml.PathString("$." + field)
	if err != nil {
		return ""
	}
	snippet, err := path.AnnotateSource(j.source, false)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(snippet), " \n")
}
