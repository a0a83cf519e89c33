package job

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// TaskCount returns the number of the stage's tasks, at most math.MaxInt.
func (s *Stage) TaskCount() int {
	switch {
	case s.Tasks > 0:
		return s.Tasks
	case len(s.Array) > 0:
		return int(min(s.Array.Count(), math.MaxInt))
	}
	return 1
}

func (s *Stage) validate(path string) error {
	return messages.FirstOf(
		func() error { return messages.NeedName(path+".name", s.Name) },
		func() error { return messages.CheckFreeName(path+".class", s.Class) },
		func() error { return s.validateTasks(path) },
		func() error { return s.validateProgram(path) },
		func() error { return s.Env.validate(path + ".env") },
		func() error { return s.validateLimits(path) },
		func() error { return s.validateAllocation(path) },
		func() error { return s.validateShape(path) },
		func() error { return s.validateFiles(path) },
		func() error { return s.validateStream(path) },
	)
}

func (s *Stage) validateStream(path string) error {
	if s.Interactive != nil && s.TaskCount() != 1 && !s.Allocation {
		return messages.Errorf(messages.Invalid, "%s.interactive: only a stage of one task can have a stream, and this stage has %d tasks; run one task", path, s.TaskCount())
	}
	if err := s.Interactive.Validate(path + ".interactive"); err != nil || s.Signal == nil {
		return err
	}
	if s.Signal.Before < 0 {
		return messages.Errorf(messages.Invalid, "%s.signal.before: %v must not be negative", path, s.Signal.Before)
	}
	if s.Signal.First && s.Signal.Rest {
		return messages.Errorf(messages.Invalid, "%s.signal: the fields `first` and `rest` exclude each other; leave both fields out to signal all processes", path)
	}
	return CheckSignal(path+".signal.name", s.Signal.Name)
}

func (s *Stage) validateTasks(path string) error {
	if s.Tasks < 0 {
		return messages.Errorf(messages.Invalid, "%s.tasks: %d must not be negative; the default is one task", path, s.Tasks)
	}
	if s.Tasks > MaxTasks {
		return messages.Errorf(messages.TooLarge, "%s.tasks: %d is above the limit of %d for a job; submit several jobs", path, s.Tasks, MaxTasks)
	}
	if err := s.Array.validate(path + ".array"); err != nil {
		return err
	}
	if err := s.Repeats.validate(path+".repeats", s.TaskCount()); err != nil {
		return err
	}
	if n := s.Array.Count(); len(s.Array) > 0 && s.Tasks > 0 && n != int64(s.Tasks) {
		return messages.Errorf(messages.Invalid, "%s.tasks: %d, but the array has %d indices; leave the field tasks out", path, s.Tasks, n)
	}
	return nil
}

// validate checks which tasks are repeated; nil is valid.
func (r *Repeats) validate(path string, tasks int) error {
	if r == nil {
		return nil
	}
	if err := r.Positions.validate(path + ".positions"); err != nil {
		return err
	}
	last := len(r.Positions) - 1
	if r.Tasks <= 0 || r.Tasks > MaxTasks || r.Positions.Count() != int64(tasks) || r.Positions[last].last() >= int64(r.Tasks) {
		return messages.Errorf(messages.Invalid, "%s: must give a position for each of the %d tasks, from 0 to below %d", path, tasks, r.Tasks)
	}
	return nil
}

func (s *Stage) validateProgram(path string) error {
	switch {
	case len(s.Command) == 0 && s.Script == "":
		return messages.Errorf(messages.Invalid, "%s: has nothing to run; give a command or a script", path)
	case len(s.Command) > 0 && s.Script != "":
		return messages.Errorf(messages.Invalid, "%s: has both a command and a script; give one", path)
	case len(s.Command) > 0:
		return checkCommand(path+".command", s.Command)
	}
	if err := messages.CheckText(path+".script", s.Script, MaxScript); err != nil {
		return err
	}
	if !hasCommand(s.Script) {
		return messages.Errorf(messages.Invalid, "%s.script: has only comments and blank lines; add the command to run", path)
	}
	return nil
}

