package job

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// These are further limits on a job. The other limits are in job.go.
const (
	MaxClasses = 64   // classes of a market, or weights of a utility function
	MaxRanges  = 4096 // ranges of an array
)

// Validate returns an error for the first fault of a submission. Like [JobSpec.Validate], it finds only faults that do
// not depend on the site.
func (r *SubmitRequest) Validate() error {
	if r.Key == "" {
		return messages.Errorf(messages.Invalid, "key: is empty; choose a key for each job; if no answer comes, send the job again with the same key")
	}
	return cmp.Or(messages.CheckLine("key", r.Key, messages.MaxKey), messages.CheckName("site", r.Site), r.Spec.Validate())
}

// Validate returns an error for the first fault that it finds in a job. It looks only for faults that do not depend on
// the site. The error's kind is Invalid or TooLarge, and its message begins with the field's path. The cost is linear
// in the size of the job.
func (s *JobSpec) Validate() error {
	return messages.FirstOf(
		func() error { return messages.CheckLine("name", s.Name, MaxTextField) },
		func() error { return messages.CheckFreeName("project", s.Project) },
		func() error { return messages.CheckFreeName("market", s.Market) },
		func() error { return checkBudget("budget", s.Budget) },
		func() error { return s.Utility.validate("utility") },
		func() error { return s.Env.validate("env") },
		func() error { return checkDir("dir", s.Dir) },
		func() error { _, err := ParseUmask(s.Umask); return err },
		func() error { return s.Labels.validate("labels") },
		func() error { return messages.CheckLine("comment", s.Comment, MaxComment) },
		func() error { return validateNotify(s.Notify) },
		s.validateStages,
		s.validateBid,
		s.validateDependencies,
		s.validateFiles,
		s.validateSize,
	)
}

// validateSize bounds the memory that a job takes where it is stored or sent.
func (s *JobSpec) validateSize() error {
	program := s.Env.bytes()
	for i := range s.Stages {
		stage := &s.Stages[i]
		program += len(stage.Script) + stage.Env.bytes()
		for _, argument := range stage.Command {
			program += len(argument)
		}
	}
	if program > MaxProgram {
		return messages.Errorf(messages.TooLarge, "env: the environment, scripts and commands of the job have %d bytes in all, more than the limit of %d; put large data into files", program, MaxProgram)
	}
	encoded, err := wire.Encode(s, wire.Msgpack)
	if err == nil && len(encoded) > MaxDescription {
		err = messages.Errorf(messages.TooLarge, "stages: the job's description has %d bytes in all, more than the limit of %d; submit several jobs", len(encoded), MaxDescription)
	}
	return err
}

func (s *JobSpec) validateStages() error {
	if len(s.Stages) == 0 {
		return messages.Errorf(messages.Invalid, "stages: are missing; a job has at least one")
	}
	if len(s.Stages) > MaxStages {
		return messages.Errorf(messages.TooLarge, "stages: %d is above the limit of %d; submit several jobs", len(s.Stages), MaxStages)
	}
	total := 0
	for i := range s.Stages {
		stage, path := &s.Stages[i], fmt.Sprintf("stages[%d]", i)
		if err := stage.validate(path); err != nil {
			return err
		}
		if total += stage.TaskCount(); total > MaxTasks {
			return messages.Errorf(messages.TooLarge, "%s.tasks: the job has more than %d tasks with this stage; submit several jobs", path, MaxTasks)
		}
	}
	if s.Numbered && (len(s.Stages) != 1 || s.Stages[0].Array == nil) {
		return messages.Errorf(messages.Invalid, "numbered: only elements of an array can have job numbers of their own: use one stage with an array, or leave the field numbered out")
	}
	return cmp.Or(s.validateTogether(), s.validateOrder())
}

// Title returns a name of the job for account statements: "job flights", or "a job" if it has no name.
func (s *JobSpec) Title() string {
	const most = 100 // longest title, in bytes
	switch {
	case s.Name == "":
		return "a job"
	case len(s.Name) > most:
		return "job " + messages.Clip(s.Name, most) + "…"
	}
	return "job " + s.Name
}

// TaskCount returns the number of the job's tasks, at most math.MaxInt.
func (s *JobSpec) TaskCount() int {
	total := 0
	for i := range s.Stages {
		n := s.Stages[i].TaskCount()
		if total > math.MaxInt-n {
			return math.MaxInt
		}
		total += n
	}
	return total
}

