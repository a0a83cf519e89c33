package bank

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing/courier"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages/beat"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// Bank is one replica of the bank, the actor that keeps the accounts of a site.
type Bank struct {
	config   Config
	machine  *machine
	archive  *archive
	callers  *callers
	group    *group
	keys     *keys
	commands *commands
	queries  *queries
	courier  *courier.Courier // nil if the bank has no key to sign with
	pace     *pace
	founding *founding
	alarm    *alarm
	metrics  *metrics

	cancel    context.CancelFunc
	done      chan struct{}
	examining sync.WaitGroup
	giving    bus.Subscription // serves files of the journal to other replicas; nil if the journal is in memory

	// Only the goroutine of the method [Bank.follow] uses the fields from here on.
	leads       bool
	serving     []bus.Subscription
	stopCourier func() // stops the courier and waits for it
	fault       string // the latest fault of the clearing that was logged
}

// Start joins the group. The replica serves while it leads, until ctx ends or Close is called.
func Start(ctx context.Context, c Config) (*Bank, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.defaults()
	b := &Bank{config: c, metrics: newMetrics(), done: make(chan struct{}), stopCourier: func() {}}
	if err := b.assemble(ctx); err != nil {
		return nil, fmt.Errorf("bank %s: %w", c.Replica, err)
	}
	b.metrics.watch(b.machine)
	b.metrics.tell(b.machine, c.AccountsTold)
	if err := b.config.Metrics.Register(b.metrics.all); err != nil {
		return nil, fmt.Errorf("bank %s: metrics: %w", c.Replica, err)
	}
	var err error
	if b.courier, err = b.newCourier(); err != nil {
		b.config.Metrics.Unregister(b.metrics.all)
		return nil, fmt.Errorf("bank %s: %w", c.Replica, err)
	}
	if b.archive.store != nil {
		if b.giving, err = b.archive.give(); err != nil {
			b.unregister()
			return nil, fmt.Errorf("bank %s: %w", c.Replica, err)
		}
	}
	if b.group.box, err = c.Open(b.machine); err != nil {
		b.stopGiving()
		b.unregister()
		return nil, fmt.Errorf("bank %s: mailbox: %w", c.Replica, err)
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.examining.Go(func() { b.archive.examine(ctx) })
	if b.archive.store != nil {
		b.examining.Go(func() { b.archive.mend(ctx) })
	}
	go b.follow(ctx)
	return b, nil
}

// assemble builds the parts of the bank. Each part knows only the parts before it.
func (b *Bank) assemble(ctx context.Context) (err error) {
	c := &b.config
	if b.archive, err = openArchive(ctx, c, b.metrics); err != nil {
		return err
	}
	root, err := newRoot(c)
	if err != nil {
		return err
	}
	steady := siteclock.NewSteady(c.Clock, c.ClockKnown, c.Mono)
	c.Clock = steady.Now
	b.machine = newMachine(c, b.metrics, b.archive, root, steady)
	b.archive.machine = b.machine
	b.group = &group{machine: b.machine, late: lateness{config: c}}
	b.alarm = &alarm{config: c, group: b.group, archive: b.archive, metrics: b.metrics, answers: make(chan compared, 1)}
	b.group.alarm = b.alarm
	b.keys = &keys{config: c, group: b.group, machine: b.machine}
	b.callers = &callers{operators: c.Operators, services: c.Services}
	b.founding = &founding{accounts: c.Opening, machine: b.machine, callers: b.callers}
	b.commands = &commands{config: c, founding: b.founding, metrics: b.metrics, callers: b.callers, group: b.group, keys: b.keys}
	b.queries = &queries{config: c, metrics: b.metrics, machine: b.machine, archive: b.archive, callers: b.callers, group: b.group, keys: b.keys, auditor: auditor{turn: make(chan struct{}, 1)}, alarm: b.alarm}
	b.pace = &pace{config: c, metrics: b.metrics, callers: b.callers}
	return nil
}

// Close stops serving and leaves the group. If this replica leads, it first hands leadership over.
func (b *Bank) Close() error {
	b.cancel()
	b.archive.end()
	<-b.done
	b.stopGiving()
	b.examining.Wait()
	defer b.unregister()
	return errors.Join(b.group.box.Close(), b.archive.save())
}

func (b *Bank) stopGiving() {
	if b.giving == nil {
		return
	}
	if err := b.giving.Stop(); err != nil {
		b.config.Log.Warn("a service did not stop in time", zap.Error(err))
	}
}

func (b *Bank) unregister() {
	if b.courier != nil {
		b.courier.Close()
	}
	b.config.Metrics.Unregister(b.metrics.all)
}

// Status describes the group as this replica sees it.
func (b *Bank) Status() mailbox.Status { return b.group.box.Status() }

// Hash returns the digest of the replica's ledger and clearing, which is equal on replicas that applied the same
// commands. To compute the digest costs as much as to write an image.
func (b *Bank) Hash() [sha256.Size]byte {
	return b.machine.hash()
}

func (b *Bank) follow(ctx context.Context) {
	defer close(b.done)
	defer b.withdraw()
	defer b.alarm.finish()
	every := b.config.ExpiryInterval.Std()
	tick := time.NewTicker(beat.Until(every))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-b.group.box.Leadership():
			b.config.Log.Info("leadership", zap.String("replica", b.config.Replica), zap.Bool("leads", l.Leads), zap.Uint64("term", l.Term))
			b.leads = l.Leads
			b.attend(ctx)
		case c := <-b.alarm.answers:
			b.alarm.answered(&c)
		case <-tick.C:
			tick.Reset(beat.Until(every))
			b.attend(ctx)
			b.archive.signIfDue()
			b.alarm.compare(ctx, b.leads)
			b.watchClearing()
			if b.leads {
				b.keys.redeclare(ctx)
				b.expire(ctx)
			}
		}
	}
}

