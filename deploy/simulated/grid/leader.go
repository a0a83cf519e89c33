package grid

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// coalesce is the least time between two steps of the leader's logic (package desk). In each step, the leader makes one
// decision about all changes since the step before.
const coalesce = messages.Duration(3e6)

// leader runs the logic of the auctioneer's leader (package desk) in the simulation. It commits proposals at once, and
// sends requests to the simulated bank.
type leader struct {
	*Grid
	book   *book.Book
	desk   *desk.Desk
	term   uint64
	market *market.Market // the only market of the desk
	rules  intake.Rules
	menus  intake.MenuKey // key of the menus; derived from the seed, while a real site draws it at random
	inputs []desk.Input   // inputs of the next step
	late   []func()       // exchanges of agents that wait for the next step

	of []int32 // by number of a job in the book: the job of the workload
	// costs has the payment of each ended job of the book, as far as it is known.
	costs   map[messages.JobID]messages.Credits
	retried map[messages.JobID]int // by job: number of retried tasks that were recorded
	refused map[int]int            // by job of the workload: number of parts that were refused

	free    messages.Time // earliest time of the next step
	planned messages.Time // time of the next step after an event; 0: none is planned
	timer   messages.Time // time of the next step if nothing happens; 0: none is planned
}

func newLeader(g *Grid, config marketmsg.Market) (*leader, error) {
	l := &leader{Grid: g, book: book.New(), of: make([]int32, 1, len(g.Bids)+1), retried: map[messages.JobID]int{}, costs: map[messages.JobID]messages.Credits{}, refused: map[int]int{}}
	return l, l.lead(config)
}

// lead begins a term of the leader. Messages to the leader of the last term are lost.
func (l *leader) lead(config marketmsg.Market) error {
	l.term++
	l.book.Watch(true)
	var faults []error
	l.desk, faults = desk.New(desk.Config{Site: site, Term: l.term, Markets: []marketmsg.Market{config}, Lease: l.Grid.config.Lease, Seed: l.Seed, Level: messages.Level}, l, l.instant())
	if len(faults) > 0 {
		return faults[0]
	}
	l.menus = binary.BigEndian.AppendUint64(nil, l.DrawSeed())
	l.market, l.rules, l.inputs, l.late = l.desk.Market(config.Name), intake.Rules{Markets: l.desk.Markets, Site: site}, nil, nil
	return nil
}

func (l *leader) restart() {
	if err := l.lead(l.market.Config); err != nil {
		l.fail("the site cannot lead again: %v", err)
	}
	l.kick()
}

// Read calls the function `read`, and passes the book to it.
func (l *leader) Read(read func(*book.Book)) { read(l.book) }

// Changes passes the changes of the book to the desk, and records them.
func (l *leader) Changes(read func(*book.Book, book.Changes)) {
	changes := l.book.TakeChanges()
	l.noteRetries(changes.Jobs)
	if l.config.Forgetful {
		for _, id := range changes.Jobs {
			forget(l.book.Job(id))
		}
	}
	read(l.book, changes)
}

// forget inserts the fault of Config.Forgetful into the state of a job: a task counts as complete only if it ended
// well.
func forget(j *book.Job) {
	if j == nil {
		return
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Complete = s.Done
	}
}

func (l *leader) instant() desk.Instant {
	return desk.Instant{Wall: l.now, Mono: l.now.Sub(l.epoch) + aDay}
}

// aDay is added to the monotonic clock. Without it, the clock would be negative for agents that join before the log
// begins.
const aDay = messages.Duration(86400e9)

// propose commits a command, and encodes and decodes it as if it went through a real log.
func (l *leader) propose(c *book.Command) any {
	if l.during(l.config.Full) {
		return messages.Errorf(messages.Exhausted, "the disk is full")
	}
	c.Stamp(l.now, 0, false)
	data, err := c.Encode()
	if err == nil {
		c, err = book.Decode(data)
	}
	if err != nil {
		l.fail("a command cannot be written down: %v", err)
		return err
	}
	l.traffic.Commands++
	result := l.book.Apply(c)
	l.kick()
	return result
}

// kick plans the leader's next step for the earliest time at which the leader may make one.
func (l *leader) kick() {
	at := max(l.free, l.now)
	if l.planned != 0 && l.planned <= at {
		return
	}
	l.planned = at
	l.queue.Push(at, func() {
		if l.planned == at {
			l.step()
		}
	})
}

// setTimer sets the only timer of the desk: the desk makes its next step at the time `next`. If an earlier timer is set
// already, setTimer does nothing. A timer that was replaced has no effect when it fires.
func (l *leader) setTimer(next messages.Time) {
	if l.timer != 0 && l.timer <= next {
		return
	}
	l.timer = next
	l.queue.Push(next, func() {
		if l.timer != next { // another timer was set in the meantime
			return
		}
		l.timer = 0
		if l.free > l.now {
			l.kick()
		} else {
			l.step()
		}
	})
}

func (l *leader) step() {
	l.planned, l.free = 0, l.now.Add(coalesce)
	if l.during(l.config.Down) {
		return
	}
	in := l.inputs
	l.inputs = nil
	do := l.desk.Step(l.instant(), in...)
	for _, p := range do.Propose {
		result := l.propose(p.Command)
		err, _ := result.(error)
		l.done(p.ID, result, err)
	}
	for _, r := range do.Ask {
		l.ask(r)
	}
	for i := range do.Publish {
		l.publish(&do.Publish[i])
	}
	for i := range do.Direct {
		l.direct(&do.Direct[i])
	}
	for _, e := range do.Events {
		l.note(e)
	}
	if do.Next >= 0 {
		l.setTimer(l.now.Add(do.Next))
	}
	late := l.late
	l.late = nil
	for _, try := range late {
		try()
	}
}

