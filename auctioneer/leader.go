package auctioneer

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// leader is what a replica does and knows besides the book while it leads.
type leader struct {
	*Auctioneer
	term uint64

	mu      sync.Mutex // guards what follows
	markets []*trading
	rng     *rand.Rand
	configs []messages.Market // of markets, in the same order
	slots   slotCount
	settled map[messages.JobID]bool // a settlement is under way
	later   []later                 // settlements that are not due yet
	gangs   map[gang]messages.Time  // that gather, since when
	told    map[uint32]uint64       // by node: the version that was published; guarded by the replica's lock

	leases    *leases
	reapplied bool          // the markets are not those of the configuration
	informed  sync.Map      // by node: the exchange that was answered with its markets
	effects   chan struct{} // there are effects to carry out
}

// trading is a market with what was published of it.
type trading struct {
	*market.Market
	publisher *market.Publisher
	pace      pace
	deciding  bool // a decision is being committed
}

// lead serves for a term until the returned function is called, which waits
// for everything it started.
func (a *Auctioneer) lead(ctx context.Context, term uint64) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	l := &leader{
		Auctioneer: a,
		term:       term,
		rng:        rand.New(rand.NewPCG(term, uint64(a.Clock()))),
		settled:    map[messages.JobID]bool{},
		gangs:      map[gang]messages.Time{},
		told:       map[uint32]uint64{},
		leases:     newLeases(),
		effects:    make(chan struct{}, 1),
	}
	l.open()
	a.replica.watch(true)

	var running sync.WaitGroup
	for _, f := range []func(context.Context){l.decide, l.keepServing, l.carryOut, l.watchLeases, l.extendHolds} {
		running.Go(func() { f(ctx) })
	}
	a.metrics.leading.Set(1)
	return func() {
		a.metrics.leading.Set(0)
		cancel()
		running.Wait()
		a.replica.watch(false)
		a.seqs = map[messages.Name]uint64{}
		for _, t := range l.markets {
			a.seqs[t.Config.Name] = t.publisher.Seq()
		}
	}
}

// keepServing serves until ctx ends. While the bus is cut it tries again: a leader
// that nobody can reach would keep everybody waiting.
func (l *leader) keepServing(ctx context.Context) {
	const pause = 100 * time.Millisecond
	for {
		stop, err := l.serve()
		if err == nil {
			<-ctx.Done()
			stop()
			return
		}
		l.Log.Warn("cannot serve yet", zap.Error(err))
		stop()
		if !sleep(ctx, pause) {
			return
		}
	}
}

// serve opens the leader's services; what it opened before an error is for
// stop to close.
func (l *leader) serve() (stop func(), err error) {
	var open []bus.Subscription
	stop = func() {
		for _, s := range open {
			_ = s.Stop()
		}
	}
	for _, s := range l.services() {
		sub, err := l.Bus.Serve(s)
		if err != nil {
			return stop, err
		}
		open = append(open, sub)
	}
	return stop, nil
}

func (l *leader) services() []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(l.Site, messages.Auctioneer, verb, "*"), Handle: h}
	}
	return []bus.Service{
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, bus.Handle("submit", l.submit)),
			at(messages.VerbCancel, bus.Handle("cancel", l.cancel)),
			at(messages.VerbQuote, bus.Handle("quote", l.quote)),
			at(messages.VerbDrain, bus.Handle("drain", l.drain)),
			at(messages.VerbApply, bus.Handle("apply", l.apply)),
		}},
		{Name: "candor-auctioneer-agents", Version: "1.0.0", Concurrency: 512, Endpoints: []bus.Endpoint{
			at(messages.VerbRegister, bus.Handle("register", l.register)),
			at(messages.VerbExchange, bus.Handle("exchange", l.exchange)),
			at(messages.VerbVector, bus.Handle("vector", l.vector)),
		}},
		{Name: "candor-auctioneer", Version: "1.0.0", Discoverable: true,
			Description: "jobs, nodes and markets of site " + l.Site, Endpoints: []bus.Endpoint{
				at(messages.VerbJobs, bus.Handle("jobs", l.listJobs)),
				at(messages.VerbJob, bus.Handle("job", l.job)),
				at(messages.VerbTasks, bus.Handle("tasks", l.tasks)),
				at(messages.VerbWhy, bus.Handle("why", l.why)),
				at(messages.VerbNodes, bus.Handle("nodes", l.nodes)),
				at(messages.VerbMarkets, bus.Handle("markets", l.listMarkets)),
				at(messages.VerbReservations, bus.Handle("reservations", l.reservations)),
				at(messages.VerbStatus, bus.Handle("status", l.status)),
			}},
	}
}

// Decisions are coalesced: the first change is acted on at once, the next ones
// no sooner than a few times what the last decision took.
const (
	coalesce      = time.Millisecond
	coalesceTimes = 3
)

// decide follows the book: it carries what was applied into the markets, lets
// the mechanisms decide, and publishes.
func (l *leader) decide(ctx context.Context) {
	for {
		began := time.Now()
		next := l.step(ctx, l.Clock())
		pause := max(coalesce, coalesceTimes*time.Since(began))
		if !sleep(ctx, pause) {
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.replica.kick:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// step returns how long the next one can wait if nothing changes.
func (l *leader) step(ctx context.Context, now messages.Time) time.Duration {
	news := l.takeNews()
	if news.effects {
		select {
		case l.effects <- struct{}{}:
		default:
		}
	}
	l.mu.Lock()
	settlements := l.carry(now, news)
	var publish []published
	var decisions []decision
	next := l.soonest(now)
	for _, t := range l.markets {
		if t.Stale(now) && !t.deciding {
			began := time.Now()
			if d := l.allocate(now, t); d != nil {
				decisions = append(decisions, decision{t, d})
			}
			l.metrics.allocation.Observe(time.Since(began).Seconds())
			t.pace.reallocated = true
		}
		if v, ok := l.nextVector(t, now); ok {
			publish = append(publish, v)
		}
		next = min(next, t.pace.wait(now))
		if w := t.Wake(); w != 0 && !t.deciding {
			next = min(next, max(0, w.Sub(now).Std()))
		}
	}
	l.mu.Unlock()
	for _, p := range publish {
		l.publish(p)
	}
	for _, d := range news.directives {
		l.publish(published{messages.DirectiveSubject(l.Site, d.node), messages.Directive{Term: l.term, Stop: d.stop, Held: d.held, Version: d.version, Markets: d.markets}})
	}
	if len(settlements) > 0 {
		go l.proposeSettlements(ctx, settlements)
	}
	for _, d := range decisions {
		go l.commit(ctx, d)
	}
	l.disband(ctx, now)
	return next
}

// market returns the market of a name, nil if there is none. The set of
// markets is fixed for the term.
func (l *leader) market(name messages.Name) *trading {
	for _, t := range l.markets {
		if t.Config.Name == name {
			return t
		}
	}
	return nil
}