func checkCommand(path string, command []string) error {
	if len(command) > MaxArguments {
		return messages.Errorf(messages.TooLarge, "%s: %d arguments are more than the limit of %d; use a script", path, len(command), MaxArguments)
	}
	if strings.TrimSpace(command[0]) == "" {
		return messages.Errorf(messages.Invalid, "%s[0]: is empty; it is the program to run", path)
	}
	room := MaxScript
	for i, argument := range command {
		if err := messages.CheckText(fmt.Sprintf("%s[%d]", path, i), argument, room); err != nil {
			return err
		}
		room -= len(argument)
	}
	return nil
}

// hasCommand reports whether a script has a line that is neither blank nor a comment. Comments begin with #, as in most
// interpreters.
func hasCommand(script string) bool {
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return true
		}
	}
	return false
}

func (s *Stage) validateLimits(path string) error {
	switch {
	case s.TimeLimit < 0:
		return messages.Errorf(messages.Invalid, "%s.time_limit: %v must not be negative; the default is the time limit of the market", path, s.TimeLimit)
	case s.Attempts < 0:
		return messages.Errorf(messages.Invalid, "%s.attempts: %d must not be negative; leave it out for the default", path, s.Attempts)
	case s.Attempts > MaxAttemptLimit:
		return messages.Errorf(messages.TooLarge, "%s.attempts: %d is above the limit of %d", path, s.Attempts, MaxAttemptLimit)
	case s.OnFailure != "" && s.OnFailure != Stop && s.OnFailure != GoOn:
		return messages.Errorf(messages.Invalid, "%s.on_failure: %q is neither %s nor %s", path, messages.Clipped(string(s.OnFailure)), GoOn, Stop)
	case s.OOM != "" && s.OOM != FailOOM && s.OOM != IgnoreOOM:
		return messages.Errorf(messages.Invalid, "%s.oom: %q is neither %s nor %s", path, messages.Clipped(string(s.OOM)), FailOOM, IgnoreOOM)
	case s.Gang && s.OnFailure == GoOn:
		return messages.Errorf(messages.Invalid, "%s.on_failure: all tasks of a gang stop when a task fails; leave on_failure out", path)
	case s.MaxRunning < 0:
		return messages.Errorf(messages.Invalid, "%s.max_running: %d must not be negative; leave the field out to set no limit", path, s.MaxRunning)
	case s.Gang && s.MaxRunning > 0 && s.MaxRunning < s.TaskCount():
		return messages.Errorf(messages.Invalid, "%s.max_running: allows %d tasks at once, but the %d tasks of a gang start together; leave out the field max_running or the field gang", path, s.MaxRunning, s.TaskCount())
	}
	return nil
}

func (s *JobSpec) validateOrder() error {
	position := make(map[messages.Name]int, len(s.Stages))
	for i := range s.Stages {
		if first, twice := position[s.Stages[i].Name]; twice {
			return messages.Errorf(messages.Invalid, "stages[%d].name: %q is the name of stages[%d] too; give each stage its own name", i, s.Stages[i].Name, first)
		}
		position[s.Stages[i].Name] = i
	}
	for i := range s.Stages {
		after := s.Stages[i].After
		for k, name := range after {
			if _, known := position[name]; !known {
				return messages.Errorf(messages.Invalid, "stages[%d].after[%d]: there is no stage %q in the job", i, k, messages.Clipped(name))
			}
			if slices.Contains(after[:k], name) {
				return messages.Errorf(messages.Invalid, "stages[%d].after[%d]: %q is given twice", i, k, name)
			}
		}
	}
	if cycle := s.cycle(position); cycle != nil {
		return messages.Errorf(messages.Invalid, "stages[%d].after: stages wait for each other: %s; these stages could never start",
			position[cycle[0]], strings.Join(cycle, " after "))
	}
	return nil
}

// cycle returns the names of stages that wait for each other in a circle. The first name is repeated at the end. If
// there is no circle, it returns nil. The search goes at most MaxStages deep.
func (s *JobSpec) cycle(position map[messages.Name]int) []messages.Name {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, len(s.Stages))
	var path []messages.Name
	var visit func(i int) []messages.Name
	visit = func(i int) []messages.Name {
		name := s.Stages[i].Name
		switch state[i] {
		case closed:
			return nil
		case open:
			return append(path[slices.Index(path, name):], name)
		}
		state[i] = open
		path = append(path, name)
		for _, before := range s.Stages[i].After {
			if found := visit(position[before]); found != nil {
				return found
			}
		}
		path = path[:len(path)-1]
		state[i] = closed
		return nil
	}
	for i := range s.Stages {
		if found := visit(i); found != nil {
			return found
		}
	}
	return nil
}
