package program

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/hostlist"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// loginPath is the search path for programs after a login.
const loginPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ownEnv returns the clean environment of tasks that run as this process's user: a few of this process's variables, or
// the values that a login would set.
func ownEnv() []string {
	name, home := "nobody", "/"
	if u, err := user.Current(); err == nil {
		name, home = u.Username, u.HomeDir
	}
	return []string{
		inherited("PATH", loginPath),
		inherited("HOME", home),
		inherited("USER", name),
		inherited("LOGNAME", name),
		inherited("LANG", "C.UTF-8"),
		inherited("TMPDIR", os.TempDir()),
		"SHELL=/bin/sh",
	}
}

func inherited(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return name + "=" + v
	}
	return name + "=" + otherwise
}

// programEnv returns a base environment with the variables that all tasks of a program share. Each name occurs only
// once: with two values, the C library would decide which one a task sees.
func (c *Config) programEnv(p *agent.Program, base []string) ([]string, error) {
	e := environment{at: map[string]int{}}
	for _, v := range base {
		name, value, _ := strings.Cut(v, "=")
		e.set(name, value)
	}
	for _, v := range p.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
			return nil, messages.Errorf(messages.Invalid,
				"environment variable %q: a name must not be empty or contain '=', and neither the name nor the value may contain a zero byte", v.Name)
		}
		e.set(v.Name, v.Value)
	}
	e.set("CANDOR_SITE", c.Site)
	e.set("CANDOR_NODE", c.Node)
	e.set("CANDOR_JOB", p.Job.String())
	e.set("CANDOR_JOB_NAME", strings.ReplaceAll(p.JobName, "\x00", ""))
	e.set("CANDOR_PAYER", p.Payer)
	e.set("CANDOR_MARKET", p.Market)
	e.set("CANDOR_STAGE", p.StageName)
	e.set("CANDOR_TASKS", strconv.Itoa(p.Tasks))
	if limit := p.TimeLimit.Std(); limit > 0 {
		e.set("CANDOR_TIME_LIMIT", strconv.FormatInt(int64(limit/time.Second), 10))
	}
	if c.Commands != "" {
		e.set("CANDOR_COMMANDS", c.Commands)
	}
	e.setShape(p, c.Memory)
	return e.list, nil
}

// setShape sets variables that tell a program the resources of each of its tasks. The number of threads is the number
// of processors, unless the job sets it.
func (e *environment) setShape(p *agent.Program, all int64) {
	if p.Shape == nil {
		return
	}
	e.list = slices.DeleteFunc(e.list, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(machine.GPUVariables, name)
	})
	clear(e.at)
	for i, v := range e.list {
		name, _, _ := strings.Cut(v, "=")
		e.at[name] = i
	}
	memory := p.Memory
	switch {
	case memory == jobmsg.AllMemory:
		memory = all
	case memory == 0:
		memory = p.Shape.Memory
	}
	e.set("CANDOR_CPUS", strconv.Itoa(p.Shape.CPUs))
	e.set("CANDOR_MEMORY", strconv.FormatInt(memory, 10))
	if p.Shape.CPUs == 0 {
		return
	}
	for _, name := range []string{"OMP_NUM_THREADS", "GOMAXPROCS"} {
		if _, said := e.at[name]; !said {
			e.set(name, strconv.Itoa(p.Shape.CPUs))
		}
	}
}

// perTask names the variables that differ between the tasks of a program; a program
// cannot set them.
var perTask = [...]string{"CANDOR_TASK", "CANDOR_ATTEMPT", "CANDOR_ARRAY_INDEX", "CANDOR_NODES", "CANDOR_NODELIST", agent.StepsVariable, lease.Variable, proxy.Variable, "PWD"}

// Env returns the environment of a task: the variables of its program, its own variables, and the token for requests to
// its site. The argument `alive` is the path of the task's lease file.
func (p *Program) Env(task *agent.Grant, alive, dir string) []string {
	env := make([]string, len(p.env), len(p.env)+len(perTask)+1)
	copy(env, p.env)
	if p.homeless {
		env = append(env, "HOME="+dir)
	}
	if task.Nodes != "" {
		env = append(env, "CANDOR_NODES="+task.Nodes, "CANDOR_NODELIST="+hostlist.Join(strings.Split(task.Nodes, ",")))
	}
	if task.Steps != "" {
		env = append(env, agent.StepsVariable+"="+task.Steps)
	}
	env = append(env,
		"CANDOR_TASK="+strconv.FormatUint(uint64(task.Place()), 10),
		"CANDOR_ATTEMPT="+strconv.FormatUint(uint64(task.Attempt.Number), 10),
		"CANDOR_ARRAY_INDEX="+strconv.FormatInt(task.Array, 10),
		lease.Variable+"="+lease.Value(alive, task.Attempt),
		"PWD="+dir)
	if p.proxy != nil {
		env = append(env, proxy.Variable+"="+p.proxy.Value(p.account, task.Attempt))
	}
	return env
}

// environment is a list of variables in the form "NAME=value". Each name occurs once.
type environment struct {
	list []string
	at   map[string]int
}

// set sets a variable of all tasks of a program. It ignores the variables in perTask, which differ between the tasks.
func (e *environment) set(name, value string) {
	if slices.Contains(perTask[:], name) {
		return
	}
	if i, ok := e.at[name]; ok {
		e.list[i] = name + "=" + value
		return
	}
	e.at[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

func valueOf(env []string, name string) (value string, set bool) {
	for _, v := range env {
		if value, set = strings.CutPrefix(v, name+"="); set {
			return value, true
		}
	}
	return "", false
}
