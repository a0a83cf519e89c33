package executor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestExecutorIsReplacedOnceIdle restarts an agent with another configuration. Its executor must be replaced when it
// has no tasks. A task that is submitted meanwhile must start on the new executor.
func TestExecutorIsReplacedOnceIdle(t *testing.T) {
	c := runner.Config{Site: "home", Node: "n1", Dir: t.TempDir()}
	k := openAs(t, c)
	before := inForce(k)
	if len(before) != 2 || slices.Contains(k.Abilities(), agent.AbilityOutdated) {
		t.Fatalf("the first has %v", k.Abilities())
	}
	begin(k, 1, "echo $PPID; exec sleep 1000")
	old := pidOf(t, output(t, k, 1))
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}

	c.OutputLimit = 1 << 20
	k = openAs(t, c)
	var tasks []runner.Adopted
	ended := make(chan agent.Finished, 4)
	tasks = k.Adopt(func(f agent.Finished) { ended <- f })
	if len(tasks) != 1 || !slices.Equal(inForce(k), before) || !slices.Contains(k.Abilities(), agent.AbilityOutdated) {
		t.Fatalf("with a task of before it has %v, %v", tasks, k.Abilities())
	}
	_, done := begin(k, 2, "echo $PPID")
	wait(t, done)
	if got := pidOf(t, output(t, k, 2)); got != old {
		t.Errorf("the next task is of executor %d, not %d", got, old)
	}
	tasks[0].Process.Stop(0)
	wait(t, ended)
	k.Confirm(attempt(1))
	k.Confirm(attempt(2))
	for i := 3; ; i++ { // no task may be lost, whenever it is submitted
		_, done := begin(k, i, "echo $PPID")
		if f := wait(t, done); f.Outcome != agent.Exited {
			t.Fatalf("task %d: %+v", i, f)
		}
		if pidOf(t, output(t, k, i)) != old {
			break
		}
		k.Confirm(attempt(i))
	}
	gone(t, old)
	await.Until(t, "another configuration is in force", func() bool {
		now := inForce(k)
		return len(now) == 2 && now[0] == before[0] && now[1] != before[1] && !slices.Contains(k.Abilities(), agent.AbilityOutdated)
	})
}

func inForce(k *executor.Client) []messages.Name {
	return slices.DeleteFunc(slices.Clone(k.Abilities()), func(n messages.Name) bool {
		return !strings.HasPrefix(n, "build-") && !strings.HasPrefix(n, "tasks-")
	})
}
