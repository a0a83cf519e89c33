package auctioneer

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// term is the time in which this replica leads. It answers requests all the time. When
// markets are applied, another leader replaces the first within the term. A leader
// finishes the requests that it has begun.
type term struct {
	*Auctioneer
	number    uint64
	federated *federated
	leader    *leader // who leads
	current   atomic.Pointer[inCharge]

	life    context.Context // the term
	cancel  context.CancelFunc
	end     func() // of who leads
	serving sync.WaitGroup
}

// inCharge is how requests are answered.
type inCharge struct {
	services []bus.Service
	handlers map[string]bus.Handler // by subject
	relieved chan struct{}          // closed when others are
}

// open begins to lead in a term.
func (a *Auctioneer) open(ctx context.Context, number uint64) *term {
	t := &term{Auctioneer: a, number: number}
	t.life, t.cancel = context.WithCancel(ctx)
	t.federated = newFederated(a, t.life.Done())
	t.lead(desk.New(desk.Config{Site: a.Site, Term: number, Markets: a.Markets, Lease: a.Lease, HoldFor: a.HoldFor, RemoteFor: a.RemoteFor, Idle: idle, Estimator: true,
		Seed: uint64(a.Clock())}, replicated{a.replica, t.federated}, a.instant()))
	t.serving.Go(t.keepServing)
	a.metrics.leading.Set(1)
	return t
}

// succeed lets a new leader, with the present markets of the book, take over.
func (t *term) succeed() {
	t.end()
	t.leader.with(func(d *desk.Desk) { t.lead(d.Successor(t.instant())) })
}

// behind reports whether other markets were committed than the leader has, as by a request
// that was given up before it was answered.
func (t *term) behind() (is bool) {
	t.replica.read(func(b *book.Book) { is = b.MarketsVersion() != t.leader.Version })
	return is
}

func (t *term) close() {
	t.metrics.leading.Set(0)
	t.cancel()
	t.serving.Wait()
	t.end()
}

// lead has a desk lead until end, which waits for everything that was started.
func (t *term) lead(d *desk.Desk, faults []error) {
	for _, err := range faults {
		t.Log.Error("a market cannot run", zap.Error(err))
	}
	l := &leader{Auctioneer: t.Auctioneer, Markets: d.Markets, term: t.number, over: t.life.Done(), desk: d, stepped: make(chan struct{}), federated: t.federated}
	l.submissions, l.queries = newSubmissions(l), &queries{l}
	c := t.federated
	l.offers = &offers{c.peers, t.Clock, l.submissions}
	l.remote = &remote{t.Auctioneer, c.peers, c, l.submissions, l.offers}
	l.visiting = &visiting{t.Auctioneer, c.peers, c, l.submissions, l.queries, l.offers}
	t.leader = l
	t.replica.watch(true)
	t.hand(l.services())
	ctx, cancel := context.WithCancel(t.life)
	var running sync.WaitGroup
	for _, f := range []func(context.Context){l.run, l.watchHealth, l.watchPast} {
		running.Go(func() { f(ctx) })
	}
	t.end = func() {
		cancel()
		running.Wait()
		t.replica.watch(false)
	}
}

// hand has requests go to these services from now on.
func (t *term) hand(services []bus.Service) {
	next := &inCharge{services: services, handlers: map[string]bus.Handler{}, relieved: make(chan struct{})}
	for _, s := range services {
		for _, e := range s.Endpoints {
			next.handlers[e.Subject] = e.Handle
		}
	}
	if last := t.current.Swap(next); last != nil {
		close(last.relieved)
	}
}

// services are the services of the term, which pass each request to the present leader.
func (t *term) services() []bus.Service {
	services := t.current.Load().services
	for _, s := range services {
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			e.Handle = func(ctx context.Context, r bus.Request) ([]byte, error) { return t.answer(ctx, e.Subject, r) }
		}
	}
	return services
}

// reliefWithin is how long whoever has just applied markets takes at most to be
// relieved.
const reliefWithin = time.Second

// answer has a request answered, again if it was refused because markets were
// applied meanwhile. A request is refused for good only by who still leads: a leader that
// another one has followed, and does not know it, lacks the latest jobs.
func (t *term) answer(ctx context.Context, subject string, r bus.Request) ([]byte, error) {
	for {
		now := t.current.Load()
		reply, err := now.handlers[subject](ctx, r)
		if err == nil || messages.KindOf(err) != messages.NotLeader {
			if err != nil && !messages.Waits(err) {
				err = cmp.Or(t.verify(ctx), t.inTerm(t.number), err)
			}
			return reply, err
		}
		select {
		case <-now.relieved:
		case <-t.life.Done():
			return reply, err
		case <-ctx.Done():
			return reply, err
		case <-time.After(reliefWithin):
			return reply, err
		}
	}
}

// keepServing serves until the term ends. It tries again while the bus is cut: a leader
// that nobody can reach would block the site.
func (t *term) keepServing() {
	const pause = 100 * time.Millisecond
	for {
		stop, err := func() {}, t.renumber()
		if err == nil {
			stop, err = t.serve()
		}
		if err == nil {
			<-t.life.Done()
			stop()
			return
		}
		t.Log.Warn("cannot serve yet", zap.Error(err))
		stop()
		if !sleep(t.life, pause) {
			return
		}
	}
}

// Of the numbers that jobs had after a backup nothing is known. So many are left out:
// a least number, and as many for each second since the backup as no site submits.
const (
	leastLeftOut     = 1_000_000
	leftOutPerSecond = 1000
)

// renumber sees to it, before the first request after a restoration, that no job gets a number
// that another had: peers know jobs by their numbers.
func (t *term) renumber() error {
	var backup messages.Time
	var last messages.JobID
	t.replica.read(func(b *book.Book) { backup, last = b.Backup(), b.LastJob() })
	if t.Restored <= backup {
		return nil
	}
	last += leastLeftOut + messages.JobID(max(0, t.Clock().Sub(t.Restored))/messages.Duration(time.Second))*leftOutPerSecond
	t.Log.Warn("a backup was restored: jobs get higher numbers from now on", zap.Time("backup", t.Restored.Std()), zap.Uint64("after", uint64(last)))
	_, err := t.propose(t.life, &book.Command{Restored: &book.Restored{Backup: t.Restored, Last: last}})
	return err
}

// serve opens the leader's services. After an error, stop closes the services that are
// open.
func (t *term) serve() (stop func(), err error) {
	var open []bus.Subscription
	stop = func() {
		for _, s := range open {
			_ = s.Stop()
		}
	}
	for _, s := range t.services() {
		sub, err := t.Bus.Serve(s)
		if err != nil {
			return stop, err
		}
		open = append(open, sub)
	}
	return stop, nil
}
