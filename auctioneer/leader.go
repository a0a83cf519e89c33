package auctioneer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
	"github.com/candor-grid/candor/messages/bus"
)

// leader runs a desk for one term: it carries out the desk's actions, and answers requests.
type leader struct {
	*term
	inputs   inbox
	requests []bus.Service // the services with which the leader answers requests
}

// replicated gives the desk access to the book.
type replicated struct {
	*replica
	federated *federated
}

func (r replicated) Read(f func(*book.Book)) { r.read(f) }

func (r replicated) Changes(f func(*book.Book, book.Changes)) {
	r.mu.Lock()
	changes := r.book.TakeChanges()
	r.mu.Unlock()
	r.read(func(b *book.Book) {
		r.federated.changed(b, changes.Jobs)
		r.federated.site.endings.changed(b, changes.Jobs)
		f(b, changes)
	})
}

// The leader handles a change at once if it is idle. After each step, it pauses for the duration of the step multiplied
// by coalesceTimes, but at most for mostRest. (The first step takes seconds if a million jobs wait.) Changes that come
// during the step or the pause are handled together in the next step.
//
// If a market decided or published in the step, the pause is at least `coalesce`. After other steps, the computed pause
// may be shorter than `coalesce`. The leader does not make such a short pause, but adds it to the pause after the next
// step. When the sum of these pauses reaches `coalesce`, the leader makes the pause.
const (
	coalesce      = time.Millisecond
	coalesceTimes = 3
	mostRest      = time.Duration(desk.DecidingWithin)
	// idle is the longest time that the leader waits between two steps of its loop.
	idle = messages.Duration(time.Second)
)

// run is the leader's loop. It makes a step of the desk when the book has changed, an answer has come, or a step is
// due.
func (l *leader) run(ctx context.Context) {
	var rest time.Duration
	for {
		began := time.Now()
		next, traded := l.step(ctx)
		rest += min(coalesceTimes*time.Since(began), mostRest)
		if traded {
			rest = max(rest, coalesce)
		}
		if rest >= coalesce {
			if !sleep(ctx, rest) {
				return
			}
			rest = 0
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

// step makes one step of the desk. It returns how long the next step can wait, and whether a market made a decision or
// published a vector.
func (l *leader) step(ctx context.Context) (next time.Duration, traded bool) {
	in := l.inputs.drain()
	began := time.Now()
	l.mu.Lock()
	out := l.desk.Step(l.instant(), in...)
	decided := slices.ContainsFunc(out.Events, func(e any) bool { _, is := e.(desk.Decided); return is })
	if decided || !l.desk.Deciding() { // a wake-up during a decision would be useless: the claims would have to wait again
		close(l.stepped)
		l.stepped = make(chan struct{})
	}
	l.mu.Unlock()
	l.report(out.Events, time.Since(began))
	for _, v := range out.Publish {
		l.publish(messages.VectorSubject(l.Site, v.Market), v)
	}
	for _, d := range out.Direct {
		l.publish(messages.DirectiveSubject(l.Site, d.Node), d.Directive)
	}
	var settlements []desk.Proposal // the settlements are proposed together, because thousands of jobs may end at the same time
	for _, p := range out.Propose {
		if p.Command.Settle != nil {
			settlements = append(settlements, p)
			continue
		}
		l.do(ctx, p.ID, func() (any, error) { return l.propose(patiently(ctx, p), p.Command) })
	}
	if len(settlements) > 0 {
		go l.settle(patiently(ctx, settlements[0]), settlements)
	}
	for _, r := range out.Ask {
		l.do(ctx, r.ID, func() (any, error) { return l.ask(ctx, &r) })
	}
	return out.Next.Std(), decided || len(out.Publish) > 0
}

// do runs a slow action in the background and reports the outcome to the desk.
func (l *leader) do(ctx context.Context, id uint64, f func() (any, error)) {
	go func() {
		result, err := f()
		if ctx.Err() != nil {
			return
		}
		l.inputs.add(desk.Done{ID: id, Result: result, Err: err})
		l.replica.wake()
	}()
}

func (l *leader) settle(ctx context.Context, all []desk.Proposal) {
	commands, done := make([]*book.Command, len(all)), make([]desk.Input, len(all))
	for i := range all {
		commands[i] = all[i].Command
	}
	results, errs := proposeInOrder[any](ctx, l.site, commands)
	if ctx.Err() != nil {
		return
	}
	for i := range all {
		done[i] = desk.Done{ID: all[i].ID, Result: results[i], Err: errs[i]}
	}
	l.inputs.add(done...)
	l.replica.wake()
}

// keepServing serves until the term ends. If the connection to the bus is lost, it opens the services again: otherwise
// nobody could reach the leader, and the site would be blocked.
func (l *leader) keepServing() {
	const pause = 100 * time.Millisecond
	for {
		stop, err := func() {}, l.renumber()
		if err == nil {
			err = cmp.Or(l.setLicenses(), l.setBounds())
		}
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

// serve opens the leader's services. The function `stop` closes all services that are open, also after an error.
func (l *leader) serve() (stop func(), err error) {
	var open []bus.Subscription
	stop = func() {
		for _, s := range open {
			_ = s.Stop()
		}
	}
	for _, s := range l.requests {
		sub, err := l.Bus.Serve(s)
		if err != nil {
			return stop, err
		}
		open = append(open, sub)
	}
	return stop, nil
}

// watchHealth updates the metrics about nodes in quarantine and about contracts each second.
func (l *site) watchHealth(ctx context.Context) {
	defer l.metrics.quarantined.Set(0) // after this term, the next leader sets this metric
	defer l.metrics.unserved.Set(0)
	defer l.metrics.setContracts(0, 0)
	for sleep(ctx, beat.Until(time.Second)) {
		l.replica.read(l.metrics.countQuarantined)
		l.replica.read(l.metrics.countContracts)
	}
}

// At regular intervals, watchPast adds samples of the markets and of the nodes to their histories.
func (l *term) watchPast(ctx context.Context) {
	for sleep(ctx, beat.Until(sampleEvery)) {
		l.histories.sample(l.Clock(), l.with, l.replica.read)
	}
}

// lead leads for a term until stop is called. The function stop waits until everything has ended.
func lead(ctx context.Context, a *site, number uint64) (stop func()) {
	t := &term{site: a, number: number, stepped: make(chan struct{}), reconfigured: make(chan struct{})}
	var cancel context.CancelFunc
	t.life, cancel = context.WithCancel(ctx)
	t.federated = newFederated(a, t.life.Done())
	d, faults := desk.New(desk.Config{Site: a.Site, Term: number, Markets: a.Markets, Lease: a.Lease, HoldFor: a.HoldFor, RemoteFor: a.RemoteFor, Idle: idle, Estimator: true,
		Seed: uint64(a.Clock()), Level: int(a.replica.level.Load())}, replicated{a.replica, t.federated}, a.instant())
	t.desk = d
	t.takeIntoForce(d.Markets, faults)
	l := &leader{term: t}
	l.requests = services(t, &l.inputs)
	a.replica.watch(true)
	a.metrics.leading.Set(1)
	with := t.with
	a.leadingDesk.Store(&with)
	var running, serving sync.WaitGroup
	serving.Go(l.keepServing)
	for _, f := range []func(context.Context){l.run, a.watchHealth, t.watchPast} {
		running.Go(func() { f(t.life) })
	}
	return func() {
		a.metrics.leading.Set(0)
		a.leadingDesk.Store(nil)
		cancel()
		serving.Wait()
		running.Wait()
		a.replica.watch(false)
	}
}
