package grid

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// Config describes the simulated site and its faults.
type Config struct {
	Network network.Config
	Lease   messages.Duration // lease of an agent; 0: six hours
	Slots   int               // slots of each node; 0: 1, or with wide tasks [workload.NodeSlots]
	// Shapes has the resources of each task, by the position of its job in the trace. nil means that each task takes
	// one slot. The field Unit has the resources of a slot.
	Shapes []job.Resources
	Unit   job.Resources
	// Limits has the time limit of each task in seconds, by the position of its job in the trace. If Limits is nil,
	// tasks have limits only in markets that need them.
	Limits []float64
	// Until is a time in seconds since the beginning of the log. The outcome says how much slot time each job had until
	// then. If Until is 0, the outcome does not have these slot times.
	Until float64
	// Owners has the owners who do more than submit their job and wait, by position in the trace.
	Owners map[int]*Owner
	// Down is the time in which the site's process does not run. Full is the time in which its disks are full, and
	// nothing can be committed.
	Down, Full Span
	// Forgetful inserts a fault that tests must find: in prices, a task counts as complete only if it ended well.
	Forgetful bool
	// Mute inserts a fault: agents do not report when tasks began.
	Mute bool
	// Shopping inserts a fault: each request for a menu gets a newly drawn menu.
	Shopping bool
	// ByStarts inserts a fault: nodes draw jobs by their shares only, and ignore the slot time that the jobs received.
	ByStarts bool
}

// Span is the time between two instants, in seconds from the log's beginning. The zero value contains no instant.
type Span struct{ From, Until float64 }

func (g *Grid) during(s Span) bool { return g.now >= g.at(s.From) && g.now < g.at(s.Until) }

const defaultLease = messages.Duration(6 * 3600 * 1e9)

const (
	auctioneerActor = "auctioneer"
	bankActor       = "bank"
	userActor       = "user"
)

const site = "simulated"

// Grid is the state of a simulation run.
type Grid struct {
	*core.Problem
	unit    float64 // credits of the study that one credit of the site stands for
	config  Config
	epoch   messages.Time // when the log begins
	now     messages.Time
	log     clock.Queue[func()] // actions of users, in the order of the trace
	queue   clock.Queue[func()] // all other events; at the same instant they come after the events of log
	net     *network.Network
	leader  *leader
	agents  []*agent
	named   map[messages.Name]*agent
	heeds   []bool             // by agent: whether a new vector can make it act
	news    []*agentmsg.Vector // vectors that were published since all agents had the same ones
	whole   int                // position in news of the last complete vector
	bank    *ledger.Ledger
	out     *core.Outcome
	parts   []int32 // by job of the workload: jobs of the book that have not ended
	owners  map[int]*owning
	ended   int // number of jobs of the workload that have ended
	wanted  int // number of Payers that have not ended
	traffic Traffic
	failed  error
}

// Run runs a study in which all actors of a site take part.
func Run(p *core.Problem, c Config) (*core.Outcome, *Traffic, error) {
	g, err := newGrid(p, c)
	if err != nil {
		return nil, nil, err
	}
	return g.run()
}

func newGrid(p *core.Problem, c Config) (*Grid, error) {
	wide := p.Work.Parallel == workload.Wide
	if wide {
		c.Slots = cmp.Or(c.Slots, workload.NodeSlots)
	}
	c.Lease, c.Slots = cmp.Or(c.Lease, defaultLease), max(c.Slots, 1)
	if err := possible(p, c); err != nil {
		return nil, err
	}
	p, unit, err := fit(p)
	if err != nil {
		return nil, err
	}
	market, err := live(p)
	if err != nil {
		return nil, err
	}
	for _, o := range c.Owners {
		wide = wide || o.Wide > 1
	}
	if wide {
		c.Unit = job.Resources{CPUs: 1}
	}
	if c.Unit != (job.Resources{}) {
		market.Units = []job.ClassUnit{{Class: class, Unit: c.Unit}}
	}
	g := &Grid{Problem: p, unit: unit, config: c, epoch: epochOf(&market), bank: ledger.New(), named: map[messages.Name]*agent{}, out: core.NewOutcome(p), parts: make([]int32, len(p.Bids))}
	if g.net, err = network.New(c.Network, p.Seed); err != nil {
		return nil, err
	}
	g.own()
	first, _ := p.Work.Span()
	g.now = g.at(first) - 60e6 // agents have a minute to register
	if g.leader, err = newLeader(g, market); err != nil {
		return nil, err
	}
	if market.Slot > 0 {
		g.out.Notes = append(g.out.Notes, fmt.Sprintf("time is counted in units of %v, and a typical job takes %v units", market.Slot, market.Scale))
	}
	if err := g.open(); err != nil {
		return nil, err
	}
	for slots := p.Slots(); slots > 0; slots -= c.Slots {
		i := len(g.agents)
		a := newAgent(g, i, min(slots, c.Slots), rand.New(rand.NewPCG(p.Seed, uint64(i)+1)))
		g.agents, g.named[a.name] = append(g.agents, a), a
	}
	if c.Down != (Span{}) {
		g.queue.Push(g.at(c.Down.Until), g.leader.restart)
	}
	if c.Until > 0 {
		g.queue.Push(g.at(c.Until), g.noteSold)
	}
	g.heeds = make([]bool, len(g.agents))
	for i := range p.Work.Jobs {
		if p.Payers != nil && p.Payers[i] {
			g.wanted++
		}
		g.log.Push(g.at(p.Work.Jobs[i].Submit), func() { g.submit(i) })
	}
	return g, nil
}

