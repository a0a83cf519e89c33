package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// Lookup returns a variable of the environment of the user who submits.
type Lookup func(name string) (value string, ok bool)

// Options are settings of a job outside its document: on the command line, and in directives.
type Options struct {
	// Flags has the definitions of the options and parses them. "candor submit" also accepts these options.
	Flags *pflag.FlagSet
	// If Wait is true, the command follows the job until the job ends.
	Wait bool
	// Export is the value of --export: variables of the user's environment, K=V pairs, ALL or NONE.
	Export []string

	// Mail means that an #SBATCH line asks for e-mail. A site that sends no e-mail ignores the request.
	Mail bool

	// Noted has options of sbatch that do not change the job, but that Slurm shows to the job. The key is the long name
	// of the option. If an option was given several times, the value is the last one.
	Noted map[string]string

	components []*Options // the further components of a heterogeneous job, without the first one

	said        []setting
	gpus        map[string]gpus // GPUs of each node, by the option of sbatch that asks for them
	inAll       string          // GPUs for all nodes together
	rules       map[string]rule
	mailOn      []string // the events for which e-mail is sent, by Candor's names for events
	mailUnknown []string // values of --mail-type that Candor does not know, as options
	mailUser    string
	lookup      Lookup
}

// rule changes the fields of a job as one option says. The argument text is the value of the option.
type rule func(job *Job, text string) error

// setting is one option with its text, as the user wrote it.
type setting struct{ flag, text string }

// takesBack reports whether the setting has no text, so that the option counts as not given.
func (s setting) takesBack() bool {
	return s.text == "" && slices.Contains([]string{"name", "chdir", "comment", "constraint", "exclude", "slurm-nodelist"}, s.flag)
}

