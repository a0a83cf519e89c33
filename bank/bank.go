package bank

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing/courier"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

// Bank is one replica of the actor.
type Bank struct {
	config    Config
	machine   *machine
	metrics   *metrics
	box       mailbox.Mailbox
	auditor   auditor
	archive   *archive
	operators map[messages.Name]bool
	services  map[messages.Name]bool
	courier   *courier.Courier // nil without a key to sign with
	pace      pace

	cancel context.CancelFunc
	done   chan struct{}

	// Of the goroutine that runs follow.
	leads   bool
	serving []bus.Subscription
	rest    func() // stops the courier, and waits for it
	fault   string // of the clearing, as it was logged
	kept    uint64 // from when on the books are proven, as the keys directory has it
}

// Start joins the group, and serves whenever this replica leads until ctx
// ends or Close.
func Start(ctx context.Context, c Config) (*Bank, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	b := &Bank{config: c, metrics: newMetrics(), operators: set(c.Operators), services: set(c.Services), auditor: newAuditor(), done: make(chan struct{}), rest: func() {}}
	var err error
	if b.archive, err = openArchive(&b.config); err != nil {
		return nil, fmt.Errorf("bank %s: %w", c.Replica, err)
	}
	root, err := newRoot(&c)
	if err != nil {
		return nil, fmt.Errorf("bank %s: %w", c.Replica, err)
	}
	b.machine = &machine{site: c.Site, metrics: b.metrics, archive: b.archive, root: root, broken: c.OnBroken}
	b.machine.ledger, b.machine.clearing = b.machine.open()
	if err := b.metrics.register(c.Metrics, b.machine); err != nil {
		return nil, fmt.Errorf("bank %s: metrics: %w", c.Replica, err)
	}
	if b.courier, err = b.newCourier(); err != nil {
		return nil, errors.Join(fmt.Errorf("bank %s: %w", c.Replica, err), b.metrics.unregister())
	}
	if b.box, err = c.Open(b.machine); err != nil {
		return nil, errors.Join(fmt.Errorf("bank %s: mailbox: %w", c.Replica, err), b.unregister())
	}
	ctx, b.cancel = context.WithCancel(ctx)
	go b.follow(ctx)
	return b, nil
}

func set(names []messages.Name) map[messages.Name]bool {
	s := make(map[messages.Name]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

// Close stops serving and leaves the group, handing leadership over if this
// replica has it.
func (b *Bank) Close() error {
	b.cancel()
	<-b.done
	return errors.Join(b.box.Close(), b.saveHistory(), b.unregister())
}

// unregister takes all metrics back.
func (b *Bank) unregister() error {
	if b.courier == nil {
		return b.metrics.unregister()
	}
	return errors.Join(b.courier.Close(), b.metrics.unregister())
}

// saveHistory leaves the journal in files as it is, up to its end.
func (b *Bank) saveHistory() error {
	var signed error
	if b.config.Signer != nil {
		signed = b.checkpoint()
	}
	var image *ledger.Image
	b.machine.read(func(l *ledger.Ledger) { image = l.Capture() })
	return errors.Join(signed, b.archive.saveTail(image), b.archive.close())
}

// Status describes the group as this replica sees it.
func (b *Bank) Status() mailbox.Status { return b.box.Status() }

// Hash is the digest of the replica's ledger and clearing: equal for replicas
// that applied the same commands. It costs as much as writing an image.
func (b *Bank) Hash() [sha256.Size]byte {
	b.machine.mu.RLock()
	image, clearing := b.machine.ledger.Capture(), b.machine.clearing.Hash()
	b.machine.mu.RUnlock()
	ledger := image.Hash()
	return sha256.Sum256(append(ledger[:], clearing[:]...))
}

// follow serves while this replica leads.
func (b *Bank) follow(ctx context.Context) {
	defer close(b.done)
	defer b.withdraw()
	tick := time.NewTicker(b.config.ExpiryInterval.Std())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-b.box.Leadership():
			b.config.Log.Info("leadership", zap.String("replica", b.config.Replica), zap.Bool("leads", l.Leads), zap.Uint64("term", l.Term))
			b.leads = l.Leads
			b.attend(ctx)
		case <-tick.C:
			b.attend(ctx)
			b.checkpointIfDue()
			b.watchClearing()
			b.keepProven()
			if b.leads {
				b.redeclare(ctx)
				b.expire(ctx)
			}
		}
	}
}

