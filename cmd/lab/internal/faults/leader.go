package faults

import (
	"cmp"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// leader is the auctioneer's leader without its decisions. The desk makes the decisions. The leader carries them out
// with the log, the clocks and the network of this simulation, and reports the outcomes.
type leader struct {
	*site
	r       *replica
	desk    *desk.Desk
	came    []desk.Input  // inputs since the last step
	late    []func()      // exchanges that wait for the next step
	planned messages.Time // simulated time of the next step; 0 means none
	duties  *duties
	visits  *visits
	told    map[messages.Name]bool // for an inserted bug: nodes that were sent a directive
}

const (
	// gathering is how long a leader waits for more inputs after the first one, before it makes decisions.
	gathering = second / 200
	// givesUp is how long a leader waits for the bank's answer.
	givesUp = 5 * second
	// mostOpen is the largest number of entries that may wait for a slow disk. If this number is reached, further
	// proposals are refused.
	mostOpen = 3
	// holdFor is how long the bank keeps a hold that is not extended: longer than any difference between clocks.
	holdFor = 200 * second
)

func newLeader(s *site, r *replica) *leader {
	l := &leader{site: s, r: r, duties: newDuties(r), told: map[messages.Name]bool{}}
	l.visits = &visits{Visits: federation.NewVisits(r.term), leader: l}
	l.book().Watch(true)
	c := desk.Config{Site: s.name, Term: r.term, Markets: []marketmsg.Market{s.market},
		Lease: lease, HoldFor: holdFor, RemoteFor: roamFor, Idle: second, Estimator: true, Seed: s.seed, Open: s.openMarket, Level: messages.Level}
	switch s.Bug {
	case LeaseEarly:
		c.Lease = lease * 2 / 3
	case VectorBack:
		c.Term = 1
	}
	var failed []error
	l.desk, failed = desk.New(c, l, l.instant())
	l.expect(failed)
	l.plan(gathering)
	return l
}

// openMarket opens a market with an auditor that checks each decision of the market's mechanism. The market treats
// every mechanism as one that plans with run times, although none of these mechanisms uses run times.
func (s *site) openMarket(config marketmsg.Market) (*market.Market, error) {
	mech, err := registry.Make(config)
	if err != nil {
		return nil, err
	}
	manner := registry.Of(&config).Manner
	manner.Plans = true
	return market.New(manner, config, audited(s, mech)), nil
}

// instant returns the present time of the machine's clocks. A fault of the simulation can set the wall clock, but never
// the monotonic clock.
func (l *leader) instant() desk.Instant {
	wall, leap, _ := l.r.stamp()
	if l.Bug == WallLease {
		return desk.Instant{Wall: wall, Leap: leap, Mono: l.r.host.wall().Sub(epoch)}
	}
	return desk.Instant{Wall: wall, Leap: leap, Mono: l.now.Sub(epoch)}
}

// expect records a violation if a market of the site could not be opened.
func (l *leader) expect(failed []error) {
	for _, err := range failed {
		l.violate("%v", err)
	}
}

func (l *leader) gone() bool { return l.r.shell != l || l.r.host.down }

func (l *leader) book() *book.Book { return l.r.state.(*bookState).Book }

// Read lets the desk, which makes the leader's decisions, read the book.
func (l *leader) Read(f func(*book.Book)) { f(l.book()) }

// Changes passes the book's changes since its last call to `f`, which gives them to the desk (the decision logic).
func (l *leader) Changes(f func(*book.Book, book.Changes)) {
	b := l.book()
	c := b.TakeChanges()
	l.visits.changed(b, c)
	f(b, c)
}

// applied plans that the desk (the decision logic) makes a step soon. This step also handles all inputs that come
// before it.
func (l *leader) applied() { l.plan(gathering) }

// tell gives the desk (the decision logic) an input for its next step, and plans this step.
func (l *leader) tell(in desk.Input) {
	if !l.gone() {
		l.came = append(l.came, in)
		l.plan(gathering)
	}
}

// The method `plan` schedules the next step of the desk (the decision logic) after a wait. If an earlier step is
// already scheduled, it does nothing.
func (l *leader) plan(wait messages.Duration) {
	at := max(l.now.Add(wait), l.now+1)
	if l.planned > l.now && l.planned <= at {
		return
	}
	l.planned = at
	l.after(&l.r.host.host, at.Sub(l.now), func() {
		if l.planned == at && !l.gone() {
			l.planned = 0
			l.step()
		}
	})
}

func (l *leader) step() {
	came := l.came
	l.came = nil
	l.do(l.desk.Step(l.instant(), came...))
	late := l.late
	l.late = nil
	for _, try := range late {
		try()
	}
}

func (l *leader) do(a desk.Actions) {
	for _, e := range a.Events {
		if e, is := e.(desk.Reconfigured); is {
			l.expect(e.Faults)
		}
	}
	for _, p := range l.meddle(a.Propose) {
		l.commit(p)
	}
	for _, q := range a.Ask {
		l.ask(q)
	}
	for _, v := range a.Publish {
		l.check(l.site, l.duties.published(&v))
		for _, to := range l.agents {
			l.send(l.r.host.name, to.actor, func() { to.vector(&v) })
		}
	}
	for _, d := range l.onceEach(a.Direct) {
		for _, to := range l.agents {
			if to.name == d.Node {
				l.send(l.r.host.name, to.actor, func() { to.directive(&d.Directive) })
			}
		}
	}
	if a.Next >= 0 {
		l.plan(a.Next)
	}
}

// commit commits a command that the desk (the decision logic) has proposed, unless the log is full.
func (l *leader) commit(p desk.Proposal) {
	done := func(result any) {
		err, _ := result.(error)
		if l.Bug == SettlementForgotten && p.Command.Settle != nil {
			err = nil
		}
		l.tell(desk.Done{ID: p.ID, Result: result, Err: err})
	}
	if l.r.host.slow && l.r.last()-l.r.synced > mostOpen {
		l.duties.refuses(p.Command)
		done(messages.Errorf(messages.Unavailable, "the log is full"))
		return
	}
	l.check(l.site, l.duties.proposes(p.Command))
	l.propose(p.Command, func(result any) {
		l.duties.decided(p.Command)
		done(result)
	})
}

// propose proposes a command, and later calls `answered` with the result. If the command is lost with its leader,
// `answered` is never called.
func (l *leader) propose(c *book.Command, answered func(any)) {
	c.Stamp(l.r.stamp())
	data, err := c.Encode()
	if err != nil {
		l.violate("a command cannot be written down: %v", err)
		return
	}
	l.proposed[string(data)] = l.now
	l.r.propose(data, answered)
}

// ask sends a request of the desk (the decision logic) to the bank, the estimator or another site. The desk learns if
// no answer comes in time.
func (l *leader) ask(q desk.Request) {
	done := false
	answer := func(reply any, err error) {
		if !done {
			done = true
			l.tell(desk.Done{ID: q.ID, Result: reply, Err: err})
		}
	}
	over := func() bool { return done || l.gone() }
	switch body := q.Body.(type) {
	case money.TransferRequest:
		l.transfers(body.Transfers, over, answer)
	case clearingmsg.ChargeRequest:
		l.askBank(clearing.Command{Charge: &body}, over, answer)
	case []job.Observation: // the stream of observations has no faults here
		l.after(&l.r.host.host, gathering, func() { answer(len(body), nil) })
	case marketmsg.RuntimeRequest, messages.Empty, marketmsg.SamplesRequest: // a request to the estimator
		l.after(&l.r.host.host, gathering, func() { answer(l.estimate(body)) })
	case *messages.Empty: // asks which peers the bank has parted from; here there are none
		answer(&clearingmsg.PeersReply{}, nil)
	case *clearingmsg.AuthoriseRequest:
		l.askBank(clearing.Command{Authorise: body}, over, answer)
	case *clearingmsg.RevokeRequest:
		l.askBank(clearing.Command{Revoke: body}, over, answer)
	case *clearingmsg.PeerSubmitRequest, *clearingmsg.PeerJobsRequest, *job.JobRequest:
		l.askPeer(&q, over, answer)
	default:
		l.violate("the leader sends %s a request that the simulation does not know: %T", q.To, body)
	}
	l.after(&l.r.host.host, cmp.Or(q.Within, givesUp), func() {
		if done = done || l.Bug == AskForgotten; done {
			return
		}
		answer(nil, messages.Errorf(messages.Unavailable, "%s has not answered", q.To))
	})
}

func (l *leader) transfers(list []money.Transfer, over func() bool, answer func(any, error)) {
	if round := list[0].Linked; round && l.Bug == RoundLate {
		presume(list, answer)
		l.queue.Push(l.now.Add(40*second), func() { l.transfer(l.r.host.name, never, list, func([]money.TransferResult, error) {}) })
		return
	}
	l.short(list)
	l.impatient(list, over)
	l.transfer(l.r.host.name, over, l.spoil(list), func(came []money.TransferResult, err error) {
		answer(&money.TransferReply{Results: came[:min(len(list), len(came))]}, err)
	})
	if l.Bug == ConfirmedEarly {
		presume(list, answer)
	}
}
