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

// carryOut makes the book's effects happen, oldest first, and confirms them.
// What fails stays in the book and is tried again, under the same identifiers.
// Money does not wait for the stream of observations.
func (l *leader) carryOut(ctx context.Context) {
	streams := make(chan bus.Stream, 1)
	go l.openStream(ctx, streams)
	var stream bus.Stream // nil: observations wait
	backoff := time.Duration(0)
	for {
		if backoff > 0 {
			if !sleep(ctx, backoff/2+rand.N(backoff)) {
				return
			}
		} else {
			select {
			case <-ctx.Done():
				return
			case stream = <-streams:
			case <-l.effects:
			}
		}
		again, err := l.carryOutSome(ctx, stream)
		switch {
		case err != nil:
			l.Log.Warn("effects wait", zap.Error(err))
			backoff = min(max(2*backoff, 50*time.Millisecond), 5*time.Second)
		case again:
			backoff = time.Nanosecond
		default:
			backoff = 0
		}
	}
}

// openStream opens the stream of observations, however long that takes.
func (l *leader) openStream(ctx context.Context, streams chan<- bus.Stream) {
	for {
		stream, err := l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
		if err == nil {
			streams <- stream
			return
		}
		if ctx.Err() != nil {
			return
		}
		l.Log.Warn("no stream for observations yet", zap.Error(err))
		if !sleep(ctx, time.Second) {
			return
		}
	}
}

// carryOutSome carries out the oldest effects; again says there may be more.
func (l *leader) carryOutSome(ctx context.Context, stream bus.Stream) (again bool, err error) {
	var w batch
	l.replica.read(func(b *book.Book) { w = l.nextBatch(b, stream != nil) })
	done := &book.Confirm{}
	for _, id := range w.none {
		done.Effects = append(done.Effects, book.Confirmation{Effect: id})
	}
	if len(w.transfers) > 0 {
		if err := l.charge(ctx, &w, done); err != nil {
			return false, err
		}
	}
	if err := l.collect(ctx, w.fees, done); err != nil {
		l.Log.Warn("charges to other sites wait", zap.Error(err))
	}
	for i := range w.observations {
		if err := l.observe(ctx, stream, &w.observations[i]); err != nil {
			l.Log.Warn("observation waits", zap.Error(err))
			break
		}
		done.Effects = append(done.Effects, book.Confirmation{Effect: w.seen[i]})
	}
	if len(done.Effects) == 0 {
		return false, nil
	}
	_, err = l.propose(ctx, &book.Command{Confirm: done})
	return err == nil && l.more(&w, done), err
}

func (l *leader) charge(ctx context.Context, w *batch, done *book.Confirm) error {
	results, err := l.transfer(ctx, w.transfers)
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
