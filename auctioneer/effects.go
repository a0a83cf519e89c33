package auctioneer

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// transfersAtOnce is how many transfers go to the bank in one request.
const transfersAtOnce = 512

// transfer asks the bank, as the auctioneer, until ctx ends.
func (l *leader) transfer(ctx context.Context, t []messages.Transfer) ([]messages.TransferResult, error) {
	subject := messages.Subject(l.Site, messages.Bank, messages.VerbTransfer, messages.ServiceIdentity(messages.Auctioneer))
	reply, err := bus.Call[messages.TransferReply](ctx, l.Bus, subject, messages.TransferRequest{Transfers: t})
	if err == nil && len(reply.Results) != len(t) {
		err = messages.Errorf(messages.Internal, "the bank answered %d of %d transfers", len(reply.Results), len(t))
	}
	return reply.Results, err
}

// transferEach is transfer, but that a request which the bank refuses as a whole
// costs only what it is refused for: each is asked for alone, but for those that are
// linked to one another.
func (l *leader) transferEach(ctx context.Context, t []messages.Transfer, linked bool) ([]messages.TransferResult, error) {
	results, err := l.transfer(ctx, t)
	if err == nil || !refused(err) {
		return results, err
	}
	results = make([]messages.TransferResult, len(t))
	for i := range t {
		if linked || len(t) == 1 {
			results[i].Error = messages.AsError(messages.VerbTransfer, err)
			continue
		}
		one, err := l.transferEach(ctx, t[i:i+1], false)
		if err != nil {
			return nil, err
		}
		results[i] = one[0]
	}
	return results, nil
}

// What waits is tried again after these times, or half as much again or less.
const (
	firstEffectBackoff = 50 * time.Millisecond
	lastEffectBackoff  = 5 * time.Second
)

// carryOut makes the book's effects at the bank happen, oldest first, and confirms
// them. What fails stays in the book and is tried again, under the same identifiers,
// whether anything else happens at the site or not. Charges to another site that the
// bank cannot take yet let all others pass.
func (l *leader) carryOut(ctx context.Context) {
	wait := map[messages.Name]bool{} // charges to these sites, until the retry
	var retry <-chan time.Time
	var backoff time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.effects:
		case <-retry:
			clear(wait)
			retry = nil
		}
		err := l.settleUp(ctx, wait)
		switch {
		case err != nil:
			l.Log.Warn("effects wait", zap.Error(err))
			backoff = longer(backoff)
			if !sleep(ctx, backoff/2+rand.N(backoff)) {
				return
			}
			clear(wait)
			retry = time.After(0)
		case len(wait) == 0:
			backoff = 0
		case retry == nil:
			backoff = longer(backoff)
			retry = time.After(backoff/2 + rand.N(backoff))
		}
	}
}

func longer(backoff time.Duration) time.Duration {
	return min(max(2*backoff, firstEffectBackoff), lastEffectBackoff)
}

// settleUp carries out the effects at the bank, but for the charges to sites that
// wait, to which it adds. The error is of the bank, and may pass.
func (l *leader) settleUp(ctx context.Context, wait map[messages.Name]bool) error {
	for ctx.Err() == nil {
		var w batch
		l.replica.read(func(b *book.Book) { w = l.nextBatch(b, wait) })
		done := &book.Confirm{Effects: w.none}
		if len(w.transfers) > 0 {
			if err := l.charge(ctx, &w, done); err != nil {
				return err
			}
		}
		if err := l.collect(ctx, w.fees, done, wait); err != nil {
			l.Log.Warn("charges to other sites wait", zap.Error(err))
		}
		if len(done.Effects) > 0 {
			if _, err := l.propose(ctx, &book.Command{Confirm: done}); err != nil {
				return err
			}
		}
		if w.last {
			return nil
		}
	}
	return ctx.Err()
}

