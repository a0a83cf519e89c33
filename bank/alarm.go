package bank

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// alarm compares the latest checkpoint of each replica with the leader's books. If a checkpoint contradicts the books,
// records were lost or altered. Then no credits move until an operator has decided.
type alarm struct {
	config  *Config
	group   *group
	archive *archive
	metrics *metrics

	raised atomic.Pointer[messages.Error] // set by this replica while it leads; nil if no fault was found

	// Only the goroutine that runs the method follow uses these fields.
	compared compared      // the latest comparison with a leader's books
	asking   bool          // the leader was asked and has not answered yet
	answers  chan compared // the leader's answer; at most one
}

// compared is a checkpoint of this replica, and the result of comparing it with a leader's books.
type compared struct {
	checkpoint money.Checkpoint
	term       uint64
	err        error
}

const compareWithin = 5 * time.Second

// compare sends the latest checkpoint of this replica to the leader, which compares it with its books. It sends one
// again only if there is a newer checkpoint or a new leader. It does not wait for the answer, because this replica may
// be elected meanwhile.
func (a *alarm) compare(ctx context.Context, leads bool) {
	last, has := a.archive.checkpoints.Last()
	c := compared{checkpoint: last, term: a.group.box.Status().Term}
	if !has || last.Records == a.compared.checkpoint.Records && c.term == a.compared.term {
		return
	}
	if leads {
		ctx, cancel := context.WithTimeout(ctx, compareWithin)
		defer cancel()
		c.err = a.check(ctx, a.config.Replica, &c.checkpoint)
		a.note(&c)
		return
	}
	if a.asking {
		return
	}
	a.asking = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, compareWithin)
		defer cancel()
		_, c.err = bus.Call[money.CheckpointsReply](ctx, a.config.Bus,
			messages.Subject(a.config.Site, messages.Bank, money.VerbCheckpoints, messages.ServiceIdentity(messages.Bank)),
			money.CheckpointsRequest{Seen: &c.checkpoint, Replica: a.config.Replica})
		a.answers <- c
	}()
}

func (a *alarm) answered(c *compared) {
	a.asking = false
	a.note(c)
}

// note stores the result of a comparison with a checkpoint, so that the comparison is not repeated. A comparison that
// could not be made is repeated.
func (a *alarm) note(c *compared) {
	switch kind := messages.KindOf(c.err); {
	case c.err == nil:
		a.compared = *c
	case kind == messages.Conflict || kind == messages.Invalid:
		a.compared = *c
		a.config.Log.Error("a checkpoint on this host differs from the books", zap.Uint64("records", c.checkpoint.Records), zap.Error(c.err))
	}
}

// finish waits until the open request to the leader has returned. The context of this request has already ended, so it
// returns soon.
func (a *alarm) finish() {
	if a.asking {
		<-a.answers
	}
}

// check compares a replica's checkpoint with the books of this leader. If the checkpoint and the books contradict each
// other, check returns a Conflict, and the bank moves no more credits.
func (a *alarm) check(ctx context.Context, replica string, c *money.Checkpoint) error {
	if err := a.signedHere(c); err != nil {
		return messages.Errorf(messages.Invalid, "replica %s has a checkpoint of %d records that is ignored: %v", replica, c.Records, err)
	}
	if err := a.group.verify(ctx); err != nil {
		return err
	}
	h := read(a.group.machine, (*ledger.Ledger).History)
	if c.Records > h.Count() {
		return a.raise("the site signed a checkpoint of %d records, and replica %s has this checkpoint, but the books have only %d records: records were lost", c.Records, replica, h.Count())
	}
	head, err := h.HeadAfter(c.Records)
	if err != nil {
		return err
	}
	if hex.EncodeToString(head[:]) != c.Head {
		return a.raise("the site signed another history: replica %s has a checkpoint of %d records that differs from these books", replica, c.Records)
	}
	return nil
}

// signedHere returns an error for a checkpoint that this site did not sign.
func (a *alarm) signedHere(c *money.Checkpoint) error {
	if err := history.Verify(c); err != nil {
		return err
	}
	key := c.Key
	switch {
	case a.config.Keys != nil:
		key = a.config.Keys.AccountKey()
	case a.config.Signer != nil:
		var err error
		if key, err = a.config.Signer.PublicKey(); err != nil {
			return err
		}
	}
	follows := read(a.group.machine, func(l *ledger.Ledger) bool { return l.Follows(c.Succession, c.Records) })
	if c.Site != a.config.Site || !history.Trusted(c, key) || !follows {
		return fmt.Errorf("key %s does not belong to site %s", c.Key, a.config.Site)
	}
	return nil
}

func (a *alarm) raise(format string, args ...any) error {
	why := messages.Errorf(messages.Conflict, format, args...)
	stop := messages.Errorf(messages.Unavailable, "%s: %s; see \"Books behind a checkpoint\" in the runbook", money.BankStopped, why.Message)
	if a.raised.CompareAndSwap(nil, stop) {
		a.config.Log.Error("the bank stops: the books differ from the books that the site signed", zap.Error(why))
		a.metrics.stopped.Set(1)
	}
	return why
}

// lower clears the alarm when this replica stops leading. The next leader compares the books again, and raises its own
// alarm if they still differ.
func (a *alarm) lower() {
	a.raised.Store(nil)
	a.metrics.stopped.Set(0)
}

// refusal returns the error for requests that would change the books, if the bank allows no changes. Otherwise it
// returns nil.
func (a *alarm) refusal() error {
	if why := a.raised.Load(); why != nil {
		return why
	}
	return nil
}