// NewOptions returns options that are all unset. The option "--env K" names an environment variable without a value,
// and the argument `lookup` finds the value. If `lookup` is nil, every variable counts as unset.
func NewOptions(lookup Lookup) *Options {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	o := &Options{Noted: map[string]string{}, Flags: pflag.NewFlagSet("options", pflag.ContinueOnError), rules: map[string]rule{}, lookup: lookup}
	o.Flags.SortFlags = false
	o.option("array", "a", "one task for each of the `indices`: 0-15, 0-99:2,200, 0-999%4 (at most 4 at once)", setArray)
	o.option("project", "A", "the `account` of the project that pays (default: your own); --account names the account that you act as", ours(func(j *Job) *string { return &j.Spec.Project }, func(n *Names) *string { return &n.Account }))
	o.option("budget", "b", "the most that the job may cost, in `credits`; held until the job ends", setBudget)
	o.option("time", "t", "`limit` of one attempt of a task: 1h30m, 90s, 2:00:00, 1-12 (days-hours); a bare number is minutes (default: the market's)", setTime)
	o.option("market", "p", "the `market` to bid in (default: the one that the site chooses for you)", ours(func(j *Job) *string { return &j.Spec.Market }, func(n *Names) *string { return &n.Partition }))
	o.option("site", "", "the `site` that runs the job: a peer of your site, or auto for the best (default: your own)",
		ours(func(j *Job) *string { return &j.Site }, func(n *Names) *string { return &n.Cluster }))
	o.nameOptions()
	o.option("class", "c", "the `class` of slot each task takes (default: the market's first class)",
		textOf(func(j *Job) *string { return &j.Spec.Stages[0].Class }))
	o.option("tasks", "n", "`number` of tasks (default: one for each index of --array, or 1)",
		positive(func(s *jobmsg.Stage) *int { return &s.Tasks }))
	o.option("name", "J", "`name` of the job (default: the name of the file)", textOf(func(j *Job) *string { return &j.Spec.Name }))
	o.option("label", "", "a label `K=V`; the commands \"candor jobs\" and \"candor statement\" can choose jobs by label; may be repeated", setLabels)
	o.option("comment", "", "a `text` for people, shown by candor job", textOf(func(j *Job) *string { return &j.Spec.Comment }))
	o.option("notify", "", "send a message about the job to an e-mail address or webhook, `[EVENTS:]RECEIVER`;\nEVENTS are start, end (the default), failure and budget (the\nbudget is about to end); may be repeated", setNotify)
	o.option("chdir", "D", "working `directory` of the tasks (default: the current one; -: a new one for each task)",
		textOf(func(j *Job) *string { return &j.Spec.Dir }))
	o.option("env", "e", "set a variable for the tasks: `K=V`, or only K for the value of your environment; may be repeated", o.setEnv)
	o.option("export", "", "give the tasks `variables` of your environment, as sbatch does: NONE, ALL, or a list like HOME,K=V", o.setExport)
	o.option("utility", "u", "the worth of a share of each class: `map=3,reduce=2` (default: estimated)", setUtility)
	o.bidOptions()
	o.shapeOptions()
	o.allocationOptions()
	o.option("input", "", "send a `FILE` with the job into the directory of each task; FILE=NAME gives it another name; may be repeated", setInput)
	o.option("output", "", "keep the files that match a `pattern` when a task has ended well; \"candor fetch\" gets the files; may be repeated", setOutput)
	o.option("stdout", "", "write the standard output of the tasks to a `file`, not to the log;\n%j is the job, %a the index, %x the name, %u the user, %N the node",
		textOf(func(j *Job) *string { return &j.Stdout }))
	o.option("stderr", "", "write the standard error of the tasks to a `file`, as with --stdout (default: the file of --stdout)",
		textOf(func(j *Job) *string { return &j.Stderr }))
	o.hidden("stdin", textOf(func(j *Job) *string { return &j.Stdin }))
	o.option("attempts", "", "at most this `number` of attempts of a task (default: 1, and 3 for a task that cannot be started)",
		positive(func(s *jobmsg.Stage) *int { return &s.Attempts }))
	o.option("signal", "", "send a `signal` before the time limit or the end of the budget, as\nUSR2@30 (seconds; default: 60); B:USR2@30 only to the script,\nC:USR2@30 only to ranks of srun", setSignal)
	o.option("on-failure", "", "what the other tasks do after a task has failed, a `word`: continue or stop (default: continue for an array)", func(job *Job, text string) error {
		job.Spec.Stages[0].OnFailure = jobmsg.OnFailure(text)
		if on := jobmsg.OnFailure(text); on != jobmsg.GoOn && on != jobmsg.Stop {
			return fmt.Errorf("%q is neither %s nor %s", text, jobmsg.GoOn, jobmsg.Stop)
		}
		return nil
	})
	o.option("oom", "", "result of a task that ends well after its memory limit ended a process of the task,\na `word`: fail or ignore (default: ignore)", func(job *Job, text string) error {
		job.Spec.Stages[0].OOM = jobmsg.OOM(text)
		if on := jobmsg.OOM(text); on != jobmsg.FailOOM && on != jobmsg.IgnoreOOM {
			return fmt.Errorf("%q is neither %s nor %s", text, jobmsg.FailOOM, jobmsg.IgnoreOOM)
		}
		return nil
	})
	o.rules["hold"] = func(job *Job, text string) (err error) {
		job.Spec.Hold, err = strconv.ParseBool(text)
		return err
	}
	o.Flags.BoolFunc("hold", "submit the job on hold: it gets no tasks until candor release", o.check("hold"))
	o.Flags.BoolFuncP("wait", "W", "follow the job and exit with its exit code", func(text string) error {
		o.said = append(o.said, setting{"wait", text})
		wait, err := strconv.ParseBool(text)
		o.Wait = wait
		return err
	})
	return o
}

// option declares an option and its rule. When the option is read, its text is checked at once, by applying the rule to
// an empty job of one stage.
func (o *Options) option(name, short, usage string, set rule) {
	o.rules[name] = set
	o.Flags.FuncP(name, short, usage, o.check(name))
}

