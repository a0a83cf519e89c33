package faults

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const (
	class = "cpu"
	lease = 6 * second
	users = 3 // number of users at each site

	// granted is the amount that each user gets: enough for a few jobs at the same time.
	granted = 20 * messages.Credit
	// limit is the largest amount that one other site may owe this site. reserve is the largest amount that all other
	// sites together may owe by settlements.
	limit   = 30 * messages.Credit
	reserve = 20 * messages.Credit

	operator = "operator"
)

var siteNames = []string{"east", "north", "west"}

// markets returns the markets of the sites, each with another mechanism.
func markets() []market.Market {
	price := messages.Price(messages.Credit / 20)
	return []market.Market{
		{Name: "share", Mechanism: market.Proportional, Classes: []messages.Name{class}},
		{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{class}, Reserve: &price, Capped: true},
		{Name: "queue", Mechanism: market.BatchQueue, Classes: []messages.Name{class}, Draws: 16, GangTimeout: mostGathering,
			PriorJobs: []market.QueuedType{{Value: 3 * messages.Credit, Delay: messages.Credit / 20, Length: 20e9}, {Value: 40 * messages.Credit, Delay: messages.Credit, Length: 90e9}}},
	}
}

// site is one site of the federation. It has agents, users and three machines, each with a replica of the book and of
// the bank's state.
type site struct {
	*World
	index    int
	name     messages.Name
	clients  string // network name of the site's users and operators
	market   market.Market
	machines [3]*machine
	books    *group
	banks    *group
	agents   []*agent
	users    []*user
	exits    map[messages.Attempt]bool // virtual processes that ended successfully
	tally    *tally
	seen     witness
	liar     liar

	jumped    bool // a clock of the site was wrong
	hopeless  bool // all agents of the site were black holes at the same time
	troubles  int  // number of present faults within the site
	wellSince messages.Time
	booted    messages.Time                   // time when one of the site's machines last started
	wrong     map[*machine]messages.Duration  // largest error of each clock that was set wrong
	heard     map[messages.Name]messages.Time // time when a leader last heard from each node
	vector    lastVector
	proposed  map[string]messages.Time // time when each entry of the book was proposed, in simulated time
	once      map[messages.Name]uint64 // for an inserted bug: numbers that were sent to a peer
}

func newSite(w *World, i int) *site {
	s := &site{World: w, index: i, name: siteNames[i], market: markets()[i], wellSince: w.now,
		exits: map[messages.Attempt]bool{}, tally: newTally(), proposed: map[string]messages.Time{}, once: map[messages.Name]uint64{}, heard: map[messages.Name]messages.Time{}, wrong: map[*machine]messages.Duration{}}
	s.clients = s.name + ".users"
	s.seen, s.liar = newWitness(s), newLiar(s)
	for k := range s.machines {
		s.machines[k] = &machine{site: s, name: fmt.Sprint(s.name, ".m", k), index: k, files: newFiles()}
	}
	for _, m := range s.machines {
		m.keepTime()
		m.open()
	}
	s.books = s.newGroup("the book", func(m *machine) automaton { return newBookState(s, m) }, s.seen.book)
	s.banks = s.newGroup("the bank", func(m *machine) automaton { return newBankState(s, m) }, s.seenBank)
	s.books.lead = func(r *replica) shell { return newLeader(s, r) }
	s.banks.lead = func(r *replica) shell { return newBankLeader(s, r) }
	for k := range w.plan.Nodes {
		s.agents = append(s.agents, newAgent(s, k))
	}
	return s
}

func (s *site) newGroup(name string, fresh func(*machine) automaton, observe func([]byte, automaton, any) error) *group {
	g := &group{site: s, name: name, reference: fresh(nil), hashes: map[uint64][32]byte{}}
	g.observe = func(data []byte, result any) error { return observe(data, g.reference, result) }
	for i := range g.replicas {
		m := s.machines[i]
		r := &replica{group: g, me: i, host: m, voted: -1, fresh: func() automaton { return fresh(m) }}
		g.replicas[i] = r
		r.boot()
	}
	return g
}

func (s *site) actors() []string {
	out := []string{s.clients}
	for _, m := range s.machines {
		out = append(out, m.name)
	}
	for _, a := range s.agents {
		out = append(out, a.actor)
	}
	return out
}

func userName(i int) messages.Name { return fmt.Sprint("u", i%users) }

