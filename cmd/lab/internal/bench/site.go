package bench

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

const (
	account     = "bench"
	class       = "cpu"
	benchMarket = "main"
)

// grid is a measured site, with the connection of one user.
type grid struct {
	*embedded.Site
	user   messages.Name
	bus    bus.Bus
	dir    string
	keys   int
	market messages.Name                  // name of the market's mechanism
	again  func() (*embedded.Site, error) // starts the site again after it was stopped
}

func (g *grid) stop() {
	_ = g.Close()
	_ = os.RemoveAll(g.dir)
}

// makeRunner returns the runner of a node. The argument `dir` is a directory for its files.
type makeRunner func(dir string, node messages.Name) (runner.Runner, error)

// instantRunner returns a runner that starts no processes: a task ends at its start.
func instantRunner(string, messages.Name) (runner.Runner, error) { return runner.Instant{}, nil }

// open starts a site with a proportional market, as openMarket does.
func open(ctx context.Context, nodes, slots int, run makeRunner) (*grid, error) {
	return openMarket(ctx, market.Proportional, nodes, slots, run)
}

// openMarket starts a site with one market, and nodes with equal numbers of slots. The function `run` makes the runners
// of tasks; nil means executors. The argument `others` has further accounts.
func openMarket(ctx context.Context, mechanism messages.Name, nodes, slots int, run makeRunner, others ...messages.Name) (*grid, error) {
	dir, err := os.MkdirTemp("", "candor-bench-")
	if err != nil {
		return nil, err
	}
	c := embedded.Default()
	c.State, c.Listen, c.DefaultAccount = dir, "127.0.0.1:0", account
	for _, name := range append(others, account) {
		c.Accounts = append(c.Accounts, embedded.Account{Name: name, Grant: 1e9 * messages.Credit})
	}
	c.Markets = []market.Market{{Name: benchMarket, Mechanism: mechanism, Classes: []messages.Name{class}}}
	c.Nodes = embedded.NodesAlike(nodes, embedded.Slots{{Class: class, Slots: slots}})
	o := embedded.Options{Metrics: true, Executor: executor.Self()}
	if run != nil {
		o.Runner = func(node messages.Name) (runner.Runner, error) { return run(dir, node) }
	}
	site, err := embedded.Start(ctx, c, o)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	g, err := (&grid{Site: site, dir: dir, market: mechanism, again: func() (*embedded.Site, error) { return embedded.Start(ctx, c, o) }}).as(account)
	if err != nil {
		_ = site.Close()
		_ = os.RemoveAll(dir)
	}
	return g, err
}

// The method `as` returns the same site with the connection of another user.
func (g *grid) as(user messages.Name) (*grid, error) {
	connection, err := g.Connect(user)
	return &grid{Site: g.Site, user: user, bus: connection, dir: g.dir, market: g.market, again: g.again}, err
}

func (g *grid) submit(ctx context.Context, tasks int, command ...string) (messages.JobID, error) {
	g.keys++
	return g.submitKey(ctx, fmt.Sprint(g.keys), tasks, command...)
}

func (g *grid) submitKey(ctx context.Context, key string, tasks int, command ...string) (messages.JobID, error) {
	// the request may wait until thousands of agents have been answered
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r, err := bus.Call[job.SubmitReply](ctx, g.bus, g.subject(messages.VerbSubmit), job.SubmitRequest{Key: key, Spec: benchJob(g.market, key, tasks, command...)})
	return r.Job, err
}

func benchJob(mechanism messages.Name, key string, tasks int, command ...string) job.JobSpec {
	if len(command) == 0 {
		command = []string{"/bin/true"}
	}
	spec := job.JobSpec{Name: "bench", Market: benchMarket, Budget: messages.Credit, Stages: []job.Stage{
		{Name: "work", Class: class, Tasks: tasks, Command: command}}}
	if mechanism == market.HighestBid { // each job has its own bid, jobs of many tasks bid more, and the budget is large enough
		spec.Rate, spec.Budget = messages.Credit+messages.Credits(crc32.ChecksumIEEE([]byte(key))%1e6), messages.Credits(tasks)*10_000*messages.Credit
		if tasks > 1 {
			spec.Rate += messages.Credit
		}
	}
	return spec
}

func (g *grid) subject(verb string) string {
	return messages.Subject(g.Info().Site, messages.Auctioneer, verb, g.user)
}

// The method `done` waits until a job has ended, and returns an error if it did not complete. The pauses between the
// questions to the site become longer, because each question costs the site as much time as an exchange of a node.
func (g *grid) done(ctx context.Context, id messages.JobID) error {
	for wait := 5 * time.Millisecond; ; wait = min(wait+wait/8, 50*time.Millisecond) {
		j, err := bus.Call[job.JobDetail](ctx, g.bus, g.subject(messages.VerbJob), job.JobRequest{Job: id})
		switch {
		case err != nil || j.State == job.Completed:
			return err
		case j.State.Final():
			return fmt.Errorf("job %d is %v: %s", id, j.State, j.Reason)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// entries returns the number of log entries that the auctioneer has applied.
func (g *grid) entries() uint64 {
	most := uint64(0)
	for _, s := range g.Status(messages.Auctioneer) {
		most = max(most, s.Entries)
	}
	return most
}

func (g *grid) metrics(name string) ([]*dto.Metric, error) {
	families, err := g.Gatherer().Gather()
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric(), err
		}
	}
	return nil, err
}

// metric sums a counter over all replicas.
func (g *grid) metric(name string) (sum float64, err error) {
	all, err := g.metrics(name)
	for _, m := range all {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum, err
}

func pause(ctx context.Context, d time.Duration) error {
	_, err := receive(ctx, time.After(d))
	return err
}

func receive[T any](ctx context.Context, from <-chan T) (value T, err error) {
	select {
	case value = <-from:
		return value, nil
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// quantile returns the q-quantile of values, which it sorts.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}