func (l *leader) done(id uint64, result any, err error) {
	l.inputs = append(l.inputs, desk.Done{ID: id, Result: result, Err: err})
	l.kick()
}

// ask carries out a request of package desk. A request with transfers goes to the bank. A request with observations of
// ended jobs makes the simulation record the outcomes of these jobs.
func (l *leader) ask(r desk.Request) {
	term := l.term
	switch body := r.Body.(type) {
	case money.TransferRequest:
		l.transfer(body.Transfers, func(results []money.TransferResult) {
			if l.term != term {
				return
			}
			l.done(r.ID, &money.TransferReply{Results: results}, nil)
		})
	case []job.Observation:
		for i := range body {
			if _, concluded := l.costs[body[i].Job]; !concluded { // the request is repeated if its commit failed
				l.conclude(l.book.Job(body[i].Job))
			}
		}
		l.done(r.ID, len(body), nil)
	default:
		l.fail("the auctioneer sent %s a request that the simulation does not know: %s", r.To, r.Verb)
	}
}

func (l *leader) transfer(t []money.Transfer, answered func([]money.TransferResult)) {
	for k := range t { // a visitor's account exists only in the bank
		t[k].Member, _, _ = strings.Cut(t[k].Member, "@")
	}
	l.call(auctioneerActor, bankActor, func() any {
		l.traffic.Transfers++
		c := &ledger.Command{Verb: ledger.Transfers, At: l.now, By: messages.ServiceIdentity(messages.Auctioneer), Rank: ledger.Service, Transfers: t}
		r := l.bank.Apply(c.Encode())
		if r.Error != nil {
			l.fail("the bank refused a request: %v", r.Error)
		}
		return r.Transfers
	}, func(reply any) {
		if results := reply.([]money.TransferResult); len(results) == len(t) {
			answered(results)
		}
	})
}

// mostNews is the largest number of published vectors that are kept for agents that have not received them yet.
const mostNews = 256

// publish sends a vector to all agents. On a reliable network all agents get it at the same time. An agent that has
// nothing to do at this time reads the vector at its next event.
func (l *leader) publish(v *agentmsg.Vector) {
	l.traffic.Vectors++
	if !l.net.Reliable() {
		for _, a := range l.agents {
			l.send(auctioneerActor, a.name, func() {
				l.traffic.Delivered++
				a.vector(v)
				a.act()
			})
		}
		return
	}
	l.queue.Push(l.net.Arrival(l.now), func() {
		l.traffic.Delivered += uint64(len(l.agents))
		if v.Base == 0 {
			l.whole = len(l.news)
		}
		l.news = append(l.news, v)
		for i, heeds := range l.heeds {
			if heeds {
				l.agents[i].act()
			}
		}
		if len(l.news) < mostNews {
			return
		}
		for _, a := range l.agents {
			a.catchUp()
			a.heard = 0
		}
		l.news, l.whole = l.news[:0], 0
	})
}

// direct sends a node the tasks that it must end and the tasks that it must suspend, as the desk has decided.
func (l *leader) direct(d *desk.Direction) {
	a := l.named[d.Node]
	l.traffic.Directives++
	l.send(auctioneerActor, d.Node, func() {
		a.catchUp()
		a.state.Directive(a.now, &d.Directive)
		a.act()
	})
}

// exchange answers a request of an agent. If a market will soon decide about the claims in the request, the answer
// waits for the decision.
func (l *leader) exchange(node messages.Name, x *agentmsg.Exchange, answer func(*agentmsg.ExchangeReply, error)) {
	l.traffic.Exchanges++
	until := l.now.Add(desk.DecidingWithin)
	var try func()
	try = func() {
		if l.now < until && l.desk.AwaitsDecision(x) {
			l.late = append(l.late, try)
		} else {
			answer(l.commit(node, x))
		}
	}
	try()
}

// commit answers an agent's exchange. If the exchange changes the book, it is committed first.
func (l *leader) commit(node messages.Name, x *agentmsg.Exchange) (*agentmsg.ExchangeReply, error) {
	var grants []agentmsg.Grant
	if desk.MustCommit(l.book, l.now, node, x) {
		for i := range x.Claims {
			l.traffic.Claims += uint64(x.Claims[i].Slots)
		}
		c := l.desk.Exchange(node, x)
		result := l.propose(c)
		granted, _ := result.([]agentmsg.Grant)
		l.desk.Unreserve(desk.Ungranted(c.Exchange, granted))
		if err, refused := result.(error); refused {
			return nil, err
		}
		grants = slices.Clone(granted)
		l.traffic.Grants += uint64(len(grants))
	} else {
		l.traffic.Heartbeats++
	}
	reply, err := desk.Answer(l.book, node, x, grants)
	if err == nil {
		l.inputs = append(l.inputs, desk.Heard{Node: node, At: l.instant().Mono})
	}
	return &reply, err
}

func (l *leader) register(node messages.Name, r *agentmsg.RegisterRequest) (*agentmsg.RegisterReply, error) {
	own := *r
	own.MostSuspended = agentmsg.MaxSuspended // memory is not simulated
	c, err := l.desk.Register(node, &own)
	if err != nil {
		return nil, err
	}
	end, ok := l.propose(c).([]messages.Attempt)
	if !ok {
		return nil, messages.Errorf(messages.Internal, "the book refuses node %s", node)
	}
	reply := l.desk.Registered(l.instant(), node, &own, end)
	for k := range reply.Markets {
		reply.Markets[k].Ordered = reply.Markets[k].Ordered || l.config.ByStarts
	}
	return &reply, nil
}
