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
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// Auctioneer is one replica of the actor.
type Auctioneer struct {
	Config
	replica   *replica
	box       mailbox.Mailbox
	metrics   *metrics
	gate      *gate
	began     time.Time
	histories histories
	pastFile  pastFile
	questions questions
	endings   endings

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start joins the group and serves whenever this replica leads, until Close.
func Start(ctx context.Context, c Config) (*Auctioneer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	a := &Auctioneer{Config: c, replica: newReplica(c.Archive, c.Log), metrics: newMetrics(c.Metrics), began: time.Now(), questions: questions{one: make(chan struct{}, 1)}}
	a.replica.time = siteclock.NewSteady(c.Clock, c.ClockKnown, c.Mono)
	a.Clock = a.replica.time.Now
	a.gate = &gate{rules: c.Limits, metrics: a.metrics}
	a.loadPast()
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

// Hash is the hash of the replica's state, for comparing replicas.
func (a *Auctioneer) Hash() (hash [sha256.Size]byte) {
	a.replica.read(func(b *book.Book) { hash = b.Hash() })
	return hash
}

// follow leads in each term in which this replica is elected.
func (a *Auctioneer) follow(ctx context.Context) {
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-a.box.Leadership():
			a.replica.leads.Store(l.Leads)
			stop()
			if stop = func() {}; l.Leads {
				a.Log.Info("leading", zap.String("replica", a.Replica), zap.Uint64("term", l.Term))
				stop = a.lead(ctx, l.Term)
			}
		}
	}
}

// propose commits a command and returns its result.
func (a *Auctioneer) propose(ctx context.Context, c *book.Command) (any, error) {
	c.Stamp(a.replica.time.Stamp())
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	return outcome(a.box.Propose(ctx, data))
}

// outcome is the result of a command, or why there is none.
func outcome(result any, err error) (any, error) {
	if err != nil {
		return nil, mailbox.Wire(messages.Auctioneer, err)
	}
	if err, ok := result.(error); ok {
		return nil, err
	}
	return result, nil
}

// proposeInOrder commits commands that are applied in their order, and returns the result of each.
func proposeInOrder[Result any](ctx context.Context, a *Auctioneer, commands []*book.Command) ([]Result, []error) {
	out, errs := make([]Result, len(commands)), make([]error, len(commands))
	var data [][]byte
	var places []int
	now, leap, carried := a.replica.time.Stamp()
	for k, c := range commands {
		c.Stamp(now, leap, carried)
		d, err := c.Encode()
		if errs[k] = err; err == nil {
			data, places = append(data, d), append(places, k)
		}
	}
	results, failed := a.box.ProposeInOrder(ctx, data)
	for i, k := range places {
		var came any
		if came, errs[k] = outcome(results[i], failed[i]); errs[k] == nil {
			out[k], _ = came.(Result) // some commands have none
		}
	}
	return out, errs
}

// propose commits a command and returns its result.
func propose[Result any](ctx context.Context, a *Auctioneer, c *book.Command) (result Result, err error) {
	came, err := a.propose(ctx, c)
	if err != nil {
		return result, err
	}
	return came.(Result), nil
}

// decided waits until all is decided that was proposed here before: also what nobody waits for
// any more.
func (a *Auctioneer) decided(ctx context.Context) error {
	if err := a.box.Decided(ctx); err != nil {
		return mailbox.Wire(messages.Auctioneer, err)
	}
	return nil
}

// verify confirms that the group agreed on the present state of the book.
func (a *Auctioneer) verify(ctx context.Context) error {
	if err := a.box.Verify(ctx); err != nil {
		return mailbox.Wire(messages.Auctioneer, err)
	}
	return nil
}
