package nodeagent

import (
	"context"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/state"
)

// membersWithin bounds how long a task of an allocation waits for the nodes of the allocation's other tasks.
const membersWithin = 5 * time.Minute

const askAgain = 200 * time.Millisecond

// startInAllocation starts a task of an allocation after the leader has named the other tasks. The first task runs its
// command; the other tasks only hold their slots.
func (a *Agent) startInAllocation(s state.Start) runner.Process {
	t := &fileTask{files: a.files, hooks: a.hooks, runner: a.c.Runner, task: runner.Task{Grant: s.Grant, Program: s.Program}}
	t.context, t.cancel = context.WithCancel(a.life)
	t.prepare = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, membersWithin)
		defer cancel()
		nodes, err := a.nodesOf(ctx, s.Grant.Attempt)
		t.task.Nodes = strings.Join(nodes, ",")
		t.task.Steps = a.steps.variable(s.Grant.Attempt)
		return err
	}
	go t.run(a.life.Done(), a.report)
	return t
}

// nodesOf asks the leader for the nodes of an allocation, until the leader knows them all.
func (a *Agent) nodesOf(ctx context.Context, attempt messages.Attempt) (nodes []messages.Name, err error) {
	for {
		reply, err := ask[agent.StepReply](ctx, a, messages.VerbStep, agent.StepRequest{Attempt: attempt})
		if err == nil {
			for _, m := range reply.Members {
				nodes = append(nodes, m.Node)
			}
			return nodes, nil
		}
		select {
		case <-ctx.Done():
			return nil, messages.Errorf(messages.Unavailable, "the other nodes of the allocation are not known: %s", messages.Detail(err))
		case <-time.After(askAgain):
		}
	}
}
