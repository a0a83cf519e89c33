package messages

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxKey is the largest number of bytes of a key that a client chooses.
const MaxKey = 64

// More limits, like the limits in job.go.
const (
	MaxClasses = 64   // classes of a market, or weights of a utility function
	MaxRanges  = 4096 // ranges of an array
)

// Validate returns an error for the first fault of a submission that shows without knowing the site, like
// [JobSpec.Validate].
func (r *SubmitRequest) Validate() error {
	if r.Key == "" {
		return Errorf(Invalid, "key: is empty; choose one per job, and send it again with the job if no answer comes")
	}
	return cmp.Or(checkLine("key", r.Key, MaxKey), checkName("site", r.Site), r.Spec.Validate())
}

// Validate returns an error for the first fault of a job that shows without knowing the site. The error's kind is
// Invalid or TooLarge, and its message begins with the field's path. It takes at most the time to read the job once.
func (s *JobSpec) Validate() error {
	return firstOf(
		func() error { return checkLine("name", s.Name, MaxTextField) },
		func() error { return checkFreeName("project", s.Project) },
		func() error { return checkFreeName("market", s.Market) },
		func() error { return checkBudget("budget", s.Budget) },
		func() error { return s.Utility.validate("utility") },
		func() error { return s.Env.validate("env") },
		func() error { return checkDir("dir", s.Dir) },
		func() error { _, err := ParseUmask(s.Umask); return err },
		func() error { return s.Labels.validate("labels") },
		func() error { return checkLine("comment", s.Comment, MaxComment) },
		func() error { return validateNotify(s.Notify) },
		s.validateStages,
		s.validateBid,
		s.validateDependencies,
		s.validateFiles,
		s.validateSize,
	)
}

// firstOf makes checks in order until one fails, and returns its error.
func firstOf(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// inField puts the name of a field before the path in an error.
func inField(field string, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(KindOf(err), "%s.%s", field, Detail(err))
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
		return Errorf(TooLarge, "env: the environment, scripts and commands of the job have %d bytes in all, more than the limit of %d; put large data into files", program, MaxProgram)
	}
	encoded, err := marshal(s, Msgpack)
	if err == nil && len(encoded) > MaxDescription {
		err = Errorf(TooLarge, "stages: the job's description has %d bytes in all, more than the limit of %d; submit several jobs", len(encoded), MaxDescription)
	}
	return err
}

func (s *JobSpec) validateStages() error {
	if len(s.Stages) == 0 {
		return Errorf(Invalid, "stages: are missing; a job has at least one")
	}
	if len(s.Stages) > MaxStages {
		return Errorf(TooLarge, "stages: %d are more than the limit of %d; submit several jobs", len(s.Stages), MaxStages)
	}
	total := 0
	for i := range s.Stages {
		stage, path := &s.Stages[i], fmt.Sprintf("stages[%d]", i)
		if err := stage.validate(path); err != nil {
			return err
		}
		if total += stage.TaskCount(); total > MaxTasks {
			return Errorf(TooLarge, "%s.tasks: the job has more than %d tasks with this stage; submit several jobs", path, MaxTasks)
		}
	}
	if s.Numbered && (len(s.Stages) != 1 || s.Stages[0].Array == nil) {
		return Errorf(Invalid, "numbered: elements of the array of a job of one stage have numbers, and this job has no array; leave numbered out")
	}
	return s.validateOrder()
}

// Title returns a name of the job for statements: "job flights", or "a job" if it has no name.
func (s *JobSpec) Title() string {
	const most = 100 // bytes
	switch {
	case s.Name == "":
		return "a job"
	case len(s.Name) > most:
		return "job " + Clip(s.Name, most) + "…"
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
		return Errorf(Invalid, "%s.form: %q is neither %q nor %q", path, clip(string(u.Form)), Linear, Log)
	}
	if !(u.Minimum >= 0) || math.IsInf(u.Minimum, 0) {
		return Errorf(Invalid, "%s.minimum: %v must be a finite number, 0 or above", path, u.Minimum)
	}
	return u.Weights.validate(path + ".weights")
}

