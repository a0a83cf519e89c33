package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// scaleResult has the processor time of the site. It also has the processor time of agents and clients, which run in
// another process.
type scaleResult struct {
	Agents            int     `json:"agents"`
	JobsWaiting       int     `json:"jobs_waiting"`
	ConnectSeconds    float64 `json:"connect_seconds"`
	SubmissionsPerSec float64 `json:"submissions_per_second"`
	SubmissionMicros  float64 `json:"submission_cpu_us"`
	ClientMicros      float64 `json:"submission_client_cpu_us"`
	FirstTenthMicros  float64 `json:"submission_cpu_first_tenth_us"` // processor time of the first tenth of the submissions
	LastTenthMicros   float64 `json:"submission_cpu_last_tenth_us"`
	TasksPerSecond    float64 `json:"tasks_per_second"` // tasks that start per second while the jobs wait
	TaskMicros        float64 `json:"task_cpu_us"`
	AgentMicros       float64 `json:"task_agent_cpu_us"`
	EndsPerTask       float64 `json:"ends_per_task"`   // ends of running or suspended tasks, for each started task
	StartMillis       float64 `json:"start_p99_ms"`    // time from a claim to its task, as agents see it
	JobsPerSecond     float64 `json:"jobs_per_second"` // jobs of one task that ran, ended and were paid
	JobMicros         float64 `json:"job_cpu_us"`
	LongestMillis     float64 `json:"longest_exchange_ms"` // longest exchange of a node while the jobs arrived
	FailoverSeconds   float64 `json:"failover_seconds"`    // time from the end of the leader until another one answers
	BytesPerArrival   float64 `json:"vector_bytes_per_arrival"`
	VectorsPerArrival float64 `json:"vectors_per_arrival"`
	HeapBytes         uint64  `json:"heap_bytes"` // after a garbage collection
	ResidentBytes     uint64  `json:"resident_bytes"`
	BytesPerJob       float64 `json:"heap_bytes_per_job"`
	AllocationMillis  float64 `json:"allocation_ms"` // mean time of an allocation while the jobs arrived
}

func scaleFlags(c *cobra.Command) {
	c.Flags().Int("agents", 10_000, "agents of one slot to connect")
	c.Flags().Int("racks", 64, "connections that the agents share")
	c.Flags().Int("jobs", 100_000, "jobs to let wait")
	c.Flags().Int("clients", 64, "clients that submit at the same time")
	c.Flags().Int("batch", 1, "jobs that a client submits in one request")
	c.Flags().Duration("for", 10*time.Second, "`time` to run waiting jobs to their end")
	c.Flags().String("mechanism", market.Proportional, "mechanism of the market: proportional or highest-bid")
}

// crowdedSite is the measured site. Its agents and clients are in another process, the load.
type crowdedSite struct {
	*grid
	load    *load
	batch   int // jobs that a client submits in one request
	clients int // clients that submit at the same time
}

// scale connects many agents, fills every slot, and lets jobs accumulate. Then it ends tasks, so that the site must
// choose among all the jobs.
func scale(ctx context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "agents", "racks", "jobs", "batch", "clients")
	if err != nil {
		return nil, err
	}
	agents, racks, jobs := n[0], min(n[1], n[0]), n[2]
	if agents >= book.MaxNodes {
		return nil, messages.Errorf(messages.Invalid, "agents: must be at most %d, because a site knows %d nodes and has one of its own, is %d", book.MaxNodes-1, book.MaxNodes, agents)
	}
	span, err := c.Flags().GetDuration("for")
	if err != nil {
		return nil, err
	}
	mechanism, _ := c.Flags().GetString("mechanism")
	if mechanism != market.Proportional && mechanism != market.HighestBid {
		return nil, messages.Errorf(messages.Invalid, "mechanism: must be %s or %s, is %.64q", market.Proportional, market.HighestBid, mechanism)
	}
	r := &scaleResult{Agents: agents, JobsWaiting: jobs}
	s, err := openCrowded(ctx, mechanism, jobs, n[3], n[4])
	if err != nil {
		return nil, err
	}
	defer s.stop()
	defer s.load.end()
	if r.ConnectSeconds, err = s.join(ctx, agents, racks); err != nil {
		return nil, err
	}
	if err := s.pileUp(jobs, r); err != nil {
		return nil, err
	}
	if err := s.dispatchAll(min(agents, jobs), span, r); err != nil {
		return nil, err
	}
	r.FailoverSeconds, err = s.failover(ctx)
	return *r, err
}

