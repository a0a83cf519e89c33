package auctioneer

import (
	"context"
	"sync"

	"github.com/candor-grid/candor/auctioneer/desk"
)

// lead leads in a term until stop, which waits for everything that was started.
func lead(ctx context.Context, a *site, number uint64) (stop func()) {
	t := &term{site: a, number: number, stepped: make(chan struct{}), reconfigured: make(chan struct{})}
	var cancel context.CancelFunc
	t.life, cancel = context.WithCancel(ctx)
	t.federated = newFederated(a, t.life.Done())
	d, faults := desk.New(desk.Config{Site: a.Site, Term: number, Markets: a.Markets, Lease: a.Lease, HoldFor: a.HoldFor, RemoteFor: a.RemoteFor, Idle: idle, Estimator: true,
		Seed: uint64(a.Clock())}, replicated{a.replica, t.federated}, a.instant())
	t.desk = d
	t.takeIntoForce(d.Markets, faults)
	l := &leader{term: t}
	l.requests = services(t, &l.inputs)
	a.replica.watch(true)
	a.metrics.leading.Set(1)
	var running, serving sync.WaitGroup
	serving.Go(l.keepServing)
	for _, f := range []func(context.Context){l.run, a.watchHealth, t.watchPast} {
		running.Go(func() { f(t.life) })
	}
	return func() {
		a.metrics.leading.Set(0)
		cancel()
		serving.Wait()
		running.Wait()
		a.replica.watch(false)
	}
}