// In the name of the operator, open adds the other sites as peers and grants credits to the users.
func (s *site) open() {
	for _, p := range s.sites {
		if p != s {
			s.bank(s.clients, never, operator, clearing.Command{Peer: &clearingmsg.PeerRequest{Peer: p.name, Keys: []string{p.name}, Limit: limit}}, func(clearing.Result) {})
		}
	}
	s.bank(s.clients, never, operator, clearing.Command{Reserve: &clearingmsg.ReserveRequest{Limit: reserve}}, func(clearing.Result) {})
	if s.lies {
		s.meet()
	}
	for i := range users {
		c := ledger.Command{Verb: ledger.Grant, At: s.now, By: operator, Grant: money.GrantRequest{
			Key: fmt.Sprint("open/", i), Account: userName(i), Amount: granted, Reason: "the run begins"}}
		data := c.Encode()
		s.call(s.clients, s.banks, never, func(r *replica, answer func(any)) { r.propose(data, answer) }, func(any) {})
	}
}

func (s *site) populate() {
	for i := range s.plan.Jobs {
		s.users = append(s.users, newUser(s, i))
	}
	for i := range s.plan.Trades {
		newTrade(s, i)
	}
	at := s.plan.Duration/3 + messages.Duration(s.rng.Int64N(int64(s.plan.Duration)))
	s.queue.Push(s.now.Add(at), func() { s.closeCycle(1) })
	if node := s.rng.IntN(3 * len(s.agents)); node < len(s.agents) {
		s.drain(s.agents[node].name, at)
	}
	if s.rng.IntN(2) == 0 {
		s.queue.Push(s.now.Add(8*second+messages.Duration(s.rng.Int64N(int64(s.plan.Duration)))), s.reform)
	}
}

// In the name of the operator, drain drains a node after the given time, and resumes it 20 seconds later.
func (s *site) drain(node messages.Name, at messages.Duration) {
	within := 1 + messages.Duration(s.rng.Int64N(int64(5*second)))
	s.queue.Push(s.now.Add(at), func() {
		s.order(func(l *leader) *book.Command {
			return &book.Command{Drain: &book.Drain{Node: node, Until: l.r.clock().Add(within)}}
		}, func(any) {
			s.queue.Push(s.now.Add(20*second), func() {
				s.order(func(*leader) *book.Command { return &book.Command{Drain: &book.Drain{Node: node}} }, func(any) {})
			})
		})
	})
}

// In the name of the operator, reform changes a parameter of the market while jobs run.
func (s *site) reform() {
	config, alpha, reserve := s.market, 0.5+s.rng.Float64()/2, 1+messages.Price(s.rng.Int64N(int64(messages.Credit/20)))
	switch config.Mechanism {
	case market.Proportional:
		config.Alpha = &alpha
	case market.HighestBid:
		config.Reserve = &reserve
	case market.BatchQueue:
		config.Draws = 8
	}
	s.order(func(l *leader) *book.Command {
		return &book.Command{ApplyMarkets: &book.ApplyMarkets{Markets: []market.Market{config}, MarketsVersion: l.desk.Version + 1}}
	}, func(any) {})
}

// order sends a command of the operator to the leader of the book again and again, until the command is committed.
func (s *site) order(command func(*leader) *book.Command, answered func(any)) {
	s.call(s.clients, s.books, never, func(r *replica, answer func(any)) {
		l := r.shell.(*leader)
		l.propose(command(l), answer)
	}, answered)
}

func (s *site) closeCycle(number uint64) {
	s.bank(s.clients, never, operator, clearing.Command{Close: &clearingmsg.CloseRequest{Cycle: number}}, func(clearing.Result) {})
}

// site returns the site that a fault's target names, or nil.
func (w *World) site(target string) *site {
	name, _, _ := strings.Cut(target, ".")
	for _, s := range w.sites {
		if s.name == name {
			return s
		}
	}
	return nil
}

// struck is a machine or an agent: something that a fault can hit.
type struck interface {
	crash()
	start()
	shift(by messages.Duration) // changes the clock by this duration
}

// find returns the machine or the agent that a fault's target names, or nil.
func (w *World) find(target string) struck {
	s := w.site(target)
	if s == nil {
		return nil
	}
	for _, m := range s.machines {
		if m.name == target {
			return m
		}
	}
	for _, a := range s.agents {
		if a.actor == target {
			return a
		}
	}
	return nil
}