// attend starts the services if this replica leads, and stops them otherwise. If the start fails, the next tick tries
// again.
func (b *Bank) attend(ctx context.Context) {
	switch {
	case !b.leads:
		b.withdraw()
		b.alarm.lower()
	case !b.machine.time.Ready(): // the next tick looks again
	case len(b.serving) == 0:
		b.alarm.compare(ctx, true) // compare before the first request is served
		if err := b.keys.declare(ctx); err != nil {
			b.config.Log.Warn("the site's keys are not in the books yet; will try again", zap.Error(err))
			return
		}
		if b.courier != nil {
			if err := b.courier.Reincarnate(ctx); err != nil {
				b.config.Log.Warn("the books do not know yet that a backup was restored; will try again", zap.Error(err))
				return
			}
		}
		if err := b.serve(); err != nil {
			b.config.Log.Error("the bank cannot serve requests; will try again", zap.Error(err))
			b.withdraw()
		}
	}
}

func (b *Bank) serve() error {
	services := []bus.Service{b.commands.service(), b.queries.service()}
	if b.courier != nil {
		services = append(services, b.courier.Services()...)
	}
	for _, s := range services {
		served, err := b.config.Bus.Serve(b.founding.bound(b.pace.bound(s)))
		if err != nil {
			return err
		}
		b.serving = append(b.serving, served)
	}
	if b.courier != nil {
		b.runCourier()
	}
	b.metrics.serving.Set(1)
	return nil
}

func (b *Bank) withdraw() {
	for _, s := range b.serving {
		if err := s.Stop(); err != nil {
			b.config.Log.Warn("a service did not stop in time", zap.Error(err))
		}
	}
	b.stopCourier()
	b.serving, b.stopCourier = nil, func() {}
	b.metrics.serving.Set(0)
}

// expire proposes a command that only sets the time, if a hold is due. If the command fails, the next tick tries again.
func (b *Bank) expire(ctx context.Context) {
	next := read(b.machine, (*ledger.Ledger).NextExpiry)
	if now, late := b.group.now(); late || next == 0 || next > now {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.config.ExpiryInterval.Std())
	defer cancel()
	if _, err := b.group.propose(ctx, &ledger.Command{Verb: ledger.Expire}); err != nil {
		b.config.Log.Debug("cannot expire the holds that are due", zap.Error(err))
	}
}
