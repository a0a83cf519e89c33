package auctioneer

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
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
		l.publish(published{messages.DirectiveSubject(l.Site, d.node), messages.Directive{Term: l.term, Stop: d.stop, Held: d.held, Version: d.version}})
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

// news is what the book says has changed, copied out under its lock.
type news struct {
	jobs       []jobNews
	nodes      []nodeNews
	directives []directive
	effects    bool
}

// jobNews is how far a job of a market has come, or that it has left it.
type jobNews struct {
	id       messages.JobID
	market   messages.Name
	job      *book.Job // its immutable parts only
	left     bool
	blocked  bool // it waits for other jobs
	settle   *ending
	progress market.Progress
	gangs    []gathering
}

// ending is what a settlement rests on.
type ending struct {
	outcome  messages.State
	ended    messages.Time
	total    int
	done     int
	cost     messages.Credits
	slotTime messages.Duration
	left     messages.Credits // of the hold
	ordered  bool
	fixed    *book.Fixed
}

type nodeNews struct {
	node  uint32
	name  messages.Name
	slots []messages.ClassSlots
	idle  []int // as slots
}

type directive struct {
	node    messages.Name
	stop    []messages.Attempt
	held    []messages.Attempt
	version uint64
}

// takeNews copies what changed out of the book.
func (l *leader) takeNews() news {
	l.replica.mu.Lock()
	defer l.replica.mu.Unlock()
	b := l.replica.book
	changes := b.TakeChanges()
	n := news{effects: changes.Effects}
	for id := range changes.Jobs {
		if j := b.Job(id); j != nil {
			n.jobs = append(n.jobs, l.jobNews(b, j))
		}
	}
	for i := range changes.Nodes {
		node := b.Nodes()[i]
		n.nodes = append(n.nodes, newsOf(i, node))
		if len(node.Stop) > 0 || l.told[i] != node.Version {
			l.told[i] = node.Version
			n.directives = append(n.directives, directive{node.Name, slices.Clone(node.Stop), node.Halted(), node.Version})
		}
	}
	return n
}

func (l *leader) jobNews(b *book.Book, j *book.Job) jobNews {
	n := jobNews{id: j.ID, market: j.Spec.Market, job: j, left: !j.Active(), blocked: j.Blocked > 0}
	if !j.Active() {
		if j.State == messages.Settling && !j.Settled {
			n.settle = l.endingOf(b, j)
		}
		return n
	}
	t := l.market(n.market)
	if t == nil {
		return n
	}
	p := market.Progress{Started: j.Started, Pending: make([]int, len(t.Config.Classes)), Running: make([]int, len(t.Config.Classes))}
	for i := range j.Stages {
		s := &j.Stages[i]
		p.Done += s.Done
		k := t.Class(j.Spec.Stages[i].Class)
		if k < 0 {
			continue
		}
		p.Pending[k] += j.Claimable(i)
		p.Running[k] += s.Running - s.Suspended - s.Leaving
		if s.Suspended > 0 {
			if p.Suspended == nil {
				p.Suspended = make([]int, len(t.Config.Classes))
			}
			p.Suspended[k] += s.Suspended
		}
		if s.Gathered != 0 {
			n.gangs = append(n.gangs, gathering{gang{j.ID, uint32(i)}, s.Gathered})
		}
	}
	if o := j.Order; o != nil {
		p.Ordered, p.OrderedAt = make([]int, len(t.Config.Classes)), o.At
		if k := t.Class(o.Class); k >= 0 {
			p.Ordered[k] = o.Slots
		}
	}
	n.progress = p
	return n
}

func (l *leader) endingOf(b *book.Book, j *book.Job) *ending {
	total, _, done := j.Count()
	e := &ending{outcome: j.Outcome, ended: j.Ended, total: total, done: done, left: j.Held - j.Paid, ordered: j.Order != nil, fixed: j.Fixed}
	e.cost, e.slotTime = b.Used(j, j.Ended)
	return e
}

func newsOf(i uint32, node *book.Node) nodeNews {
	n := nodeNews{node: i, name: node.Name}
	if !node.Up {
		return n
	}
	n.slots = node.Slots
	if node.Drain != 0 { // what it has left is all it is good for
		n.slots = slices.Clone(node.Slots)
		for k := range n.slots {
			n.slots[k].Slots = min(n.slots[k].Slots, node.Used[k])
		}
	}
	for _, s := range n.slots {
		n.idle = append(n.idle, node.Idle(s.Class))
	}
	return n
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