func (o *Options) check(name string) func(string) error {
	return func(text string) error {
		s := setting{name, text}
		o.said = append(o.said, s)
		if s.inFile() { // the option names a file, and ReadNodes reads it later
			return nil
		}
		return o.rules[name](&Job{Spec: jobmsg.JobSpec{Stages: make([]jobmsg.Stage, 1)}}, text)
	}
}

// Overlay adds the options of `top` to o. If an option is set in both, the value in `top` replaces the value in o. From
// then on, o looks up variables as `top` does.
func (o *Options) Overlay(top *Options) error {
	o.lookup = top.lookup
	if err := o.forgetGPUs(top.Noted); err != nil {
		return err
	}
	for _, s := range top.said {
		if s.takesBack() {
			o.said = append(o.said, s)
			continue
		}
		if err := o.Flags.Set(s.flag, s.text); err != nil {
			return err
		}
	}
	o.noteOver(top.Noted)
	return o.overlayComponents(top)
}

// Apply sets the options on a job. Options of a stage need a job of one stage.
func (o *Options) Apply(job *Job) error {
	if said := o.ofStage(); said != "" && len(job.Spec.Stages) != 1 {
		return messages.Errorf(messages.Invalid,
			"--%s: the job has %d stages: set the value in the file, for each stage", said, len(job.Spec.Stages))
	}
	last := o.last()
	for i, s := range o.said {
		set := o.rules[s.flag]
		if set == nil || s.takesBack() || i < last[s.flag] && !slices.Contains(repeatable, s.flag) {
			continue
		}
		if err := set(job, s.text); err != nil {
			return messages.Errorf(messages.Invalid, "--%s: %v", s.flag, err)
		}
	}
	if err := o.applyComponents(job); err != nil {
		return err
	}
	return job.finishShape()
}

// The method `last` returns, for each option, the index of its last setting. The options nodelist and slurm-nodelist
// replace each other.
func (o *Options) last() map[string]int {
	last := map[string]int{}
	for i, s := range o.said {
		last[s.flag] = i
		if strings.TrimPrefix(s.flag, "slurm-") == "nodelist" {
			last["nodelist"], last["slurm-nodelist"] = i, i
		}
	}
	return last
}

// repeatable are the options that may be given several times. If another option is given several times, only the last
// one counts.
var repeatable = []string{"env", "export", "input", "output", "label", "notify"}

// ofStage returns the name of an option that was set and that is only allowed for a job with one stage. It returns ""
// if there is no such option.
func (o *Options) ofStage() string {
	for _, s := range o.said {
		switch s.flag {
		case "array", "time", "class", "tasks", "attempts", "gang", "cpus", "memory", "gpus", "disk", "exclusive", "constraint", "nodelist", "slurm-nodelist", "exclude",
			"cpus-per-gpu", "mem-per-cpu", "mem-per-gpu", "mincpus", "input", "output", "stdin", "stdout", "stderr", "on-failure", "oom", "signal":
			return s.flag
		}
	}
	return ""
}

func textOf(field func(*Job) *string) rule {
	return func(job *Job, text string) error {
		if text == "" {
			return fmt.Errorf("must not be empty")
		}
		*field(job) = text
		return nil
	}
}

func positive(field func(*jobmsg.Stage) *int) rule {
	return func(job *Job, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("must be a whole number from 1 on")
		}
		*field(&job.Spec.Stages[0]) = n
		return nil
	}
}

func setNotify(job *Job, text string) error {
	if text == "" {
		return fmt.Errorf("must not be empty")
	}
	job.Spec.Notify = append(job.Spec.Notify, parseNotify(text))
	return nil
}

// parseNotify reads "end,failure:ada@example.org", or a receiver alone.
func parseNotify(text string) jobmsg.Notify {
	before, to, _ := strings.Cut(text, ":")
	events := strings.Split(before, ",")
	for _, event := range events {
		if !slices.Contains(jobmsg.NotifyEvents, event) {
			return jobmsg.Notify{To: text}
		}
	}
	return jobmsg.Notify{To: to, On: events}
}

