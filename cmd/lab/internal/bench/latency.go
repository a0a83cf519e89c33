package bench

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

type latencyResult struct {
	SubmitToStart struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
		Max float64 `json:"max"`
	} `json:"submit_to_start_ms"`
	Jobs int `json:"jobs"`
}

func latencyFlags(c *cobra.Command) {
	c.Flags().Int("jobs", 500, "jobs to submit, one after the other")
}

// latency submits one job at a time to an idle site of four nodes, and measures the time until the process has started.
func latency(ctx context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "jobs")
	if err != nil {
		return nil, err
	}
	jobs := n[0]
	started := make(chan time.Time, 1)
	g, err := open(ctx, 4, 2, func(dir string, node messages.Name) (runner.Runner, error) {
		real, err := runner.NewProcesses(runner.Config{Site: "bench", Node: node, Dir: filepath.Join(dir, "run", node)})
		return watched{real, func() { started <- time.Now() }}, err
	})
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var ms []float64
	for range jobs {
		began := time.Now()
		id, err := g.submit(ctx, 1, "/bin/true")
		if err != nil {
			return nil, err
		}
		at, err := receive(ctx, started)
		if err != nil {
			return nil, err
		}
		ms = append(ms, at.Sub(began).Seconds()*1e3)
		if err := g.done(ctx, id); err != nil {
			return nil, err
		}
	}
	r := latencyResult{Jobs: jobs}
	r.SubmitToStart.P50, r.SubmitToStart.P99, r.SubmitToStart.Max = quantile(ms, 0.5), quantile(ms, 0.99), quantile(ms, 1)
	return r, nil
}

// watched is a runner of real processes that reports each start.
type watched struct {
	runner.Runner
	tell func()
}

func (w watched) Start(task runner.Task, done func(agent.Finished)) runner.Process {
	p := w.Runner.Start(task, done)
	w.tell()
	return p
}
