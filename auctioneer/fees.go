package auctioneer

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// fee is the charge of a job of another site, the effect that stands for it, and
// what the bank is asked for.
type fee struct {
	effect uint64
	ask    messages.ChargeRequest
}

// feeOf makes the charge of an ended job; what it does not owe is released.
func feeOf(effect uint64, j *book.Job) fee {
	return fee{effect, messages.ChargeRequest{Issuer: j.Visit.Home, ID: j.Visit.Authorisation, Amount: j.Owed, Job: j.ID,
		Reason: clip("job "+j.Visit.Visit.String()+": "+market.Charge(j).Reason, messages.MaxClearingReason)}}
}

// feesAtOnce is how many charges to other sites the bank is asked for at a time.
const feesAtOnce = 32

// collect has the bank charge what jobs of other sites owe, and says how each
// turned out. The bank answers at once: it settles with the home bank later,
// whether that can be reached now or not. Sites of which one must be repeated wait; the error is why.
func (l *leader) collect(ctx context.Context, fees []fee, done *book.Confirm, wait map[messages.Name]bool) (failed error) {
	for len(fees) > 0 {
		some := fees[:min(len(fees), feesAtOnce)]
		fees = fees[len(some):]
		errs := make([]error, len(some))
		var asked sync.WaitGroup
		for i := range some {
			asked.Go(func() {
				_, errs[i] = bankAsk[messages.ClearingReply](ctx, l, messages.VerbCharge, some[i].ask)
			})
		}
		asked.Wait()
		for i, err := range errs {
			if err != nil && waits(err) {
				failed, wait[some[i].ask.Issuer] = err, true
				continue
			}
			c := book.Confirmation{Effect: some[i].effect, Amount: some[i].ask.Amount}
			if err != nil {
				c.Amount, c.Refused = 0, err.Error()
				l.Log.Error("charge to another site refused", zap.String("site", some[i].ask.Issuer), zap.String("authorisation", some[i].ask.ID), zap.Error(err))
				l.metrics.refused.Inc()
			}
			done.Effects = append(done.Effects, c)
		}
	}
	return failed
}
