package nodeagent

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// adopt takes over the tasks of an earlier agent of this node, where they outlive
// it; those for which the node has no slots any more are ended.
func (a *Agent) adopt() {
	lasting, ok := a.c.Runner.(runner.Lasting)
	if !ok {
		a.forgetLuggage(nil)
		return
	}
	tasks := lasting.Adopt(func(f messages.Finished) {
		if l := a.findLuggage(f.Attempt.Task); l != nil {
			go func() {
				f := a.settle(a.life, f, l)
				a.dropLuggage(f.Attempt.Task.Job, f.Attempt.Task.Stage)
				a.report(f)
			}()
			return
		}
		a.report(f)
	})
	a.forgetLuggage(tasks)
	for _, t := range tasks {
		if a.state.Adopt(t.Attempt, t.Class, t.Held) {
			a.running[t.Attempt] = &running{process: t.Process, granted: time.Now()}
			a.metrics.start()
		} else {
			t.Process.Stop(0)
			lasting.Confirm(t.Attempt)
		}
	}
}

// last tells tasks that outlive the agent how long they may, and forgets those
// that have been reported.
func (a *Agent) last(lasting runner.Lasting, now messages.Time, reported []messages.Attempt) {
	for _, attempt := range reported {
		lasting.Confirm(attempt)
	}
	if until := a.state.Expiry(); a.state.Joined() && until != a.kept {
		a.kept = until
		lasting.Keep(until.Sub(now).Std())
	}
}