// attend makes the services what leadership asks for. One that could not be
// started is tried again at the next tick.
func (b *Bank) attend(ctx context.Context) {
	switch {
	case !b.leads:
		b.withdraw()
	case len(b.serving) == 0:
		if err := b.declare(ctx, false); err != nil {
			b.config.Log.Warn("the site's keys are not in the books yet; will try again", zap.Error(err))
			return
		}
		if err := b.serve(); err != nil {
			b.config.Log.Error("cannot serve; will try again", zap.Error(err))
			b.withdraw()
		}
	}
}

// redeclare has the books follow rotations and revocations of the site's keys.
func (b *Bank) redeclare(ctx context.Context) {
	if err := b.declare(ctx, false); err != nil {
		b.config.Log.Warn("the books do not know the site's keys as they are; will try again", zap.Error(err))
	}
}

// serve starts the services.
func (b *Bank) serve() error {
	for _, s := range []bus.Service{b.commands(), b.queries()} {
		served, err := b.config.Bus.Serve(b.paced(s))
		if err != nil {
			return err
		}
		b.serving = append(b.serving, served)
	}
	if err := b.carry(); err != nil {
		return err
	}
	b.metrics.serving.Set(1)
	return nil
}

// withdraw stops the services.
func (b *Bank) withdraw() {
	for _, s := range b.serving {
		if err := s.Stop(); err != nil {
			b.config.Log.Warn("a service did not stop in time", zap.Error(err))
		}
	}
	b.rest()
	b.serving, b.rest = nil, func() {}
	b.metrics.serving.Set(0)
}

// expire proposes the passing of time if a hold is due. What comes of it does
// not matter here: if it is still due, the next tick tries again.
func (b *Bank) expire(ctx context.Context) {
	var next messages.Time
	b.machine.read(func(l *ledger.Ledger) { next = l.NextExpiry() })
	now := b.config.Clock()
	if next == 0 || next > now {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.config.ExpiryInterval.Std())
	defer cancel()
	if _, err := b.propose(ctx, &ledger.Command{Verb: ledger.Expire}); err != nil {
		b.config.Log.Debug("holds that are due wait", zap.Error(err))
	}
}

// propose commits a command at this moment and returns what it came to.
func (b *Bank) propose(ctx context.Context, c *ledger.Command) (ledger.Result, error) {
	if err := guard(c); err != nil {
		return ledger.Result{}, err
	}
	if err := b.prove(ctx, c); err != nil {
		return ledger.Result{}, err
	}
	c.At = b.config.Clock()
	answer, err := b.box.Propose(ctx, c.Encode())
	if err != nil {
		return ledger.Result{}, translate(err)
	}
	result, ok := answer.(ledger.Result)
	if !ok {
		return ledger.Result{}, messages.Errorf(messages.Internal, "the mailbox answered with a %T", answer)
	}
	if result.Error != nil {
		return ledger.Result{}, result.Error
	}
	return result, nil
}

// verify makes sure that what is read from the ledger after it shows all that
// was answered before.
func (b *Bank) verify(ctx context.Context) error {
	err := b.box.Verify(ctx)
	if ctx.Err() != nil {
		return messages.Errorf(messages.Unavailable, "the bank's replicas did not agree in time; ask again")
	}
	if err != nil {
		return translate(err)
	}
	return nil
}

// translate gives the mailbox's errors their kinds.
func translate(err error) error {
	switch {
	case errors.Is(err, mailbox.ErrNotLeader), errors.Is(err, mailbox.ErrClosed):
		return messages.Errorf(messages.NotLeader, "this replica of the bank does not lead; ask again")
	case errors.Is(err, mailbox.ErrNoSpace):
		return messages.Errorf(messages.Exhausted, "the disk of the bank's log is almost full: an operator must free space, then ask again")
	case errors.Is(err, mailbox.ErrUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return messages.Errorf(messages.Unknown, "it is not known whether this was done; ask again with the same identifiers")
	}
	return messages.Errorf(messages.Internal, "the bank's log failed: %v", err)
}
