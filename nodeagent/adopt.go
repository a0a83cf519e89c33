package nodeagent

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// adopt takes over the tasks that outlived an earlier agent of this node. A task for
// which the node has no slots any more is ended.
func (a *Agent) adopt() {
	lasting, ok := a.c.Runner.(runner.Lasting)
	if !ok {
		a.files.manifests.sweep(nil)
		return
	}
	tasks := lasting.Adopt(func(f messages.Finished) {
		if l := a.files.manifests.find(f.Attempt.Task); l != nil {
			go func() { a.report(a.files.settle(a.life, f, l)) }()
			return
		}
		a.report(f)
	})
	a.files.manifests.sweep(tasks)
	for _, t := range tasks {
		if a.state.Adopt(t.Attempt, t.Class, t.Suspended) {
			a.running[t.Attempt] = &running{process: t.Process, granted: time.Now()}
			a.metrics.starts.Inc()
		} else {
			t.Process.Stop(0)
			lasting.Confirm(t.Attempt)
		}
	}
}

// lastUntil tells tasks that outlive the agent how long they may run, and forgets tasks
// whose end the leader knows.
func (a *Agent) lastUntil(lasting runner.Lasting, now messages.Time, reported []messages.Attempt) {
	for _, attempt := range reported {
		lasting.Confirm(attempt)
	}
	if until := a.state.Expiry(); a.state.Joined() && until != a.lastsUntil {
		a.lastsUntil = until
		lasting.Keep(until.Sub(now).Std())
	}
}