func (w Weights) validate(path string) error {
	if len(w) > MaxClasses {
		return Errorf(TooLarge, "%s: %d are more than the limit of %d", path, len(w), MaxClasses)
	}
	if err := weightsForm.ordered(w); err != nil {
		return Errorf(Invalid, "%s: %s", path, Detail(err))
	}
	useful := false
	for _, cw := range w {
		if !ValidFreeName(cw.Class) {
			return badFreeName(path, cw.Class)
		}
		if !(cw.Weight >= 0) || math.IsInf(cw.Weight, 0) {
			return Errorf(Invalid, "%s.%s: %v must be a finite number, 0 or above", path, cw.Class, cw.Weight)
		}
		useful = useful || cw.Weight > 0
	}
	if !useful {
		return Errorf(Invalid, "%s: no class has a weight above 0; give one, or leave the utility out to have it estimated", path)
	}
	return nil
}

func (e Env) validate(path string) error {
	if len(e) > MaxVariables {
		return Errorf(TooLarge, "%s: %d variables are more than the limit of %d", path, len(e), MaxVariables)
	}
	if err := envForm.ordered(e); err != nil {
		return Errorf(Invalid, "%s: %s", path, Detail(err))
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

// Validate returns why no task can have the variable; nil: tasks can.
func (v *Variable) Validate() error { return v.check("env") }

func (v *Variable) check(path string) error {
	if !ValidVariable(v.Name) {
		return Errorf(Invalid, "%s: variable %q: a name is letters, digits and '_', not beginning with a digit", path, clip(v.Name))
	}
	return checkText(path+"."+clip(v.Name), v.Value, MaxVariable-len(v.Name))
}

// ValidVariable reports whether s is a variable's name in the form of POSIX, or the name of an exported function of
// bash: "BASH_FUNC_module%%".
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

// badName returns the error for a text that is no name.
func badName(path, name string) error {
	return Errorf(Invalid, "%s: %q is no name; use a lower-case letter, then at most 62 lower-case letters, digits, '-' or '_'", path, clip(name))
}

// needName returns an error for an invalid or empty name.
func needName(path, name string) error {
	if !ValidName(name) {
		return badName(path, name)
	}
	return nil
}

// checkName returns an error for an invalid name. An empty name is valid: it means the default.
func checkName(path, name string) error {
	if name == "" {
		return nil
	}
	return needName(path, name)
}

func checkBudget(path string, c Credits) error {
	if c <= 0 {
		return Errorf(Invalid, "%s: %v must be above 0; the budget is the most that the job may cost, in credits", path, c)
	}
	if c > MaxCredits {
		return Errorf(TooLarge, "%s: %v is above the limit of %v credits", path, c, MaxCredits)
	}
	return nil
}

// checkDir returns an error for an invalid directory. No directory is valid: it means the default.
func checkDir(field, dir string) error {
	if dir != "" && dir[0] != '/' {
		return Errorf(Invalid, "%s: %q must be an absolute path; tasks run on other machines", field, clip(dir))
	}
	if clean := path.Clean(dir); clean == "/proc" || strings.HasPrefix(clean, "/proc/") {
		return Errorf(Invalid, "%s: %q is of a process, and another one on each node; name a directory of files", field, clip(dir))
	}
	return checkText(field, dir, MaxTextField)
}

// checkText returns an error for a text that cannot be passed to a process or shown.
func checkText(path, s string, limit int) error {
	switch {
	case len(s) > limit:
		return Errorf(TooLarge, "%s: %d bytes are more than the limit of %d", path, len(s), limit)
	case strings.IndexByte(s, 0) >= 0:
		return Errorf(Invalid, "%s: has a NUL byte at %d; remove it", path, strings.IndexByte(s, 0))
	case !utf8.ValidString(s):
		return Errorf(Invalid, "%s: is not valid UTF-8; encode it so", path)
	}
	return nil
}

// checkLine does the same as checkText, and also refuses control characters, because they would garble a listing.
func checkLine(path, s string, limit int) error {
	if err := checkText(path, s, limit); err != nil {
		return err
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return Errorf(Invalid, "%s: has a control character at byte %d; write it as one line of text", path, i)
	}
	return nil
}

// badFreeName returns the error for a text that is no name of a market, class or project.
func badFreeName(path, name string) error {
	return Errorf(Invalid, "%s: %q is no name; use a letter or digit, then at most 62 letters, digits, '.', '-' or '_'", path, clip(name))
}

// checkFreeName returns an error for an invalid name of a market, class or project. An empty name is valid: it means
// the default.
func checkFreeName(path, name string) error {
	if name == "" {
		return nil
	}
	return needFreeName(path, name)
}

// needFreeName returns an error for an invalid or empty name of a market, class or project.
func needFreeName(path, name string) error {
	if !ValidFreeName(name) {
		return badFreeName(path, name)
	}
	return nil
}
