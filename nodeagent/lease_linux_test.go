package nodeagent_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// stubborn is a task that only SIGKILL ends.
var stubborn = agent.Program{Tasks: 1, Command: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}}

// says waits until lease.Alive returns an error of the kind `want` for an attempt. If `want` is 0, it waits until Alive
// returns no error.
func says(t *testing.T, dir string, a messages.Attempt, want messages.Kind) {
	t.Helper()
	saysAfter(t, 0, dir, a, want)
}

// saysAfter does the same as says, but with a clock that is ahead by the duration `later`.
func saysAfter(t *testing.T, later time.Duration, dir string, a messages.Attempt, want messages.Kind) {
	t.Helper()
	await.Until(t, "the answer", func() bool {
		err := lease.Alive(lease.Value(filepath.Join(dir, "jobs", "ann", a.Task.Job.String(), "lane1.alive"), a), boottime.Now()+later, 0)
		return want == 0 && err == nil || want != 0 && err != nil && messages.KindOf(err) == want
	})
}

// TestGivenUpAttemptIsNotAlive checks that an attempt that was stopped, or whose lease was lost, is not alive.
func TestGivenUpAttemptIsNotAlive(t *testing.T) {
	dir, network := t.TempDir(), bus.NewMemory()
	l, clock := newLeader(t, network, time.Hour), new(clock)
	begin(t, network, func(c *nodeagent.Config) {
		c.Dir, c.Grace, c.CloseTimeout, c.Clock = dir, time.Hour, time.Second, clock.now
	})
	one, other := l.submit(stubborn), l.submit(stubborn)
	ready(t, network, one)
	ready(t, network, other)
	first, second := messages.Attempt{Task: first(one), Number: 1}, messages.Attempt{Task: first(other), Number: 1}
	says(t, dir, first, 0)
	says(t, dir, messages.Attempt{Task: first.Task, Number: 2}, messages.Fenced) // there was never such an attempt
	l.send(messages.DirectiveSubject("home", "n1"), agent.Directive{Term: 1, Stop: []messages.Attempt{first}})
	says(t, dir, first, messages.Fenced)
	says(t, dir, second, 0)
	l.set(func() { l.silent = true })
	l.pass(clock, time.Hour)
	says(t, dir, second, messages.Fenced)
	ended(t, network, other)
	says(t, dir, second, messages.Fenced)
}

// TestFrozenAgentsTasksAreNotAlive freezes an agent. When the lease ends, its tasks must no longer be alive.
func TestFrozenAgentsTasksAreNotAlive(t *testing.T) {
	dir, network := t.TempDir(), bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	thaw, frozen := make(chan struct{}), make(chan struct{})
	defer close(thaw)
	begin(t, network, func(c *nodeagent.Config) {
		c.Dir, c.Grace = dir, time.Millisecond
		c.Clock = func() messages.Time {
			select {
			case <-frozen:
				<-thaw
			default:
			}
			return messages.Time(boottime.Now() / time.Microsecond)
		}
	})
	job := l.submit(stubborn)
	ready(t, network, job)
	a := messages.Attempt{Task: first(job), Number: 1}
	says(t, dir, a, 0)
	close(frozen)
	saysAfter(t, time.Hour, dir, a, messages.Fenced)
}
