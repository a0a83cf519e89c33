package auctioneer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// Auctioneer is one replica of the actor.
type Auctioneer struct {
	*site
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start joins the group. The replica serves while it leads, until Close.
func Start(ctx context.Context, c Config) (*Auctioneer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	a := &Auctioneer{site: &site{Config: c, replica: newReplica(c.Archive, c.Log), metrics: newMetrics(c.Metrics), began: time.Now(), questions: questions{one: make(chan struct{}, 1)}}}
	a.replica.time = siteclock.NewSteady(c.Clock, c.ClockKnown, c.Mono)
	a.Clock = a.replica.time.Now
	a.gate = &gate{rules: c.Limits, metrics: a.metrics}
	a.loadPast()
	if c.Metrics != nil {
		c.Metrics.MustRegister(service{a.site})
	}
	box, err := c.Open(a.replica)
	if err != nil {
		return nil, fmt.Errorf("auctioneer %s: %w", c.Replica, err)
	}
	a.box = box
	ctx, a.cancel = context.WithCancel(ctx)
	a.done.Go(func() { a.follow(ctx) })
	a.done.Go(func() { a.complete(ctx) })
	a.done.Go(func() { a.examine(ctx) })
	a.done.Go(func() { a.copyPast(ctx) })
	a.done.Go(func() { a.keepPast(ctx) })
	a.done.Go(func() { a.watchBank(ctx) })
	return a, nil
}

// Close stops serving and leaves the group.
func (a *Auctioneer) Close() error {
	a.cancel()
	a.done.Wait()
	err := a.box.Close()
	if a.Archive != nil {
		err = errors.Join(err, a.Archive.Close())
	}
	return err
}

// Status describes the group as this replica sees it.
func (a *Auctioneer) Status() mailbox.Status { return a.box.Status() }

// Hash returns the hash of the replica's state.
func (a *Auctioneer) Hash() (hash [sha256.Size]byte) {
	a.replica.read(func(b *book.Book) { hash = b.Hash() })
	return hash
}

// readyEvery is how often an elected replica checks whether its host knows the time.
const readyEvery = 100 * time.Millisecond

// follow makes the replica lead in each term for which it is elected.
func (a *Auctioneer) follow(ctx context.Context) {
	stop := func() {}
	defer func() { stop() }()
	var elected mailbox.Leadership // the term that has not begun yet
	for {
		var again <-chan time.Time
		switch {
		case !elected.Leads:
		case !a.replica.time.Ready():
			again = time.After(readyEvery)
		default:
			a.Log.Info("leading", zap.String("replica", a.Replica), zap.Uint64("term", elected.Term))
			stop = lead(ctx, a.site, elected.Term)
			elected = mailbox.Leadership{}
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case elected = <-a.box.Leadership():
			a.replica.leads.Store(elected.Leads)
			stop()
			stop = func() {}
		}
	}
}
