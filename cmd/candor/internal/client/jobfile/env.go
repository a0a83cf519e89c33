package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages/job"
)

// AddEnvironment adds the variables of the user's environment to the job, which is the effect of the option
// --export=ALL. Each variable has the form "K=V". If the job already sets a variable, its own value stays. Variables of
// the task or connection in which candor itself runs are left out. AddEnvironment returns the names of the variables
// that no task can have, because they are too long or not text.
func (j *Job) AddEnvironment(environment []string) (left []string) {
	for _, pair := range environment {
		key, value, _ := strings.Cut(pair, "=")
		if _, set := findVariable(j.Spec.Env, key); set || ofTask(key) {
			continue
		}
		if v := (job.Variable{Name: key, Value: value}); v.Validate() != nil {
			left = append(left, key)
			continue
		}
		j.Spec.Env = setVariable(j.Spec.Env, key, value)
	}
	return left
}

// A job can be submitted from inside a task. ofTask reports whether an environment variable describes this task or its
// connection to the site.
func ofTask(name string) bool {
	return strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "CANDOR_") && name != "CANDOR_BUDGET"
}

// setVariable sets one variable in a list that is sorted by name.
func setVariable(e job.Env, name, value string) job.Env {
	i, found := findVariable(e, name)
	if found {
		e[i].Value = value
		return e
	}
	return slices.Insert(e, i, job.Variable{Name: name, Value: value})
}

// findVariable returns the index of a variable in a sorted list, or the index where it belongs.
func findVariable(e job.Env, name string) (int, bool) {
	return slices.BinarySearchFunc(e, name, func(v job.Variable, name string) int { return strings.Compare(v.Name, name) })
}

// AddSafeEnvironment does the same as AddEnvironment, but leaves out variables that seem to hold a secret. Such a
// secret would be stored in the log of every replica, together with the job's other variables. AddSafeEnvironment
// returns warnings that name the variables it left out.
func (j *Job) AddSafeEnvironment(environment []string) (warnings []string) {
	var safe, left []string
	processors := "" // number of processors of the submitting task; "" outside a task
	for _, pair := range environment {
		if n, is := strings.CutPrefix(pair, "CANDOR_CPUS="); is {
			processors = n
		}
	}
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case value == processors && slices.Contains(ThreadVariables, name): // the site set the variable to that number
		case unwanted(name):
		case secret(name):
			left = append(left, name)
		default:
			safe = append(safe, pair)
		}
	}
	if unusable := j.AddEnvironment(safe); len(unusable) > 0 {
		warnings = append(warnings, fmt.Sprintf("variables not given to the job, because each has more than %d bytes, is not UTF-8, or has a name that no shell accepts: %q", job.MaxVariable, unusable))
	}
	if len(left) > 0 {
		warnings = append(warnings, "not given to the job, because the name suggests a secret: "+strings.Join(left, ", ")+" (to give the job a variable anyway, name it with --export)")
	}
	return warnings
}

var secretWords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "PRIVATE_KEY", "API_KEY", "APIKEY", "ACCESS_KEY", "AUTH_SOCK", "COOKIE"}

func secret(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// unwanted reports whether a variable of the user's environment must not be passed on to tasks. A task has its own
// value of this variable, for example its own working directory.
func unwanted(name string) bool {
	return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "HOME", "USER", "LOGNAME", "TERM"}, name)
}