// setLabels reads labels K=V, with commas between several.
func setLabels(job *Job, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, given := strings.Cut(part, "=")
		if !given {
			return fmt.Errorf("%q: write a label as K=V", part)
		}
		if err := jobmsg.CheckLabel(name, value); err != nil {
			return errors.New(messages.Detail(err))
		}
		job.Spec.Labels = job.Spec.Labels.Set(name, value)
	}
	return nil
}

// setSignal reads the option in the form of sbatch, [B:]SIGNAL[@SECONDS], and also the letter C in place of B. With B,
// only the script gets the signal. With C, only the processes that srun has started get it; sbatch does this if B is
// not given.
func setSignal(job *Job, text string) error {
	rest, at, timed := strings.Cut(text, "@")
	var s jobmsg.EarlySignal
	for flag, name, has := strings.Cut(rest, ":"); has; flag, name, has = strings.Cut(rest, ":") {
		if strings.Trim(flag, "BCR") != "" {
			return fmt.Errorf("%q: write USR2@30, or B:USR2@30 only for the script", text)
		}
		s.First = s.First || strings.Contains(flag, "B")
		s.Rest = !s.First && (s.Rest || strings.Contains(flag, "C"))
		rest = name
	}
	if timed {
		seconds, err := strconv.ParseUint(at, 10, 16)
		if err != nil || seconds == 0 {
			return fmt.Errorf("%q: the time before the limit is a number of seconds from 1 to 65535", text)
		}
		s.Before = messages.Duration(seconds) * 1e9
	}
	var err error
	s.Name, err = jobmsg.ParseSignal(rest)
	job.Spec.Stages[0].Signal = &s
	return err
}

func setBudget(job *Job, text string) (err error) {
	job.HasBudget = true
	job.Spec.Budget, err = messages.ParseCredits(text)
	return err
}

func setTime(job *Job, text string) (err error) {
	job.Spec.Stages[0].TimeLimit, err = ParseTime(text)
	return err
}

func setArray(job *Job, text string) error {
	ranges, most, err := parseArray(text)
	stage := &job.Spec.Stages[0]
	stage.Array, stage.MaxRunning = ranges, cmp.Or(most, stage.MaxRunning)
	return err
}

func (o *Options) setEnv(job *Job, text string) error {
	key, value, given := strings.Cut(text, "=")
	if !jobmsg.ValidVariable(key) {
		return fmt.Errorf("%q is not the name of a variable: write K=V, or only K", key)
	}
	if !given {
		if value, given = o.lookup(key); !given {
			return fmt.Errorf("%s is not set in your environment: give a value with %s=…", key, key)
		}
	}
	job.Spec.Env = setVariable(job.Spec.Env, key, value)
	return nil
}

// setExport sets the variables that are named in the text, and records the words ALL and NONE. The caller carries out
// ALL (all variables of the environment), because only the caller knows the whole environment.
func (o *Options) setExport(job *Job, text string) error {
	o.Export = nil
	for part := range strings.SplitSeq(text, ",") {
		key, _, given := strings.Cut(part, "=")
		if part == "NONE" || part == "ALL" {
			o.Export = append(o.Export, part)
			continue
		}
		if _, set := o.lookup(key); !given && !set {
			continue // as with sbatch, a name that is not a variable of the user is ignored
		}
		if err := o.setEnv(job, part); err != nil {
			return err
		}
	}
	return nil
}

func setUtility(job *Job, text string) error {
	u := &jobmsg.Utility{}
	for part := range strings.SplitSeq(text, ",") {
		class, weightText, ok := strings.Cut(part, "=")
		weight, err := strconv.ParseFloat(weightText, 64)
		if !ok || err != nil || math.IsNaN(weight) || math.IsInf(weight, 0) {
			return fmt.Errorf("%q: write a weight for each class, like map=3,reduce=2", part)
		}
		u.Weights = append(u.Weights, jobmsg.ClassWeight{Class: class, Weight: weight})
	}
	sort.SliceStable(u.Weights, func(i, j int) bool { return u.Weights[i].Class < u.Weights[j].Class })
	job.Spec.Utility = u
	return nil
}
