package auctioneer

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

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
	slots   *market.Slots
	settled map[messages.JobID]bool // a settlement is under way
	dues    market.Dues             // settlements that are not due yet
	gangs   market.Gangs            // that gather
	told    map[uint32]uint64       // by node: the version that was published; guarded by the replica's lock

	leases    *leases
	health    health
	over      <-chan struct{} // closed at the end of the term
	applies   uint64          // how often markets had been applied when it began
	reapplied bool            // the markets are not those of the configuration
	informed  sync.Map        // by node: the exchange that was answered with its markets
	effects   chan struct{}   // there are effects to carry out
	// There are jobs that ended, of which the estimator is to be told.
	observations chan struct{}
	newcomers    chan struct{} // there are jobs whose run times are to be learned
	travel       *travel
}

// trading is a market with what was published of it.
type trading struct {
	*market.Market
	publisher *market.Publisher
	deciding  bool // a decision is being committed
}

// lead leads in a term until the returned function is called, which waits for
// everything it started. Others may lead in the same term before and after.
func (a *Auctioneer) lead(o *office) (end func()) {
	ctx, cancel := context.WithCancel(o.life)
	l := &leader{
		Auctioneer:   a,
		term:         o.term,
		rng:          rand.New(rand.NewPCG(o.term, uint64(a.Clock()))),
		settled:      map[messages.JobID]bool{},
		told:         map[uint32]uint64{},
		leases:       o.leases,
		over:         o.life.Done(),
		effects:      make(chan struct{}, 1),
		observations: make(chan struct{}, 1),
		newcomers:    make(chan struct{}, 1),
		travel:       o.travel,
	}
	l.open()
	a.replica.watch(true)
	o.hand(l.services())

	var running sync.WaitGroup
	for _, f := range []func(context.Context){l.decide, l.carryOut, l.report, l.watchLeases, l.extendHolds, l.keepLearning, l.escort, l.watchVisits} {
		running.Go(func() { f(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
		a.replica.watch(false)
		a.seqs = map[messages.Name]uint64{}
		for _, t := range l.markets {
			a.seqs[t.Config.Name] = t.publisher.Seq()
		}
	}
}

func (l *leader) services() []bus.Service {
	at := func(verb string, h bus.Handler) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: messages.Subject(l.Site, messages.Auctioneer, verb, "*"), Handle: h}
	}
	return append(l.siteServices(at), []bus.Service{
		{Name: "candor-auctioneer-commands", Version: "1.0.0", Concurrency: 256, Endpoints: []bus.Endpoint{
			at(messages.VerbSubmit, bus.Handle("submit", l.submit)),
			at(messages.VerbCancel, bus.Handle("cancel", l.cancel)),
			at(messages.VerbQuote, bus.Handle("quote", l.quote)),
			at(messages.VerbDrain, bus.Handle("drain", l.drain)),
			at(messages.VerbApply, bus.Handle("apply", l.apply)),
			at(messages.VerbAdmit, bus.Handle("admit", l.joinTokens)),
			at(messages.VerbReplica, bus.Handle("replica", l.regroup)),
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
				at(messages.VerbReplicas, bus.Handle("replicas", l.replicas)),
			}},
	}...)
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
		for _, kick := range []chan struct{}{l.effects, l.observations} {
			select {
			case kick <- struct{}{}:
			default:
			}
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
			t.publisher.Reallocated()
		}
		if v, ok := t.publisher.Due(t.Market, now, l.slots.Nodes(), l.rng); ok {
			publish = append(publish, published{messages.VectorSubject(l.Site, t.Config.Name), v})
		}
		if w := t.publisher.Wake(); w != 0 {
			next = min(next, max(0, w.Sub(now).Std()))
		}
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
