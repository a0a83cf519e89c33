package auctioneer

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// carry brings the markets up to date with the book and returns what is to be
// settled. The caller holds l.mu.
func (l *leader) carry(now messages.Time, n news) []*book.Settle {
	var out []*book.Settle
	for i := range n.nodes {
		l.slots.Set(&n.nodes[i])
	}
	if len(n.nodes) > 0 {
		for i, t := range l.markets {
			slots, idle := l.slots.Of(i)
			t.SetSlots(now, slots, idle)
		}
	}
	for i := range n.jobs {
		if s := l.carryJob(now, &n.jobs[i]); s != nil {
			out = append(out, s)
		}
	}
	return append(out, l.dues.Due(now)...)
}

func (l *leader) carryJob(now messages.Time, n *jobNews) *book.Settle {
	t := l.market(n.market)
	if n.settle == nil {
		delete(l.settled, n.id)
	}
	l.gangs.Put(n.job.Spec, n.id, n.gangs)
	switch {
	case n.settle != nil && !l.settled[n.id]:
		l.settled[n.id] = true
		return l.settlement(now, t, n)
	case t == nil || n.blocked:
		return nil
	case n.left:
		t.Remove(now, n.id)
		return nil
	}
	if t.Plans() && t.Job(n.id) == nil {
		l.newcomer()
	}
	t.Put(now, func() *mechanism.Bid { return t.BidOf(n.job) }, n.id, n.progress)
	return nil
}

// settlement asks the mechanism what an ended job owes; nil if it is too early
// to say. A job whose market is no more owes nothing.
func (l *leader) settlement(now messages.Time, t *trading, n *jobNews) *book.Settle {
	if t == nil {
		return &book.Settle{Job: n.id, Reason: "its market is closed"}
	}
	return l.dues.Take(now, t.Settlement(now, n.settle))
}

// soonest is how long until something waits no longer, at most a second.
func (l *leader) soonest(now messages.Time) time.Duration {
	next := time.Second
	if at := l.dues.Next(); at != 0 {
		next = min(next, max(0, at.Sub(now).Std()))
	}
	if at := l.gangs.Next(); at != 0 {
		next = min(next, max(0, at.Sub(now).Std()))
	}
	return next
}

// proposeSettlements commits what jobs owe. What was worked out is proposed until it
// is known to be in the book: the job's shares are known only once.
func (l *leader) proposeSettlements(ctx context.Context, settlements []*book.Settle) {
	for _, s := range settlements {
		go func() {
			var backoff time.Duration
			for ctx.Err() == nil {
				_, err := l.propose(ctx, &book.Command{Settle: s})
				if err == nil || ctx.Err() != nil {
					return
				}
				l.Log.Warn("settlement not committed", zap.Stringer("job", s.Job), zap.Error(err))
				if refused(err) {
					l.retrySettlement(s.Job)
					return
				}
				backoff = longer(backoff)
				sleep(ctx, backoff/2+rand.N(backoff))
			}
		}()
	}
}

// refused says whether an error is for what was asked, and will be the same again.
func refused(err error) bool {
	switch messages.KindOf(err) {
	case messages.Invalid, messages.TooLarge, messages.NotFound:
		return true
	}
	return false
}

// retrySettlement lets the next step settle a job again.
func (l *leader) retrySettlement(id messages.JobID) {
	l.mu.Lock()
	delete(l.settled, id)
	l.mu.Unlock()
	l.replica.mu.Lock()
	l.replica.book.Touch(id)
	l.replica.mu.Unlock()
	l.replica.wake()
}