// failover stops the leader of the auctioneer, and returns after how many seconds another replica answers.
func (s *crowdedSite) failover(ctx context.Context) (seconds float64, err error) {
	stopped := s.Leader(messages.Auctioneer)
	began := time.Now()
	if err := s.StopReplica(messages.Auctioneer, stopped); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := bus.Call[messages.StatusReply](ctx, s.bus, s.subject(messages.VerbStatus), messages.Empty{}); err != nil {
		return 0, err
	}
	seconds = time.Since(began).Seconds()
	return seconds, s.StartReplica(messages.Auctioneer, stopped)
}

func openCrowded(ctx context.Context, mechanism messages.Name, jobs, batch, clients int) (*crowdedSite, error) {
	gate := &gated{}
	g, err := openMarket(ctx, mechanism, 1, 1, func(string, messages.Name) (runner.Runner, error) { return gate, nil }, crowds(jobs)...)
	if err != nil {
		return nil, err
	}
	l, err := startLoad(ctx)
	if err != nil {
		g.stop()
		return nil, err
	}
	return &crowdedSite{g, l, batch, clients}, nil
}

// join connects agents, and fills every slot with a task that does not end by itself.
func (s *crowdedSite) join(ctx context.Context, agents, racks int) (seconds float64, err error) {
	j := &joining{Site: s.Info().Site, URL: s.URL(), Nodes: agents, Racks: racks}
	c := s.Config()
	if j.Token, j.Seed, err = rackCredentials(c.KeysDir()); err != nil {
		return 0, err
	}
	joined, err := s.load.do(order{Join: j})
	if err != nil {
		return 0, err
	}
	if _, err := s.submitKey(ctx, "full", agents+1, "/bin/true"); err != nil { // the site has one more node of its own
		return 0, err
	}
	_, err = s.load.do(order{Await: agents})
	return joined.Seconds, err
}

// pileUp submits jobs of one task while no slot is free, and measures the cost of each arrival.
func (s *crowdedSite) pileUp(jobs int, r *scaleResult) error {
	names := []string{"candor_auctioneer_vector_bytes_total", "candor_auctioneer_vectors_total"}
	var before, after [2]float64
	var err error
	for i, n := range names {
		if before[i], err = s.metric(n); err != nil {
			return err
		}
	}
	empty := settledMemory().HeapAlloc
	tenth := (jobs + 9) / 10
	var all spent
	for from := 0; from < jobs; from += tenth {
		part, err := s.submitCrowd(from, min(tenth, jobs-from))
		if err != nil {
			return err
		}
		if from == 0 {
			r.FirstTenthMicros = part.micros(tenth)
		}
		r.LastTenthMicros = part.micros(min(tenth, jobs-from))
		r.LongestMillis = max(r.LongestMillis, part.longest*1e3)
		all.seconds, all.cpu, all.load = all.seconds+part.seconds, all.cpu+part.cpu, all.load+part.load
	}
	r.SubmissionsPerSec, r.SubmissionMicros, r.ClientMicros = float64(jobs)/all.seconds, all.micros(jobs), all.load*1e6/float64(jobs)
	for i, n := range names {
		if after[i], err = s.metric(n); err != nil {
			return err
		}
	}
	r.BytesPerArrival = (after[0] - before[0]) / float64(jobs)
	r.VectorsPerArrival = (after[1] - before[1]) / float64(jobs)
	m := settledMemory()
	r.HeapBytes, r.ResidentBytes = m.HeapAlloc, m.Sys-m.HeapReleased
	r.BytesPerJob = float64(m.HeapAlloc-empty) / float64(jobs)
	r.AllocationMillis, err = s.allocation()
	return err
}

