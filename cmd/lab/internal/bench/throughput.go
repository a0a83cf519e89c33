package bench

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

type dispatchResult struct {
	TasksPerSecond float64 `json:"tasks_per_second"`
	LogEntries     uint64  `json:"log_entries"`
	Tasks          int     `json:"tasks"`
}

func dispatchFlags(c *cobra.Command) {
	c.Flags().Int("tasks", 200_000, "tasks to run")
	c.Flags().Int("jobs", 16, "jobs that the tasks belong to")
}

// dispatch runs empty tasks on 64 agents of 16 slots. It measures the time until every job is complete and paid.
func dispatch(ctx context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "tasks", "jobs")
	if err != nil {
		return nil, err
	}
	tasks, jobs := n[0], n[1]
	g, err := open(ctx, 64, 16, instantRunner)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	entries, began := g.entries(), time.Now()
	if err := g.all(ctx, jobs, tasks/jobs); err != nil {
		return nil, err
	}
	run := tasks / jobs * jobs
	return dispatchResult{float64(run) / time.Since(began).Seconds(), g.entries() - entries, run}, nil
}

func (g *grid) all(ctx context.Context, jobs, tasks int, command ...string) error {
	if len(command) == 0 {
		command = []string{"/bin/true"}
	}
	var ids []messages.JobID
	for range jobs {
		id, err := g.submit(ctx, tasks, command...)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := g.done(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func positive(c *cobra.Command, flags ...string) ([]int, error) {
	values := make([]int, len(flags))
	for i, flag := range flags {
		n, err := c.Flags().GetInt(flag)
		if err == nil && n < 1 {
			err = messages.Errorf(messages.Invalid, "--%s: must be at least 1", flag)
		}
		if err != nil {
			return nil, err
		}
		values[i] = n
	}
	return values, nil
}

type processesResult struct {
	TasksPerSecond    float64 `json:"tasks_per_second"`
	ForkExecPerSecond float64 `json:"forkexec_per_second"`
	Ratio             float64 `json:"ratio"`            // time of the tasks divided by the time of plain processes
	LimitPerSecond    float64 `json:"limit_per_second"` // processes with a control group, an output file and a record
	OfLimit           float64 `json:"of_limit"`         // rate of tasks, as a part of LimitPerSecond
	EntriesPerTask    float64 `json:"entries_per_task"` // entries of the auctioneer's log for each task
}

func processesFlags(c *cobra.Command) {
	c.Flags().Int("tasks", 12_000, "processes to run in each way, in all rounds together")
	c.Flags().Int("rounds", 3, "number of rounds; each round runs every way once")
	c.Flags().Int("parallel", 64, "processes at a time: the slots of one node")
}

// processes runs /bin/true in three ways: through the whole system; in a plain loop of fork, exec and wait; and in a
// loop with what every task needs. Each way runs equally many processes at a time. In each round, the three ways run
// one after another.
func processes(ctx context.Context, c *cobra.Command) (any, error) {
	said, err := positive(c, "tasks", "rounds", "parallel")
	if err != nil {
		return nil, err
	}
	tasks, rounds, parallel := said[0], said[1], said[2]
	g, err := open(ctx, 1, parallel, nil)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	least, err := openLimit()
	if err != nil {
		return nil, err
	}
	defer least.close()
	ways := []func() error{
		func() error {
			return inParallel(ctx, tasks/rounds, parallel, func(int) error { return startAndWait() })
		},
		func() error { return inParallel(ctx, tasks/rounds, parallel, least.startAndWait) },
		func() error { return g.all(ctx, 1, tasks/rounds) },
	}
	took, entries := make([]time.Duration, len(ways)), g.entries()
	for range rounds {
		for i, way := range ways {
			began := time.Now()
			if err := way(); err != nil {
				return nil, err
			}
			took[i] += time.Since(began)
		}
	}
	perSecond := func(i int) float64 { return float64(tasks/rounds*rounds) / took[i].Seconds() }
	r := processesResult{ForkExecPerSecond: perSecond(0), LimitPerSecond: perSecond(1), TasksPerSecond: perSecond(2)}
	r.Ratio, r.OfLimit = r.TasksPerSecond/r.ForkExecPerSecond, r.TasksPerSecond/r.LimitPerSecond
	r.EntriesPerTask = float64(g.entries()-entries) / float64(tasks/rounds*rounds)
	return r, nil
}

// inParallel calls the function `do` with the numbers from 1 to n, until one call fails or ctx ends. The argument
// `parallel` is the largest number of calls at the same time.
func inParallel(ctx context.Context, n, parallel int, do func(number int) error) error {
	var next atomic.Int64
	return repeat(ctx, parallel, func(_, _ int) (bool, error) {
		i := next.Add(1)
		if i > int64(n) {
			return false, nil
		}
		return true, do(int(i))
	})
}

// repeat runs workers. Each worker calls the function `do` again and again. It passes its own number, and how often it
// called `do` before. A worker stops when `do` returns false, when any worker fails, or when ctx ends.
func repeat(ctx context.Context, workers int, do func(worker, before int) (more bool, err error)) error {
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for i, more := 0, true; more && failed.Load() == nil; i++ {
				err := ctx.Err()
				if err == nil {
					more, err = do(worker, i)
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func startAndWait() error {
	p, err := os.StartProcess("/bin/true", []string{"/bin/true"}, &os.ProcAttr{Env: []string{}})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
