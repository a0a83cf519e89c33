package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

type scaleResult struct {
	Agents             int     `json:"agents"`
	JobsWaiting        int     `json:"jobs_waiting"`
	ConnectSeconds     float64 `json:"connect_seconds"`
	SubmissionsPerSec  float64 `json:"submissions_per_second"`
	TasksPerSecond     float64 `json:"tasks_per_second"` // dispatched while the jobs wait
	BytesPerArrival    float64 `json:"vector_bytes_per_arrival"`
	VectorsPerArrival  float64 `json:"vectors_per_arrival"`
	HeapBytes          uint64  `json:"heap_bytes"`
	SystemBytes        uint64  `json:"system_bytes"`
	AllocationMillis   float64 `json:"allocation_ms"` // mean while the jobs arrived
	DispatchedInSample int     `json:"dispatched_in_sample"`
}

func scaleFlags(c *cobra.Command) {
	c.Flags().Int("agents", 10_000, "agents of one slot to connect")
	c.Flags().Int("jobs", 100_000, "jobs to let wait")
	c.Flags().String("mechanism", messages.Proportional, "mechanism of the market: proportional or highest-bid")
}

// scale connects many agents, keeps every slot busy, lets jobs pile up, and
// then lets tasks end so that the site has to dispatch among all of them.
func scale(ctx context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "agents", "jobs")
	if err != nil {
		return nil, err
	}
	agents, jobs := n[0], n[1]
	mechanism, _ := c.Flags().GetString("mechanism")
	if mechanism != messages.Proportional && mechanism != messages.HighestBid {
		return nil, messages.Errorf(messages.Invalid, "mechanism: must be %s or %s, is %.64q", messages.Proportional, messages.HighestBid, mechanism)
	}
	r := scaleResult{Agents: agents}
	gate := &gated{}
	began := time.Now()
	g, err := openMarket(ctx, mechanism, agents, 1, func(string, messages.Name) (runner.Runner, error) { return gate, nil }, crowds(jobs)...)
	if err != nil {
		return nil, err
	}
	defer g.abandon()
	r.ConnectSeconds = time.Since(began).Seconds()
	full := gate.wait(agents)
	if _, err := g.submit(ctx, agents, "/bin/true"); err != nil {
		return nil, err
	}
	if _, err := receive(ctx, full); err != nil {
		return nil, err
	}
	if err := g.pileUp(ctx, jobs, &r); err != nil {
		return nil, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.HeapBytes, r.SystemBytes = memory.HeapAlloc, memory.Sys
	began = time.Now()
	again := gate.wait(agents)
	gate.release()
	if _, err := receive(ctx, again); err != nil {
		return nil, err
	}
	r.DispatchedInSample = agents
	r.TasksPerSecond = float64(agents) / time.Since(began).Seconds()
	return r, nil
}

// pileUp submits jobs of one task that find no slot, and measures the cost of their
// arrival.
func (g *grid) pileUp(ctx context.Context, jobs int, r *scaleResult) error {
	names := []string{"candor_auctioneer_vector_bytes_total", "candor_auctioneer_vectors_total"}
	var before, after [2]float64
	var err error
	for i, n := range names {
		if before[i], err = g.metric(n); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := g.submitCrowds(ctx, jobs); err != nil {
		return err
	}
	r.JobsWaiting, r.SubmissionsPerSec = jobs, float64(jobs)/time.Since(began).Seconds()
	for i, n := range names {
		if after[i], err = g.metric(n); err != nil {
			return err
		}
	}
	r.BytesPerArrival = (after[0] - before[0]) / float64(jobs)
	r.VectorsPerArrival = (after[1] - before[1]) / float64(jobs)
	r.AllocationMillis, err = g.allocation()
	return err
}

// crowd is the number of jobs that one account submits: the bank bounds the pending holds
// of an account.
const crowd = 50_000

// crowds are the accounts that are needed to submit so many jobs.
func crowds(jobs int) (names []messages.Name) {
	for first := 0; first < jobs; first += crowd {
		names = append(names, fmt.Sprint(account, "-", len(names)))
	}
	return names
}

// submitCrowds submits jobs of accounts enough for all of them.
func (g *grid) submitCrowds(ctx context.Context, jobs int) error {
	for i, name := range crowds(jobs) {
		user, err := g.as(name)
		if err != nil {
			return err
		}
		if err := user.submitMany(ctx, min(crowd, jobs-i*crowd)); err != nil {
			return err
		}
	}
	return nil
}

// submitMany submits jobs from 64 clients at a time.
func (g *grid) submitMany(ctx context.Context, jobs int) error {
	return inParallel(jobs, 64, func(number int) error {
		_, err := g.submitKey(ctx, fmt.Sprint("many-", number), 1, "/bin/true")
		return err
	})
}

// allocation is the mean time of an allocation, in milliseconds.
func (g *grid) allocation() (float64, error) {
	all, err := g.metrics("candor_auctioneer_allocation_seconds")
	sum, count := 0.0, uint64(0)
	for _, m := range all {
		sum, count = sum+m.GetHistogram().GetSampleSum(), count+m.GetHistogram().GetSampleCount()
	}
	return sum / float64(max(count, 1)) * 1e3, err
}
