package jobfile

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/messages"
)

// Lookup finds a variable in the environment of the user who submits.
type Lookup func(name string) (value string, ok bool)

// Options are what can be said about a job outside its document: on the
// command line, and in directives.
type Options struct {
	// Flags parses the options. It is the very set that "candor submit" adds
	// to its own flags.
	Flags *pflag.FlagSet
	// Wait asks to follow the job until it ends.
	Wait bool
	// Export names what sbatch's --export asks for: variables of the user's
	// environment, K=V pairs, ALL or NONE.
	Export []string

	said     []setting
	name     string
	project  messages.Name
	market   messages.Name
	site     messages.Name
	class    messages.Name
	budget   *messages.Credits
	time     *messages.Duration
	tasks    int
	ntasks   int // sbatch's, which counts processes of one array index
	array    messages.Array
	most     int
	attempts int
	dir      string
	env      messages.Env
	utility  *messages.Utility
	bid      bid
	gang     bool
	memory   int64
	inputs   []Input
	outputs  []string
	lookup   Lookup
}

// setting is one option as the user wrote it, so that Overlay can set it again on top
// of other options.
type setting struct{ flag, text string }

// NewOptions returns options of which none is set. lookup serves "--env K"
// without a value; nil finds nothing.
func NewOptions(lookup Lookup) *Options {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	o := &Options{Flags: pflag.NewFlagSet("options", pflag.ContinueOnError), lookup: lookup}
	o.Flags.SortFlags = false
	o.option("array", "a", "one task for each of the `indices`: 0-15, 0-99:2,200, 0-999%4 (at most 4 at once)", o.setArray)
	o.option("project", "A", "the `account` of the project that pays (default: your own)", textOf(&o.project))
	o.option("budget", "b", "the most the job may cost, in `credits`; set aside until it ends", o.setBudget)
	o.option("time", "t", "`limit` of one attempt of a task: 1h30m, 90s, 2:00:00, 1-12; a bare number is minutes (default: the market's)", o.setTime)
	o.option("market", "p", "the `market` to bid in (default: the site's first)", textOf(&o.market))
	o.option("site", "", "the `site` that is to run it: a peer of yours, or auto for the best (default: your own)", textOf(&o.site))
	o.option("class", "c", "the `class` of slot each task takes (default: the market's first)", textOf(&o.class))
	o.option("tasks", "n", "`number` of tasks (default: one for each index of --array, or 1)", positive(&o.tasks))
	o.option("name", "J", "`name` of the job (default: that of the file)", textOf(&o.name))
	o.option("chdir", "D", "working `directory` of the tasks (default: the current one; - for a fresh one for each task)", textOf(&o.dir))
	o.option("env", "e", "set a variable for the tasks: `K=V`, or K alone to pass on yours; may be repeated", o.setEnv)
	o.option("export", "", "pass on `variables` of your environment as sbatch does: NONE, ALL, or a list of K and K=V", o.setExport)
	o.option("utility", "u", "what a share of each class is worth: `map=3,reduce=2` (default: estimated)", o.setUtility)
	o.bidOptions()
	o.option("memory", "", "what each task may use, a `size` such as 512M or 2G (default: the node's)", o.setMemory)
	o.option("input", "", "send a `FILE` along, into each task's own directory, or as FILE=NAME; may be repeated", o.setInput)
	o.option("output", "", "keep the files that match a `pattern` when a task has ended well, for candor fetch; may be repeated", o.setOutput)
	o.option("attempts", "", "how often a task may be tried, a `number` (default: 3)", positive(&o.attempts))
	o.Flags.BoolFuncP("wait", "W", "follow the job and exit with its exit code", func(text string) error {
		o.said = append(o.said, setting{"wait", text})
		wait, err := strconv.ParseBool(text)
		o.Wait = wait
		return err
	})
	return o
}

// option declares an option, and records each setting of it in the user's words.
func (o *Options) option(name, short, usage string, set func(string) error) {
	o.Flags.FuncP(name, short, usage, func(text string) error {
		o.said = append(o.said, setting{name, text})
		return set(text)
	})
}

// Overlay says on o everything that was said on top, so that top wins, with
// what top can look up.
func (o *Options) Overlay(top *Options) error {
	o.lookup = top.lookup
	for _, s := range top.said {
		if err := o.Flags.Set(s.flag, s.text); err != nil {
			return err
		}
	}
	if top.ntasks > 0 {
		o.ntasks = top.ntasks
	}
	return nil
}

