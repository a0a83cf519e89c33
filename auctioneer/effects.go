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
func (l *leader) carryOut(ctx context.Context) {
	stream, err := l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
	for err != nil && sleep(ctx, time.Second) {
		l.Log.Warn("no stream for observations yet", zap.Error(err))
		stream, err = l.Bus.Stream(ctx, messages.ObservationStream(l.Site), []string{messages.ObservationSubject(l.Site)})
	}
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

// carryOutSome carries out the oldest effects; again says there may be more.
func (l *leader) carryOutSome(ctx context.Context, stream bus.Stream) (again bool, err error) {
	var charges []messages.Transfer
	var observations []messages.Observation
	var ids, seen []uint64
	l.replica.read(func(b *book.Book) {
		for _, e := range b.Effects(transfersAtOnce) {
			switch j := b.Job(e.Job); e.Kind {
			case book.Charge:
				ids, charges = append(ids, e.ID), append(charges, charge(j))
			case book.Observe:
				seen, observations = append(seen, e.ID), append(observations, l.observation(j))
			}
		}
	})
	done := &book.Confirm{}
	if len(charges) > 0 {
		if err := l.charge(ctx, ids, charges, done); err != nil {
			return false, err
		}
	}
	for i := range observations {
		if err := l.observe(ctx, stream, &observations[i]); err != nil {
			l.Log.Warn("observation waits", zap.Error(err))
			break
		}
		done.Effects = append(done.Effects, book.Confirmation{Effect: seen[i]})
	}
	if len(done.Effects) == 0 {
		return false, nil
	}
	_, err = l.propose(ctx, &book.Command{Confirm: done})
	return err == nil && len(charges)+len(observations) == transfersAtOnce, err
}

// charge is what the bank is asked for an ended job.
func charge(j *book.Job) messages.Transfer {
	t := messages.Transfer{ID: j.Hold + "/charge", Kind: messages.Post, Pending: j.Hold, Debit: j.Payer, Credit: messages.SiteAccount,
		Amount: j.Owed, Job: j.ID, Reason: j.Why}
	if j.Owed == 0 {
		t.Kind, t.Debit, t.Credit = messages.Void, "", ""
	}
	return t
}

func (l *leader) charge(ctx context.Context, ids []uint64, charges []messages.Transfer, done *book.Confirm) error {
	results, err := l.transfer(ctx, charges)
	if err != nil {
		return err
	}
	for i, r := range results {
		c := book.Confirmation{Effect: ids[i]}
		switch {
		case r.Error != nil:
			c.Refused = r.Error.Error()
			l.Log.Error("charge refused", zap.String("transfer", charges[i].ID), zap.Error(r.Error))
			l.metrics.refused.Inc()
		case charges[i].Kind == messages.Post:
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
		Budget: j.Spec.Budget, Charged: j.Charged, Utility: j.Spec.Utility, Shares: pastShares(j),
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Stages: stages(j),
	}
}
