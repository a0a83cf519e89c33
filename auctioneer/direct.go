package auctioneer

import (
	"context"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// decision is what a market decided and what is still to be committed of it.
type decision struct {
	market *trading
	*book.Decide
}

// allocate lets a market decide, and returns what of it must last; nil: nothing
// does. The caller holds l.mu.
func (l *leader) allocate(now messages.Time, t *trading) *book.Decide {
	d := t.Decide(now, l.replica.read)
	t.deciding = d != nil
	return d
}

// commit makes a decision last. Until it is known how that went, the market
// decides nothing else.
func (l *leader) commit(ctx context.Context, d decision) {
	_, err := l.propose(ctx, &book.Command{Decide: d.Decide})
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("decision not committed, deciding again", zap.String("market", d.Market), zap.Error(err))
	}
	if err == nil {
		l.metrics.decisions.Inc()
		l.metrics.suspensions.Add(float64(len(d.Suspend) + len(d.Requeue)))
		l.metrics.resumptions.Add(float64(len(d.Resume)))
		l.metrics.discards.Add(float64(len(d.Discard)))
	}
	l.mu.Lock()
	d.market.deciding = false
	if err != nil {
		d.market.Stalled()
	} else {
		d.market.Kept()
	}
	l.mu.Unlock()
	l.replica.wake()
}
