package book

import (
	"bytes"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Apply carries out a command and returns its result, or a *messages.Error if the command is refused. A refused command
// changes only the time. A refused submission also frees its hold.
func (b *Book) Apply(c *Command) any {
	before := b.clock.now
	b.clock.now = max(b.clock.now, c.At)
	if by := min(c.Leap, b.clock.now.Sub(before)); by > 0 {
		b.claims.leap(by)
	}
	b.dependencies.beginDue()
	b.windows.turnDue()
	result := b.carryOut(c)
	b.endings.archiveOldest()
	return result
}

func (b *Book) carryOut(c *Command) any {
	switch {
	case c.Submit != nil:
		return outcome(b.submit(c.Submit))
	case c.Cancel != nil:
		return outcome(b.endings.cancel(c.Cancel))
	case c.Register != nil:
		return outcome(b.exchanges.register(c.Register))
	case c.Exchange != nil:
		return outcome(b.exchanges.exchange(c.Exchange))
	case c.Lost != nil:
		return b.exchanges.lost(c.Lost)
	case c.Settle != nil:
		return b.endings.settle(c.Settle)
	case c.Confirm != nil:
		b.endings.confirm(c.Confirm)
		return nil
	case c.Decide != nil:
		b.decide(c.Decide)
		return nil
	case c.Disband != nil:
		return b.claims.disband(c.Disband)
	case c.Drain != nil:
		return outcome(b.exchanges.drain(c.Drain))
	case c.ChangeWindows != nil:
		return outcome(b.windows.change(c.ChangeWindows))
	case c.Warn != nil:
		b.notices.warn(c.Warn)
		return nil
	case c.Quote != nil:
		return outcome(b.quotes.quote(c.Quote, b.clock.now))
	case c.ApplyMarkets != nil:
		return outcome(b.applyMarkets(c.ApplyMarkets))
	case c.Admit != nil:
		return outcome(b.tokens.admit(c.Admit, b.clock.now))
	case c.EnterRemote != nil:
		return outcome(b.depart(c.EnterRemote))
	case c.Advance != nil:
		return b.remote.advance(c.Advance)
	case c.Park != nil:
		return outcome(b.claims.park(c.Park))
	case c.Change != nil:
		return outcome(b.change(c.Change))
	case c.Requeue != nil:
		return outcome(b.claims.requeueAll(c.Requeue))
	case c.Notified != nil:
		b.notices.notified(c.Notified)
		return nil
	case c.CancelJobs != nil:
		return b.endings.cancelJobs(c.CancelJobs)
	case c.CancelTasks != nil:
		return outcome(b.exchanges.cancelTasks(c.CancelTasks))
	case c.Restored != nil:
		b.index.renumber(c.Restored)
		return nil
	case c.SetLicenses != nil:
		b.licenses.set(c.SetLicenses.Totals)
		return nil
	case c.SetBounds != nil:
		b.bounds.set(c.SetBounds.Markets)
		return nil
	case c.Begin != nil: // this command only sets the time
		return nil
	}
	return messages.Errorf(messages.Invalid, "the command to the book is empty: none of its fields says what to do")
}

func outcome[T any](result T, err error) any {
	if err != nil {
		return err
	}
	return result
}

// Known returns the first answer to a submission with this key, or nil if the key is new. It returns an error if the
// key belongs to a different job, here or at another site.
func (b *Book) Known(account messages.Name, key string, digest []byte) (*Receipt, error) {
	p := b.Entered(account, key)
	switch {
	case p == nil:
		return nil, nil
	case p.Peer != "":
		return nil, messages.Errorf(messages.Conflict, "key %q was used for a job at another site; choose a new key for a new job", key)
	case !bytes.Equal(p.Digest, digest):
		return nil, messages.Errorf(messages.Conflict, "key %q was used for job %d with another description; choose a new key for a new job", key, p.ID)
	}
	r := Receipt{Job: p.ID, Market: p.Market, Payer: p.Payer, Held: p.Held, Tasks: p.Tasks}
	return &r, nil
}

// KnownRemote returns the answer to an earlier submission with the same key, or nil if there was none. It returns an
// error if the key belongs to a different job.
func (b *Book) KnownRemote(c *EnterRemote) (*RemoteReceipt, error) {
	p := b.Entered(c.Account, c.Key)
	switch {
	case p == nil:
		return nil, nil
	case !bytes.Equal(p.Digest, c.Digest):
		return nil, messages.Errorf(messages.Conflict, "key %q was used for another job; choose a new key for a new job", c.Key)
	}
	return &RemoteReceipt{Job: p.ID, Payer: p.Payer, Held: p.Held, Tasks: p.Tasks, Peer: p.Peer, Chosen: p.Chosen}, nil
}

func (b *Book) refusal(c *Submit) error {
	if err := b.visitors.check(c.Visit); err != nil {
		return err
	}
	if b.Active() >= MaxActive {
		return messages.Errorf(messages.Exhausted, "the site holds %d jobs that have not ended; submit again later", MaxActive)
	}
	if n := b.Pending(c.Account); c.Most > 0 && n >= c.Most {
		return messages.Errorf(messages.Exhausted, "account %s has %d jobs that have not ended, which is the limit; submit again when one of these jobs has ended", c.Account, n)
	}
	if err := b.Dependable(c.Spec); err != nil {
		return err
	}
	if err := b.effects.crossed(c); err != nil {
		return err
	}
	return b.Unchanged(c.MarketsVersion)
}

// submit enters a job. If the job is refused, submit frees its hold. If the key belongs to an existing job, the hold
// stays, because that job may use it.
func (b *Book) submit(c *Submit) (Receipt, error) {
	r, err := b.enterJob(c)
	if err != nil && c.Seen != 0 && !messages.Passing(err) {
		if p := b.Entered(c.Account, c.Key); p == nil || p.Peer != "" {
			b.effects.release(c.Hold)
		}
	}
	return r, err
}

func (b *Book) change(c *Change) (Changed, error) {
	if j := b.jobs.own(c.Job); j != nil && c.To != nil && c.Key != j.ChangeKey && !j.Spec.WaitsAs(c.To) {
		if err := b.Dependable(c.To); err != nil {
			return Changed{}, err
		}
	}
	return b.changes.change(c)
}

func (b *Book) enterJob(c *Submit) (Receipt, error) {
	if known, err := b.Known(c.Account, c.Key, c.Digest); err != nil {
		return Receipt{}, err
	} else if known != nil {
		return *known, nil
	}
	if err := b.refusal(c); err != nil {
		return Receipt{}, err
	}
	q, err := b.quotes.accepted(c.Account, c.Quote, b.clock.now)
	if err != nil {
		return Receipt{}, err
	}
	j := newJob(c, b.index.next(), b.clock.now)
	b.index.skip(j.Spec.Numbers())
	if q != nil {
		b.quotes.take(q, j.ID)
	}
	b.visitors.enter(j)
	b.dependencies.enter(j)
	b.jobs.live(j.Spec.Market, 1)
	b.index.keys[keyOf(b.jobs.byID.put(j), j.Account, j.Key)] = j.ID
	b.index.list(j.Account, j.ID, true)
	b.watch.touch(j.ID)
	return j.Receipt(), nil
}

func (b *Book) depart(c *EnterRemote) (RemoteReceipt, error) {
	if known, err := b.KnownRemote(c); err != nil {
		return RemoteReceipt{}, err
	} else if known != nil {
		return *known, nil
	}
	return b.remote.enter(c)
}

func (b *Book) decide(c *Decide) {
	if c.Tariffs != nil {
		b.meters.setTariffs(c.Market, c.Tariffs)
	}
	if c.Notes != nil || c.Forget {
		b.markets.note(c.Market, c.Notes, c.Forget)
	}
	for _, a := range c.Suspend {
		b.claims.suspend(a)
	}
	lost := ofSite
	if c.Owed {
		lost = ofMarket
	}
	for _, a := range c.Requeue {
		b.claims.requeue(a, lost, job.EndPreempted)
	}
	for _, a := range c.Resume {
		b.claims.resume(a)
	}
	for i := range c.Start {
		b.start(&c.Start[i])
	}
	for i := range c.Discard {
		b.endings.discard(&c.Discard[i])
	}
}

func (b *Book) start(s *Starting) {
	j := b.jobs.own(s.Job)
	if j == nil || !j.Active() || j.Order != nil {
		return
	}
	order := s.Order
	j.Order, j.Fixed = &order, s.Fixed
	b.jobs.ordered[j.ID] = true
	if j.Fixed != nil {
		j.Fixed.Amount = max(0, min(j.Fixed.Amount, j.Left()))
	}
	b.effects.round(j, s.Legs)
	b.effects.keepPromises(j)
	b.watch.touch(j.ID)
}

// applyMarkets replaces the site's markets. Tariffs and notes of removed markets are dropped.
func (b *Book) applyMarkets(c *ApplyMarkets) (Applied, error) {
	if c.Applied != nil {
		if a, done, err := b.AppliedBy(c.Applied.Key, c.Applied.Content); done {
			return a, err
		}
	}
	if err := b.Unchanged(c.MarketsVersion); err != nil {
		return Applied{}, err
	}
	if len(c.Markets) == 0 { // without markets, the command only stores its answer
		return b.markets.answer(c.Applied), nil
	}
	for _, name := range c.Idle {
		if n := b.Live(name); n > 0 {
			return Applied{}, messages.Errorf(messages.Conflict, "markets: %s has %d jobs that have not ended; cancel them or wait", name, n)
		}
	}
	b.markets.replace(c.Markets)
	b.bounds.set(BoundsOf(c.Markets))
	b.meters.keep(b.markets.configures)
	return b.markets.answer(c.Applied), nil
}