// report leaves the observations of ended jobs in the estimator's stream, and
// confirms them. Money does not wait for it, nor it for the money of others.
func (l *leader) report(ctx context.Context) {
	stream := l.openStream(ctx)
	if stream == nil {
		return
	}
	var backoff time.Duration
	for {
		if err := l.observeAll(ctx, stream); err != nil {
			l.Log.Warn("observations wait", zap.Error(err))
			backoff = longer(backoff)
			if !sleep(ctx, backoff/2+rand.N(backoff)) {
				return
			}
			continue
		}
		backoff = 0
		select {
		case <-ctx.Done():
			return
		case <-l.observations:
		}
	}
}

// observeAll leaves all observations that wait.
func (l *leader) observeAll(ctx context.Context, stream bus.Stream) error {
	for {
		done, seen, observations := &book.Confirm{}, []uint64(nil), []messages.Observation(nil)
		l.replica.read(func(b *book.Book) {
			for e := range b.EachEffect {
				switch {
				case len(observations) == transfersAtOnce:
					return
				case e.Kind != book.Observe:
				case !b.Names(&e):
					done.Effects = append(done.Effects, gone(e))
				default:
					seen, observations = append(seen, e.ID), append(observations, l.observation(b.Job(e.Job)))
				}
			}
		})
		var failed error
		for i := range observations {
			if failed = l.observe(ctx, stream, &observations[i]); failed != nil {
				break
			}
			done.Effects = append(done.Effects, book.Confirmation{Effect: seen[i]})
		}
		if len(done.Effects) > 0 {
			if _, err := l.propose(ctx, &book.Command{Confirm: done}); err != nil {
				return err
			}
		}
		if failed != nil || len(observations) < transfersAtOnce {
			return failed
		}
	}
}

// gone confirms an effect of which a job was forgotten, as an earlier version could:
// nothing can be asked for it any more.
func gone(e book.Effect) book.Confirmation {
	return book.Confirmation{Effect: e.ID, Refused: "a job that it speaks of is not remembered any more"}
}

// openStream opens the stream of observations, however long that takes; nil: until
// ctx ended.
func (l *leader) openStream(ctx context.Context) bus.Stream {
	for {
		stream, err := l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
		if err == nil {
			return stream
		}
		if ctx.Err() != nil {
			return nil
		}
		l.Log.Warn("no stream for observations yet", zap.Error(err))
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
}

func (l *leader) charge(ctx context.Context, w *batch, done *book.Confirm) error {
	results, err := l.transferEach(ctx, w.transfers, w.round)
	if err != nil {
		return err
	}
	for i, r := range results {
		if w.round && i > 0 {
			break
		}
		c := book.Confirmation{Effect: w.ids[i]}
		switch {
		case r.Error != nil:
			c.Refused = r.Error.Error()
			l.Log.Error("charge refused", zap.String("transfer", w.transfers[i].ID), zap.Error(r.Error))
			l.metrics.refused.Inc()
		case w.transfers[i].Kind == messages.Post:
			c.Amount = r.Amount
		}
		done.Effects = append(done.Effects, c)
	}
	return nil
}

func (l *leader) observe(ctx context.Context, stream bus.Stream, o *messages.Observation) error {
	data, err := messages.Marshal(o, messages.Msgpack)
	if err != nil {
		return err
	}
	return stream.Append(ctx, messages.ObservationSubject(l.Site), o.Site+"/"+o.Job.String(), data)
}

func (l *leader) observation(j *book.Job) messages.Observation {
	return messages.Observation{
		Site: l.Site, Job: j.ID, Account: j.Account, Name: j.Spec.Name, Market: j.Spec.Market, State: j.State,
		Budget: j.Spec.Budget, Charged: j.Cost(), Utility: j.Spec.Utility, Shares: pastShares(j),
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Stages: stages(j), Work: work(j),
		Valuation: j.Spec.Valuation, Value: j.Spec.Value, Delay: j.Spec.Delay, Length: j.Spec.Length,
	}
}