// Apply says the options about a job. Options of a stage need a job of one
// stage.
func (o *Options) Apply(job *Job) error {
	spec := &job.Spec
	setText(&spec.Name, o.name)
	setText(&spec.Project, o.project)
	setText(&spec.Market, o.market)
	setText(&job.Site, o.site)
	setText(&spec.Dir, o.dir)
	if o.budget != nil {
		spec.Budget, job.HasBudget = *o.budget, true
	}
	if o.utility != nil {
		spec.Utility = o.utility
	}
	o.bid.apply(job)
	for _, v := range o.env {
		spec.Env = setVariable(spec.Env, v.Name, v.Value)
	}
	if said := o.ofStage(); said != "" && len(spec.Stages) != 1 {
		return messages.Errorf(messages.Invalid,
			"--%s: the job has %d stages: say it in the file, for each stage", said, len(spec.Stages))
	}
	if len(spec.Stages) == 1 {
		o.applyStage(job, &spec.Stages[0])
	}
	return nil
}

func (o *Options) setMemory(text string) (err error) {
	o.memory, err = parseSize(text)
	return err
}

func (o *Options) applyStage(job *Job, stage *messages.Stage) {
	setText(&stage.Class, o.class)
	setCount(&stage.Tasks, o.tasks)
	setCount(&stage.Attempts, o.attempts)
	if o.time != nil {
		stage.TimeLimit = *o.time
	}
	if o.array != nil {
		stage.Array = o.array
	}
	setCount(&stage.MaxRunning, o.most)
	stage.Gang = stage.Gang || o.gang
	if o.memory > 0 {
		stage.Memory = o.memory
	}
	job.Inputs = append(job.Inputs, o.inputs...)
	stage.Outputs = append(stage.Outputs, o.outputs...)
	if o.ntasks == 0 || o.tasks > 0 {
		return
	}
	if stage.Array == nil {
		stage.Tasks = o.ntasks
	} else if o.ntasks > 1 {
		job.Warnings = append(job.Warnings,
			fmt.Sprintf("#SBATCH --ntasks=%d is ignored: each index of the array is one task", o.ntasks))
	}
}

// ofStage names an option that is about one stage, "" if none was said.
func (o *Options) ofStage() string {
	for _, s := range o.said {
		switch s.flag {
		case "array", "time", "class", "tasks", "attempts", "gang", "memory", "input", "output":
			return s.flag
		}
	}
	return ""
}

func setText[S ~string](field *S, text S) {
	if text != "" {
		*field = text
	}
}

func setCount(field *int, n int) {
	if n != 0 {
		*field = n
	}
}

func textOf[S ~string](field *S) func(string) error {
	return func(text string) error {
		if text == "" {
			return fmt.Errorf("must not be empty")
		}
		*field = S(text)
		return nil
	}
}

func positive(field *int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("must be a whole number from 1 on")
		}
		*field = n
		return nil
	}
}

func (o *Options) setBudget(text string) error {
	c, err := messages.ParseCredits(text)
	o.budget = &c
	return err
}

func (o *Options) setTime(text string) error {
	d, err := ParseTime(text)
	o.time = &d
	return err
}

func (o *Options) setArray(text string) (err error) {
	o.array, o.most, err = parseArray(text)
	return err
}

func (o *Options) setEnv(text string) error {
	key, value, given := strings.Cut(text, "=")
	if !validVariable(key) {
		return fmt.Errorf("%q is not the name of a variable: write K=V, or K alone", key)
	}
	if !given {
		if value, given = o.lookup(key); !given {
			return fmt.Errorf("%s is not set in your environment: give a value with %s=…", key, key)
		}
	}
	o.env = setVariable(o.env, key, value)
	return nil
}

// setExport takes over single variables at once; ALL is left to the caller,
// who alone knows the whole environment.
func (o *Options) setExport(text string) error {
	o.Export = nil
	for part := range strings.SplitSeq(text, ",") {
		key, _, given := strings.Cut(part, "=")
		if part == "NONE" || part == "ALL" {
			o.Export = append(o.Export, part)
			continue
		}
		if _, set := o.lookup(key); !given && !set && validVariable(key) {
			continue // as for sbatch: a variable that is not set is not passed on
		}
		if err := o.setEnv(part); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) setUtility(text string) error {
	u := &messages.Utility{}
	for part := range strings.SplitSeq(text, ",") {
		class, weightText, ok := strings.Cut(part, "=")
		weight, err := strconv.ParseFloat(weightText, 64)
		if !ok || err != nil || math.IsNaN(weight) || math.IsInf(weight, 0) {
			return fmt.Errorf("%q: write a weight for each class, like map=3,reduce=2", part)
		}
		u.Weights = append(u.Weights, messages.ClassWeight{Class: class, Weight: weight})
	}
	sort.SliceStable(u.Weights, func(i, j int) bool { return u.Weights[i].Class < u.Weights[j].Class })
	o.utility = u
	return nil
}