// validate checks a utility function; nil is valid.
func (u *Utility) validate(path string) error {
	if u == nil {
		return nil
	}
	if u.Form != "" && u.Form != Linear && u.Form != Log {
		return messages.Errorf(messages.Invalid, "%s.form: %q is neither %q nor %q", path, messages.Clipped(string(u.Form)), Linear, Log)
	}
	if !(u.Minimum >= 0) || math.IsInf(u.Minimum, 0) {
		return messages.Errorf(messages.Invalid, "%s.minimum: %v must be a finite number, 0 or above", path, u.Minimum)
	}
	return u.Weights.validate(path + ".weights")
}

func (w Weights) validate(path string) error {
	if len(w) > MaxClasses {
		return messages.Errorf(messages.TooLarge, "%s: %d is above the limit of %d", path, len(w), MaxClasses)
	}
	if err := weightsForm.Ordered(w); err != nil {
		return messages.Errorf(messages.Invalid, "%s: %s", path, messages.Detail(err))
	}
	useful := false
	for _, cw := range w {
		if !messages.ValidFreeName(cw.Class) {
			return messages.BadFreeName(path, cw.Class)
		}
		if !(cw.Weight >= 0) || math.IsInf(cw.Weight, 0) {
			return messages.Errorf(messages.Invalid, "%s.%s: %v must be a finite number, 0 or above", path, cw.Class, cw.Weight)
		}
		useful = useful || cw.Weight > 0
	}
	if !useful {
		return messages.Errorf(messages.Invalid, "%s: no class has a weight above 0; give a weight above 0, or leave the utility out: the site then estimates it", path)
	}
	return nil
}

func (e Env) validate(path string) error {
	if len(e) > MaxVariables {
		return messages.Errorf(messages.TooLarge, "%s: %d variables are more than the limit of %d", path, len(e), MaxVariables)
	}
	if err := envForm.Ordered(e); err != nil {
		return messages.Errorf(messages.Invalid, "%s: %s", path, messages.Detail(err))
	}
	for _, v := range e {
		if err := v.check(path); err != nil {
			return err
		}
	}
	return nil
}

func (e Env) bytes() (n int) {
	for _, v := range e {
		n += len(v.Name) + len(v.Value)
	}
	return n
}

// Validate returns an error that says why no task can have the variable, or nil.
func (v *Variable) Validate() error { return v.check("env") }

func (v *Variable) check(path string) error {
	if !ValidVariable(v.Name) {
		return messages.Errorf(messages.Invalid, "%s: variable %q: a name is letters, digits and '_', not beginning with a digit", path, messages.Clipped(v.Name))
	}
	return messages.CheckText(path+"."+messages.Clipped(v.Name), v.Value, MaxVariable-len(v.Name))
}

// ValidVariable reports whether s is a variable's name in the form of POSIX, or an exported function of bash:
// "BASH_FUNC_module%%".
func ValidVariable(s string) bool {
	if function, is := strings.CutPrefix(s, "BASH_FUNC_"); is {
		if function, is = strings.CutSuffix(function, "%%"); is {
			return function != "" && len(s) <= 255 && !strings.ContainsFunc(function, func(c rune) bool { return c <= ' ' || c == '=' || c >= 0x7f })
		}
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 255
}

func checkBudget(path string, c messages.Credits) error {
	if c <= 0 {
		return messages.Errorf(messages.Invalid, "%s: %v must be above 0; the budget is the most that the job may cost, in credits", path, c)
	}
	if c > messages.MaxCredits {
		return messages.Errorf(messages.TooLarge, "%s: %v is above the limit of %v credits", path, c, messages.MaxCredits)
	}
	return nil
}

// checkDir returns an error for an invalid directory. An empty text is valid and means the default.
func checkDir(field, dir string) error {
	if dir != "" && dir[0] != '/' {
		return messages.Errorf(messages.Invalid, "%s: %q must be an absolute path; tasks run on other machines", field, messages.Clipped(dir))
	}
	if clean := path.Clean(dir); clean == "/proc" || strings.HasPrefix(clean, "/proc/") {
		return messages.Errorf(messages.Invalid, "%s: %q is a different directory for each process and node; name a directory of ordinary files", field, messages.Clipped(dir))
	}
	return messages.CheckText(field, dir, MaxTextField)
}
