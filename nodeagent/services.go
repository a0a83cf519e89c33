package nodeagent

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// listen subscribes to the node's directives and serves the logs of the node's tasks.
func (a *Agent) listen() error {
	directives, err := a.c.Bus.Subscribe(messages.DirectiveSubject(a.c.Site, a.c.Node), func(_ string, payload []byte) {
		receive(a, payload, func(now messages.Time, d *agent.Directive) error {
			a.state.Directive(now, d)
			if len(d.Warn) > 0 && a.real != nil {
				go a.warn(d.Warn)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	a.subscriptions = append(a.subscriptions, directives)
	if a.real == nil {
		return nil
	}
	service, err := a.c.Bus.Serve(bus.Service{
		Name: "candor-nodeagent", Version: "1.0.0", Description: "output of the tasks of node " + a.c.Node,
		Endpoints: []bus.Endpoint{a.logEndpoint(), a.streamEndpoint()}, Concurrency: streamConcurrency, Pace: outputPace,
	})
	if err != nil {
		return err
	}
	a.subscriptions = append(a.subscriptions, service)
	if a.c.Tasks.Proxy == nil {
		return nil
	}
	proxies, err := proxy.Serve(a.c.Tasks.Proxy, a.c.Log, a.proxy)
	if err != nil { // without the proxy, tasks run but cannot send requests
		a.c.Log.Warn("tasks cannot send requests to the site", zap.Error(err))
		return nil
	}
	a.subscriptions = append(a.subscriptions, proxies)
	return nil
}

// warn sends to running tasks the signals that the leader asked for. If a task is still starting, warn tries again for
// 5 s.
func (a *Agent) warn(all []agent.Warning) {
	for _, w := range all {
		r := agent.StreamRequest{Attempt: w.Attempt, Signal: w.Signal.Name, SignalFirst: w.Signal.First, SignalRest: w.Signal.Rest}
		err := r.Validate()
		for tries := 0; err == nil && tries < 50; tries++ {
			if _, err = a.real.Stream(context.Background(), r); messages.KindOf(err) != messages.Unavailable {
				break
			}
			err = nil
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil && messages.KindOf(err) != messages.Ended {
			a.c.Log.Info("a task did not get its early signal", zap.Stringer("job", w.Attempt.Task.Job), zap.Error(err))
		}
	}
}

// proxy sends a task's request to the leader, once. The task's process repeats its request itself. If the agent repeated
// it also, a job could be submitted after its user was told that the submission failed.
func (a *Agent) proxy(ctx context.Context, of messages.Attempt, verb string, request []byte) ([]byte, error) {
	runs := make(chan bool, 1)
	a.queue.post(func(messages.Time) {
		_, here := a.running[of]
		runs <- here
	})
	select {
	case here := <-runs:
		if !here {
			return nil, messages.Errorf(messages.Fenced, "the attempt has ended: a task can send requests only while it runs")
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.ended:
		return nil, messages.Errorf(messages.Unavailable, "the node's agent ends")
	}
	ctx, cancel := context.WithTimeout(ctx, bus.RequestTimeout)
	defer cancel()
	reply, err := ask[agent.ProxyReply](ctx, a, agent.VerbProxy, agent.ProxyRequest{Attempt: of, Verb: verb, Request: request})
	switch {
	case bus.Unserved(err) && messages.KindOf(err) == messages.Unavailable:
		return nil, messages.Errorf(messages.NotLeader, "%s", messages.Detail(err))
	case err != nil:
		return nil, err
	}
	return reply.Reply, nil
}

// receive decodes a published message and queues it.
func receive[T any](a *Agent, payload []byte, do func(messages.Time, *T) error) {
	message := new(T)
	if err := wire.UnmarshalReply(payload, message); err != nil {
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

func (a *Agent) logEndpoint() bus.Endpoint {
	return bus.Endpoint{
		Name:    messages.VerbLogs,
		Subject: messages.LogsSubject(a.c.Site, a.c.Node, "*"),
		Handle: bus.Handle(messages.VerbLogs, func(ctx context.Context, caller messages.Name, r agent.LogsRequest) (agent.LogsReply, error) {
			if err := a.mayRead(ctx, caller, r.Attempt); err != nil {
				return agent.LogsReply{}, err
			}
			return a.real.ReadLog(ctx, r)
		}),
	}
}

// streamConcurrency is the number of requests that may wait at the same time. Each client of a stream has one that
// waits for output, and a second one while it sends input.
const streamConcurrency = 512

// outputPace bounds the bytes of logs and streams that an account gets from a node in a second. All accounts share what
// the node can send, which is some 80 MB in a second.
const outputPace = 32 << 20

// maxReaches is the maximum number of log lines in a second about the access of one account to tasks. More lines would
// hide the lines about other accounts.
const maxReaches = 10

// streamEndpoint answers requests to read from or write to a running task. It allows every caller who may read the
// task's output.
func (a *Agent) streamEndpoint() bus.Endpoint {
	log := bus.Bounded(a.c.Log, maxReaches)
	return bus.Endpoint{
		Name:    messages.VerbStream,
		Subject: agent.StreamSubject(a.c.Site, a.c.Node, "*"),
		Handle: bus.Handle(messages.VerbStream, func(ctx context.Context, caller messages.Name, r agent.StreamRequest) (agent.StreamReply, error) {
			if err := r.Validate(); err != nil {
				return agent.StreamReply{}, err
			}
			may := a.mayRead
			if r.Signals() {
				may = a.mayReach
			}
			if err := may(ctx, caller, r.Attempt); err != nil {
				return agent.StreamReply{}, err
			}
			if r.Begin != nil || r.Take || r.Signal != "" {
				log.Info("account "+caller+" reaches a task", zap.Stringer("job", r.Attempt.Task.Job),
					zap.String("signal", r.Signal), zap.Bool("begins", r.Begin != nil))
			}
			return a.real.Stream(ctx, r)
		}),
	}
}

// mayReach refuses a caller who is neither the owner of the job nor an operator. The answer is the same as for a job
// that never ran on this node.
func (a *Agent) mayReach(_ context.Context, caller messages.Name, of messages.Attempt) error {
	owner, err := a.real.Owner(of.Task.Job)
	if err == nil && caller != owner && !slices.Contains(a.c.Operators, caller) {
		err = runner.NoOutput(of.Task.Job)
	}
	return err
}

// mayRead refuses the same callers as mayReach. It also refuses the owner while the job's market withholds the output.
func (a *Agent) mayRead(ctx context.Context, caller messages.Name, of messages.Attempt) error {
	if err := a.mayReach(ctx, caller, of); err != nil || slices.Contains(a.c.Operators, caller) {
		return err
	}
	return a.readable.check(ctx, a, of.Task.Job)
}

// readable remembers jobs whose output may be read, because their markets do not withhold it.
type readable struct {
	mu   sync.Mutex
	jobs map[messages.JobID]bool
}

// The agent asks the leader whether a job's output is withheld. keptWithin is how long the agent waits for the answer.
// mostReadable is the largest number of jobs that `readable` remembers.
const (
	mostReadable = 4096
	keptWithin   = 2 * time.Second
)

// check asks the leader whether a job's output is withheld. If nobody answers, the output can be read: the data of a
// node must be available without the leader.
func (r *readable) check(ctx context.Context, a *Agent, job messages.JobID) error {
	r.mu.Lock()
	known := r.jobs[job]
	r.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	switch reply, err := ask[jobmsg.KeptReply](ctx, a, messages.VerbKept, jobmsg.JobRequest{Job: job}); {
	case err != nil && (ctx.Err() != nil || messages.Passing(err)):
		return nil
	case err != nil:
		return err
	case reply.Kept:
		return jobmsg.ErrKept(job, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil || len(r.jobs) >= mostReadable {
		r.jobs = map[messages.JobID]bool{}
	}
	r.jobs[job] = true
	return nil
}
