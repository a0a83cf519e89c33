package nodeagent

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// adopt takes over the tasks that outlived an earlier agent of this node. It ends tasks for which the node no longer
// has slots.
func (a *Agent) adopt() {
	if a.lasting == nil {
		a.files.manifests.sweep(nil)
		return
	}
	tasks := a.lasting.Adopt(func(f agent.Finished) {
		if a.hooks != nil {
			// this runs after the call of Adopt below
			a.queue.post(func(messages.Time) { a.hooks.Leave(f.Attempt.Task.Job) })
		}
		if l := a.files.manifests.find(f.Attempt.Task); l != nil {
			go func() { a.report(a.files.settle(a.life, f, l)) }()
			return
		}
		a.report(f)
	})
	a.files.manifests.sweep(tasks)
	if a.hooks != nil {
		for _, t := range tasks {
			a.hooks.Adopt(t.Attempt.Task.Job)
		}
	}
	for _, t := range tasks {
		if a.state.Adopt(t.Attempt, t.Class, t.Width, t.Suspended) {
			a.running[t.Attempt] = &running{process: t.Process, granted: time.Now()}
			a.metrics.starts.Inc()
		} else {
			t.Process.Stop(0)
			a.lasting.Confirm(t.Attempt)
		}
	}
}

// If the end of the agent's lease has changed, keep tells it to the runner, which ends the tasks at this time. The
// agent calls keep before it starts other tasks.
func (a *Agent) keep(now messages.Time) {
	if until := a.state.Expiry(); a.real != nil && a.state.Joined() && until != a.lastsUntil {
		a.lastsUntil = until
		a.real.Keep(boottime.Now() + until.Sub(now).Std())
	}
}
