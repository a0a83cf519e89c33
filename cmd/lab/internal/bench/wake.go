package bench

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

const idleAgents = 1000

type wakeResult struct {
	IdleAgents         int `json:"idle_agents"`
	ClaimsFor1Task     int `json:"claims_for_1_task"`
	ClaimsFor1000Tasks int `json:"claims_for_1000_tasks"`
}

// Idle agents send claims when a job arrives. wake measures how many claims they send until all tasks of the job have
// started. A thousand agents have one slot each. The job has one task in the first measurement, and a thousand tasks in
// the second. No task ends before all have started, so no slot claims twice.
func wake(ctx context.Context, _ *cobra.Command) (any, error) {
	gate := &gated{}
	g, err := open(ctx, idleAgents, 1, func(string, messages.Name) (runner.Runner, error) { return gate, nil })
	if err != nil {
		return nil, err
	}
	defer g.stop()
	r := wakeResult{IdleAgents: idleAgents}
	if r.ClaimsFor1Task, err = g.claimsFor(ctx, gate, 1); err != nil {
		return nil, err
	}
	r.ClaimsFor1000Tasks, err = g.claimsFor(ctx, gate, idleAgents)
	return r, err
}

// claimsFor submits a job, waits until all its tasks have started, and then waits a short time longer. It returns the
// number of claims that agents made meanwhile.
func (g *grid) claimsFor(ctx context.Context, gate *gated, tasks int) (int, error) {
	const claims = "candor_auctioneer_claims_total"
	before, err := g.metric(claims)
	if err != nil {
		return 0, err
	}
	started := gate.wait(tasks)
	id, err := g.submit(ctx, tasks, "/bin/true")
	if err != nil {
		return 0, err
	}
	if _, err := receive(ctx, started); err != nil {
		return 0, err
	}
	if err := pause(ctx, 500*time.Millisecond); err != nil {
		return 0, err
	}
	after, err := g.metric(claims)
	if err != nil {
		return 0, err
	}
	gate.release()
	return int(after - before), g.done(ctx, id)
}

// gated is a runner whose tasks end when they are released or stopped.
type gated struct {
	mu      sync.Mutex
	want    int
	started chan struct{}
	held    []*held
}

// wait returns a channel that is closed when n tasks run and wait for their release.
func (g *gated) wait(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.want, g.started = n, make(chan struct{})
	return g.started
}

func (g *gated) Start(task runner.Task, done func(agent.Finished)) runner.Process {
	began := messages.TimeOf(time.Now())
	h := &held{end: sync.OnceFunc(func() {
		done(agent.Finished{Attempt: task.Attempt, Started: began, Ended: messages.TimeOf(time.Now())})
	})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = append(g.held, h)
	if len(g.held) == g.want {
		close(g.started)
	}
	return h
}

func (g *gated) release() {
	g.mu.Lock()
	tasks := g.held
	g.held = nil
	g.mu.Unlock()
	for _, h := range tasks {
		h.end()
	}
}

func (g *gated) Close() error {
	g.release()
	return nil
}

type held struct{ end func() }

func (h *held) Stop(time.Duration) { h.end() }

// Say does nothing: the task has no output.
func (*held) Say(string) {}

// Suspend does nothing: the task uses no processor.
func (*held) Suspend(bool) {}