// epochOf returns the time at which the log of a study begins. A market has some interval: a unit of time, a period, or
// the validity of a menu. A site counts these intervals from time 0. The result is a multiple of the interval, so one
// of the intervals begins exactly when the log begins.
func epochOf(m *market.Market) messages.Time {
	const about = 1_000_000_000_000_000
	unit := messages.Time(cmp.Or(m.Slot, m.Cycle, m.Quote, 1000) / 1000)
	return (about + unit - 1) / unit * unit
}

// possible returns an error for a study that no site can run.
func possible(p *core.Problem, c Config) error {
	const most = 1e9 // seconds; larger values do not fit a Duration
	nodes := (p.Slots() + c.Slots - 1) / c.Slots
	switch {
	case len(p.Bids) != len(p.Work.Jobs):
		return messages.Errorf(messages.Invalid, "bids: there are %d bids for %d jobs", len(p.Bids), len(p.Work.Jobs))
	case nodes > book.MaxNodes:
		return messages.Errorf(messages.TooLarge, "nodes: a simulation of all actors can have at most %d nodes, not %d", book.MaxNodes, nodes)
	}
	for i := range p.Work.Jobs {
		j := &p.Work.Jobs[i]
		switch {
		case j.Width > 1 && p.Work.Parallel != workload.Split && p.Work.Parallel != workload.Wide && !Gangs(p.Market.Mechanism):
			return messages.Errorf(messages.Invalid, "job %d: a site under mechanism %s starts tasks one by one and cannot keep %d tasks together: split parallel jobs, or skip them", j.Number, p.Market.Mechanism, j.Width)
		case j.Width > job.MaxTasks:
			return messages.Errorf(messages.TooLarge, "job %d: has %d tasks, but in a simulation of all actors a job can have at most %d tasks", j.Number, j.Width, job.MaxTasks)
		case j.Runtime > most || p.Bids[i].Length > most || j.Submit > most:
			return messages.Errorf(messages.Invalid, "job %d: is submitted at %v s and runs for %v s, but a simulation of all actors can last at most %v s", j.Number, j.Submit, j.Runtime, most)
		}
	}
	return nil
}

func (g *Grid) at(seconds float64) messages.Time {
	return g.epoch + messages.Time(math.Round(seconds*1e6))
}

func (g *Grid) seconds(t messages.Time) float64 { return float64(t-g.epoch) / 1e6 }

// awaits reports whether the simulation must go on, because the caller wants the outcome of a job that has not ended.
// In a batch queue the simulation must go on until all jobs have ended, because later decisions can move credits of
// jobs that have ended.
func (g *Grid) awaits() bool {
	if g.Payers == nil || g.Market.Mechanism == rules.BatchQueue {
		return g.ended < len(g.out.Jobs)
	}
	return g.wanted > 0
}

func (g *Grid) run() (*core.Outcome, *Traffic, error) {
	for _, a := range g.agents {
		a.act()
	}
	for g.awaits() && g.failed == nil {
		next := &g.queue
		if g.queue.Len() == 0 || g.log.Len() > 0 && g.log.Next() <= g.queue.Next() {
			next = &g.log
		}
		if next.Len() == 0 {
			return nil, nil, messages.Errorf(messages.Internal, "the simulation has no more events, but %d of %d jobs have not ended", len(g.out.Jobs)-g.ended, len(g.out.Jobs))
		}
		g.now = next.Next()
		g.traffic.Events++
		next.Pop()()
	}
	if g.failed != nil {
		return nil, nil, g.failed
	}
	return g.finish()
}

func (g *Grid) finish() (*core.Outcome, *Traffic, error) {
	books := g.bank.Books()
	g.traffic.Books, g.traffic.Lost, g.traffic.Repeated = books.Message, g.net.Lost, g.net.Repeated
	paid := messages.Credits(0)
	for id, cost := range g.leader.costs {
		if j := g.leader.book.Job(id); j != nil { // an ended job may get credits back that were meant for a cancelled job
			cost = j.Cost()
		}
		g.out.Jobs[g.leader.of[id]].Paid += cost
		paid += cost
	}
	account, err := g.bank.Account(money.SiteAccount)
	under := g.ended < len(g.out.Jobs) // unwanted jobs may still run
	switch {
	case err != nil:
		return nil, nil, err
	case !books.Balanced || books.Holds != 0 && !under:
		return nil, nil, messages.Errorf(messages.Internal, "the bank's books do not balance: %s, %d holds", books.Message, books.Holds)
	case account.Balance != paid && !under:
		return nil, nil, messages.Errorf(messages.Internal, "jobs paid %v, the site has %v", paid, account.Balance)
	}
	g.handOver()
	back(g.unit, g.out)
	return g.out, &g.traffic, nil
}

func (g *Grid) fail(format string, args ...any) {
	if g.failed == nil {
		g.failed = messages.Errorf(messages.Internal, "at %v: %s", g.now, fmt.Sprintf(format, args...))
	}
}