// submitCrowd submits jobs, numbered upwards from the argument `from`, with as many accounts as the jobs need.
func (s *crowdedSite) submitCrowd(from, jobs int) (all spent, err error) {
	for jobs > 0 {
		n := min(jobs, crowd-from%crowd)
		name := crowdOf(from)
		part, err := s.spend(order{Submit: &submitting{URL: s.URL(), Site: s.Info().Site, CredsFile: s.CredsFile(name), Account: name,
			Market: s.market, Key: fmt.Sprint("many-", from, "-"), Jobs: n, Clients: s.clients, Batch: s.batch}})
		if err != nil {
			return all, err
		}
		all.seconds, all.cpu, all.load, all.longest = all.seconds+part.seconds, all.cpu+part.cpu, all.load+part.load, max(all.longest, part.longest)
		from, jobs = from+n, jobs-n
	}
	return all, nil
}

// dispatchAll ends the tasks of all agents, and measures the time until the given number of new tasks has started. Then
// it counts the jobs that end during the given span.
func (s *crowdedSite) dispatchAll(tasks int, span time.Duration, r *scaleResult) error {
	running, err := s.load.do(order{Count: true})
	if err != nil {
		return err
	}
	wave, err := s.spend(order{Release: &releasing{Last: true, Await: tasks}})
	if err != nil {
		return err
	}
	r.StartMillis = wave.start * 1e3
	r.TasksPerSecond, r.TaskMicros, r.AgentMicros = float64(tasks)/wave.seconds, wave.micros(tasks), wave.load*1e6/float64(tasks)
	r.EndsPerTask = float64(wave.ended-running.Ended) / float64(tasks)
	before, cpu, began := wave.ended, processorTime(), time.Now()
	if _, err := s.load.do(order{Release: &releasing{}}); err != nil {
		return err
	}
	if err := pause(context.Background(), span); err != nil {
		return err
	}
	after, err := s.load.do(order{Count: true})
	ran := spent{seconds: time.Since(began).Seconds(), cpu: processorTime() - cpu}
	r.JobsPerSecond, r.JobMicros = float64(after.Ended-before)/ran.seconds, ran.micros(after.Ended-before)
	return err
}

type spent struct {
	seconds float64
	cpu     time.Duration
	load    float64 // processor time of the other process, in seconds
	ended   int
	longest float64 // longest exchange of a node, in seconds
	start   float64 // 99th percentile of the time from a claim to its task, in seconds
}

// micros divides the site's processor time by a number of things, such as jobs, in microseconds.
func (s spent) micros(things int) float64 {
	return float64(s.cpu.Microseconds()) / float64(max(things, 1))
}

func (s *crowdedSite) spend(o order) (spent, error) {
	before := processorTime()
	r, err := s.load.do(o)
	return spent{r.Seconds, processorTime() - before, r.CPU, r.Ended, r.Longest, r.Start}, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settledMemory returns the memory of this process after a garbage collection.
func settledMemory() (m runtime.MemStats) {
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	return m
}

// crowd is the number of jobs of one account. It is below the bank's limit on the pending holds of an account.
const crowd = 50_000

// One account can submit only so many jobs. crowds returns as many accounts as a number of jobs needs.
func crowds(jobs int) (names []messages.Name) {
	for first := 0; first < jobs; first += crowd {
		names = append(names, crowdOf(first))
	}
	return names
}

func crowdOf(number int) messages.Name { return fmt.Sprint(account, "-", number/crowd) }

// allocation returns the mean time of an allocation, in milliseconds.
func (g *grid) allocation() (float64, error) {
	all, err := g.metrics("candor_auctioneer_allocation_seconds")
	sum, count := 0.0, uint64(0)
	for _, m := range all {
		sum, count = sum+m.GetHistogram().GetSampleSum(), count+m.GetHistogram().GetSampleCount()
	}
	return sum / float64(max(count, 1)) * 1e3, err
}
