package nodeagent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// Config configures an [Agent]. Site, Node, Slots and Bus are required, and also Dir or Runner.
type Config struct {
	Site messages.Name
	// Node names this node. It is also the account with which the agent signs its requests.
	Node messages.Name
	// Slots are the slots that the node offers.
	Slots []job.ClassSlots
	// MostSuspended is how many suspended tasks the node may keep in addition to running tasks. It is limited, because
	// suspended tasks still take memory. 0 means four for each slot.
	MostSuspended int
	// Resources is everything that the node has, for display and for choosing nodes; nil means unknown. The part that
	// tasks may use is in Tasks.Machine. The field Labels has words that a stage can require, such as infiniband.
	Resources *job.Resources
	Labels    []messages.Name
	Bus       bus.Bus
	// Dir is the state directory. It has the output and the working directories of tasks.
	Dir string
	// Runner runs the tasks; nil means a [runner.Processes] on Dir. The agent does not close a runner that is given
	// here. If that runner keeps logs, the agent serves them.
	Runner runner.Runner
	// Tasks says how tasks run if Runner is nil. The agent sets the fields Site, Node, Dir and Grace of Tasks.
	Tasks runner.Config
	// Prolog and Epilog are programs of the site that run before the first and after the last task of a job: see
	// package hooks. "" means none.
	Prolog, Epilog string
	// Executor is the command that starts an executor, with which tasks outlive the agent; see package executor. Empty
	// means that tasks are the agent's own processes.
	Executor []string
	// If LeaveRunning is true, a closed agent does not end the tasks of its executor. The next agent takes them over.
	LeaveRunning bool
	// Operators may read the output of every task.
	Operators []messages.Name
	// Grace is the time from SIGTERM to SIGKILL. The default is 5 s.
	Grace time.Duration
	// CloseTimeout bounds the time that Close takes. The default is Grace plus 5 s.
	CloseTimeout time.Duration
	// Seed is the seed of all random decisions; 0 means a random seed.
	Seed uint64
	Log  *zap.Logger // nil means none
	// Several agents may share the same Metrics. The counts are then the sums over these agents. nil means no metrics.
	Metrics prometheus.Registerer
	// Clock measures the lease; it must not go back. nil means the time since the machine was started, including sleep.
	// Timers run in real time.
	Clock func() messages.Time
}

const maxSlots = 1 << 16

// Validate checks the configuration.
func (c *Config) Validate() error {
	switch {
	case !messages.ValidName(c.Site):
		return invalid("Site %q: must be a name of lower-case letters, digits, '-' and '_'", c.Site)
	case !messages.ValidName(c.Node):
		return invalid("Node %q: must be a name of lower-case letters, digits, '-' and '_'", c.Node)
	case c.MostSuspended < 0 || c.MostSuspended > agent.MaxSuspended:
		return invalid("MostSuspended %d: must be from 0 to %d", c.MostSuspended, agent.MaxSuspended)
	case c.Bus == nil:
		return invalid("Bus must be set")
	case c.Dir == "" && c.Runner == nil:
		return invalid("one of Dir and Runner must be set")
	case c.LeaveRunning && len(c.Executor) == 0 && c.Runner == nil:
		return invalid("LeaveRunning needs an Executor: other tasks end with the agent")
	case c.Grace < 0 || c.CloseTimeout < 0:
		return invalid("Grace %v and CloseTimeout %v must not be negative", c.Grace, c.CloseTimeout)
	}
	return c.validateSlots()
}

func (c *Config) validateSlots() error {
	if len(c.Slots) == 0 {
		return invalid("Slots: the node must offer at least one class")
	}
	var seen []messages.Name
	for _, s := range c.Slots {
		switch {
		case !messages.ValidFreeName(s.Class):
			return invalid("Slots: class %q: must be a name of letters, digits, '.', '-' and '_'", s.Class)
		case s.Slots < 1 || s.Slots > maxSlots:
			return invalid("Slots: class %q: has %d slots, must be 1 to %d", s.Class, s.Slots, maxSlots)
		case slices.Contains(seen, s.Class):
			return invalid("Slots: class %q is given twice", s.Class)
		}
		seen = append(seen, s.Class)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return messages.Errorf(messages.Invalid, "nodeagent: "+format, args...)
}

func (c *Config) defaults() {
	c.Grace = cmp.Or(c.Grace, runner.DefaultGrace)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, c.Grace+5*time.Second)
	c.Log = cmp.Or(c.Log, zap.NewNop())
	if c.Clock == nil {
		c.Clock = uptime
	}
}

// openRunner makes a runner if the configuration has none. The result `owned` is true if it made one; the agent then
// closes the runner.
func (c *Config) openRunner() (owned bool, err error) {
	if c.Runner != nil {
		return false, nil
	}
	c.Tasks.Site, c.Tasks.Node, c.Tasks.Dir, c.Tasks.Grace = c.Site, c.Node, c.Dir, c.Grace
	if !c.Tasks.Private { // private tasks cannot reach other nodes, and need no proxy
		if c.Tasks.Proxy, err = proxy.Open(c.Dir); err != nil {
			return false, err
		}
	}
	if len(c.Executor) == 0 {
		c.Runner, err = runner.NewProcesses(c.Tasks)
		return true, err
	}
	c.Runner, err = executor.Open(context.Background(), executor.Config{Command: c.Executor, Runner: c.Tasks, Log: c.Log})
	return true, err
}

// uptime returns the time since the machine was started, including sleep. Nobody can set this clock.
func uptime() messages.Time { return messages.Time(boottime.Now() / time.Microsecond) }
