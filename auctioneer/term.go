package auctioneer

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// lead leads in a term until stop, which waits for everything that was started.
func (a *Auctioneer) lead(ctx context.Context, term uint64) (stop func()) {
	l := &leader{Auctioneer: a, term: term, stepped: make(chan struct{}), reconfigured: make(chan struct{})}
	var cancel context.CancelFunc
	l.life, cancel = context.WithCancel(ctx)
	l.federated = newFederated(a, l.life.Done())
	d, faults := desk.New(desk.Config{Site: a.Site, Term: term, Markets: a.Markets, Lease: a.Lease, HoldFor: a.HoldFor, RemoteFor: a.RemoteFor, Idle: idle, Estimator: true,
		Seed: uint64(a.Clock())}, replicated{a.replica, l.federated}, a.instant())
	l.desk = d
	l.takeIntoForce(d.Markets, faults)
	l.submissions, l.queries = newSubmissions(l), &queries{l}
	c := l.federated
	l.offers = &offers{c.peers, a.Clock, l.submissions}
	l.remote = &remote{a, c.peers, c, l.submissions, l.offers}
	l.visiting = &visiting{a, c.peers, c, l.submissions, l.queries, l.offers}
	a.replica.watch(true)
	a.metrics.leading.Set(1)
	var running, serving sync.WaitGroup
	serving.Go(l.keepServing)
	for _, f := range []func(context.Context){l.run, l.watchHealth, l.watchPast} {
		running.Go(func() { f(l.life) })
	}
	return func() {
		a.metrics.leading.Set(0)
		cancel()
		serving.Wait()
		running.Wait()
		a.replica.watch(false)
	}
}

// takeIntoForce has requests see other markets from now on.
func (l *leader) takeIntoForce(m *desk.Markets, faults []error) {
	for _, err := range faults {
		l.Log.Error("a market cannot run", zap.Error(err))
	}
	l.markets.Store(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.reconfigured)
	l.reconfigured = make(chan struct{})
}

// nextMarkets is closed when other markets are in force than at the call.
func (l *leader) nextMarkets() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reconfigured
}

// inForce are the markets in force. A request reads them once: they may be others soon.
func (l *leader) inForce() *desk.Markets { return l.markets.Load() }

// inForceWithin is how long markets that were just applied take at most to be in force.
const inForceWithin = time.Second

// answered has a request answered again if it was refused because other markets were
// applied meanwhile. A request is refused for good only by who still leads: a leader that
// another one has followed, and does not know it, lacks the latest jobs.
func (l *leader) answered(handle bus.Handler) bus.Handler {
	return func(ctx context.Context, r bus.Request) ([]byte, error) {
		for {
			next := l.nextMarkets()
			reply, err := handle(ctx, r)
			if err == nil || messages.KindOf(err) != messages.NotLeader {
				if err != nil && !messages.Waits(err) {
					err = cmp.Or(l.verify(ctx), err)
				}
				return reply, err
			}
			select {
			case <-next:
			case <-l.life.Done():
				return reply, err
			case <-ctx.Done():
				return reply, err
			case <-time.After(inForceWithin):
				return reply, err
			}
		}
	}
}

// keepServing serves until the term ends. It tries again while the bus is cut: a leader
// that nobody can reach would block the site.
func (l *leader) keepServing() {
	const pause = 100 * time.Millisecond
	for {
		stop, err := func() {}, l.renumber()
		if err == nil {
			stop, err = l.serve()
		}
		if err == nil {
			<-l.life.Done()
			stop()
			return
		}
		l.Log.Warn("cannot serve yet", zap.Error(err))
		stop()
		if !sleep(l.life, pause) {
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
func (l *leader) renumber() error {
	var backup messages.Time
	var last messages.JobID
	l.replica.read(func(b *book.Book) { backup, last = b.Backup(), b.LastJob() })
	if l.Restored <= backup {
		return nil
	}
	last += leastLeftOut + messages.JobID(max(0, l.Clock().Sub(l.Restored))/messages.Duration(time.Second))*leftOutPerSecond
	l.Log.Warn("a backup was restored: jobs get higher numbers from now on", zap.Time("backup", l.Restored.Std()), zap.Uint64("after", uint64(last)))
	_, err := l.propose(l.life, &book.Command{Restored: &book.Restored{Backup: l.Restored, Last: last}})
	return err
}

// serve opens the leader's services. After an error, stop closes the services that are
// open.
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
