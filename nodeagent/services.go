package nodeagent

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// listen subscribes to the node's directives and serves its logs.
func (a *Agent) listen() error {
	directives, err := a.c.Bus.Subscribe(messages.DirectiveSubject(a.c.Site, a.c.Node), func(_ string, payload []byte) {
		receive(a, payload, func(now messages.Time, d *messages.Directive) error {
			a.state.Directive(d)
			a.state.Serve(now, d.Markets)
			return nil
		})
	})
	if err != nil {
		return err
	}
	a.subscriptions = append(a.subscriptions, directives)
	logs, ok := a.c.Runner.(runner.Logs)
	if !ok {
		return nil
	}
	service, err := a.c.Bus.Serve(a.logService(logs))
	if err != nil {
		return err
	}
	a.subscriptions = append(a.subscriptions, service)
	return nil
}

// receive decodes a published message and queues it.
func receive[T any](a *Agent, payload []byte, do func(messages.Time, *T) error) {
	message := new(T)
	if err := messages.Unmarshal(payload, messages.Detect(payload, ""), message); err != nil {
		a.metrics.refused.Inc()
		a.c.Log.Warn("a message could not be read", zap.Error(err))
		return
	}
	a.queue.offer(func(now messages.Time) {
		if err := do(now, message); err != nil {
			a.metrics.refused.Inc()
			a.c.Log.Warn("a message was refused", zap.Error(err))
		}
	})
}

// logService answers for the output of tasks.
func (a *Agent) logService(logs runner.Logs) bus.Service {
	return bus.Service{
		Name: "candor-nodeagent", Version: "1.0.0", Description: "output of the tasks of node " + a.c.Node,
		Endpoints: []bus.Endpoint{{
			Name:    messages.VerbLogs,
			Subject: messages.LogsSubject(a.c.Site, a.c.Node, "*"),
			Handle: bus.Handle(messages.VerbLogs, func(ctx context.Context, caller messages.Name, r messages.LogsRequest) (messages.LogsReply, error) {
				if err := a.mayRead(logs, caller, r.Attempt); err != nil {
					return messages.LogsReply{}, err
				}
				return logs.ReadLog(ctx, r)
			}),
		}},
	}
}

// mayRead refuses whoever is neither the owner of the job nor an operator, as if the job
// had never been here.
func (a *Agent) mayRead(logs runner.Logs, caller messages.Name, of messages.Attempt) error {
	owner, err := logs.Owner(of.Task.Job)
	if err != nil {
		return err
	}
	if caller != owner && !slices.Contains(a.c.Operators, caller) {
		return runner.NoOutput(of.Task.Job)
	}
	return nil
}
