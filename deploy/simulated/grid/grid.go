package grid

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// Config is how the site is put together.
type Config struct {
	Network network.Config
	Lease   messages.Duration // of an agent; 0: six hours
}

const defaultLease = messages.Duration(6 * 3600 * 1e9)

// Traffic counts the messages between actors, and what they did.
type Traffic struct {
	Submissions uint64 `json:"submissions"`
	Transfers   uint64 `json:"transfers"` // requests to the bank
	Vectors     uint64 `json:"vectors"`   // published
	Delivered   uint64 `json:"delivered"` // vectors, at agents
	Fetches     uint64 `json:"fetches"`   // whole vectors asked for
	Directives  uint64 `json:"directives"`
	Exchanges   uint64 `json:"exchanges"`
	Heartbeats  uint64 `json:"heartbeats"` // of them, those that only renew a lease
	Claims      uint64 `json:"claims"`     // slots claimed
	Grants      uint64 `json:"grants"`
	Commands    uint64 `json:"commands"` // applied to the book
	Decisions   uint64 `json:"decisions"`
	Events      uint64 `json:"events"`
	Lost        uint64 `json:"lost"`
	Repeated    uint64 `json:"repeated"`
	Books       string `json:"books"` // the bank's own word on its books
}

// epoch is when the log begins: instants of 0 mean never.
const epoch = messages.Time(1_000_000_000_000_000)

// Names of the actors on the network.
const (
	auctioneerActor = "auctioneer"
	bankActor       = "bank"
	userActor       = "user"
)

const site = "simulated"

// Grid is a site on its way.
type Grid struct {
	*core.Problem
	config  Config
	now     messages.Time
	queue   clock.Queue[func()]
	net     *network.Network
	leader  *leader
	agents  []*agent
	bank    *ledger.Ledger
	out     *core.Outcome
	ended   int // jobs
	traffic Traffic
	failed  error
}

// Run runs a study with all actors.
func Run(p *core.Problem, c Config) (*core.Outcome, *Traffic, error) {
	c.Lease = cmp.Or(c.Lease, defaultLease)
	if err := possible(p); err != nil {
		return nil, nil, err
	}
	g := &Grid{Problem: p, config: c, bank: ledger.New(), out: &core.Outcome{Jobs: make([]core.Job, len(p.Work.Jobs))}}
	var err error
	if g.net, err = network.New(c.Network, p.Seed); err != nil {
		return nil, nil, err
	}
	first, _ := p.Work.Span()
	g.now = at(first) - 60e6 // agents have a minute to join
	if g.leader, err = newLeader(g); err != nil {
		return nil, nil, err
	}
	if err := g.open(); err != nil {
		return nil, nil, err
	}
	for i := range p.Work.Nodes {
		g.agents = append(g.agents, newAgent(g, i, rand.New(rand.NewPCG(p.Seed, uint64(i)+1))))
	}
	for i := range p.Work.Jobs {
		g.queue.Push(at(p.Work.Jobs[i].Submit), func() { g.submit(i) })
	}
	return g.run()
}

// possible refuses what no site of serial tasks can run.
func possible(p *core.Problem) error {
	const most = 1e9 // seconds: what is longer does not fit a Duration
	if len(p.Bids) != len(p.Work.Jobs) {
		return messages.Errorf(messages.Invalid, "bids: there are %d for %d jobs", len(p.Bids), len(p.Work.Jobs))
	}
	if p.Work.Nodes > book.MaxNodes {
		return messages.Errorf(messages.TooLarge, "nodes: all actors are simulated with at most %d, there are %d", book.MaxNodes, p.Work.Nodes)
	}
	if p.Market.SLO > 0 {
		return messages.Errorf(messages.Invalid, "slo: is not simulated with all actors: leave it out, or take --actors core")
	}
	for i := range p.Work.Jobs {
		j := &p.Work.Jobs[i]
		switch {
		case j.Width > 1 && p.Work.Parallel != workload.Split:
			return messages.Errorf(messages.Invalid, "job %d: all actors are simulated with serial tasks: split parallel jobs, or skip them", j.Number)
		case j.Runtime > most || p.Bids[i].Length > most || j.Submit > most:
			return messages.Errorf(messages.Invalid, "job %d: submitted at %v s, runs %v s: all actors are simulated for at most %v s", j.Number, j.Submit, j.Runtime, most)
		}
	}
	return nil
}

// at is an instant of the log.
func at(seconds float64) messages.Time { return epoch + messages.Time(seconds*1e6) }

func sinceEpoch(t messages.Time) float64 { return float64(t-epoch) / 1e6 }

// run lets one thing happen after another until all jobs have ended.
func (g *Grid) run() (*core.Outcome, *Traffic, error) {
	for _, a := range g.agents {
		a.act()
	}
	for g.ended < len(g.out.Jobs) && g.failed == nil {
		if g.queue.Len() == 0 {
			return nil, nil, messages.Errorf(messages.Internal, "nothing is going to happen any more, and %d of %d jobs have not ended", len(g.out.Jobs)-g.ended, len(g.out.Jobs))
		}
		g.now = g.queue.Next()
		g.traffic.Events++
		g.queue.Pop()()
	}
	if g.failed != nil {
		return nil, nil, g.failed
	}
	return g.finish()
}

// finish checks what must hold at the end.
func (g *Grid) finish() (*core.Outcome, *Traffic, error) {
	books := g.bank.Books()
	g.traffic.Books, g.traffic.Lost, g.traffic.Repeated = books.Message, g.net.Lost, g.net.Repeated
	paid := messages.Credits(0)
	for i := range g.out.Jobs {
		paid += g.out.Jobs[i].Paid
	}
	account, err := g.bank.Account(messages.SiteAccount)
	switch {
	case err != nil:
		return nil, nil, err
	case !books.Balanced || books.Holds != 0:
		return nil, nil, messages.Errorf(messages.Internal, "the bank's books do not balance: %s, %d holds", books.Message, books.Holds)
	case account.Balance != paid:
		return nil, nil, messages.Errorf(messages.Internal, "jobs paid %v, the site has %v", paid, account.Balance)
	}
	g.out.Decisions = int(g.traffic.Decisions)
	return g.out, &g.traffic, nil
}

// fail ends the run: a part of the simulation is wrong.
func (g *Grid) fail(format string, args ...any) {
	if g.failed == nil {
		g.failed = messages.Errorf(messages.Internal, "at %v: %s", g.now, fmt.Sprintf(format, args...))
	}
}

// send brings a message from one actor to another.
func (g *Grid) send(from, to string, deliver func()) {
	g.net.Send(g.now, from, to, func(at messages.Time) { g.queue.Push(at, deliver) })
}

// call brings a request to an actor and its answer back; without an answer
// within a time it is sent again, until there is one. The request must bear
// being answered twice.
func (g *Grid) call(from, to string, serve func() any, answered func(any)) {
	const patience = messages.Duration(5e9)
	done := false
	var try func()
	try = func() {
		if done {
			return
		}
		g.send(from, to, func() {
			reply := serve()
			g.send(to, from, func() {
				if !done {
					done = true
					answered(reply)
				}
			})
		})
		if !g.net.Reliable() {
			g.queue.Push(g.now.Add(patience), try)
		}
	}
	try()
}
