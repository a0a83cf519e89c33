package auctioneer

import (
	"context"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// A change can raise a job's budget. raiseWithin is how long the leader waits, before it answers, for the bank to set
// the additional credits aside. The raise is committed before this wait begins.
const raiseWithin = 3 * time.Second

// change changes the description or the budget of a job that has not ended.
func (l steering) change(ctx context.Context, caller messages.Name, r job.ChangeRequest) (reply job.ChangeReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if err := l.decided(ctx); err != nil { // an earlier copy of this request may not be committed yet
		return reply, err
	}
	j, err := l.find(caller, r.Job)
	if err != nil {
		return reply, err
	}
	if r.Waits != nil {
		err := l.rules().MayWait(&j, r.Waits, func(id messages.JobID) error {
			_, err := l.find(caller, id)
			return err
		})
		if err != nil {
			return reply, err
		}
	}
	c, err := l.rules().Change(&j, &r, func(spec *job.JobSpec) error {
		now := l.Clock()
		return l.withMarket(spec.Market, func(m *market.Market) error {
			return m.Admit(now, m.Bid(j.ID, j.Account, now, spec, j.Contract))
		})
	})
	if err != nil {
		return reply, err
	}
	changed, err := propose[book.Changed](ctx, l.site, &book.Command{Change: c})
	if err != nil {
		return reply, err
	}
	return l.raised(ctx, caller, r.Job, changed)
}

// raised waits for the bank's answer to a raise of the budget. When the bank has answered, or when the wait is over, it
// returns the job's state and budget.
func (l steering) raised(ctx context.Context, caller messages.Name, id messages.JobID, changed book.Changed) (reply job.ChangeReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, raiseWithin)
	defer cancel()
	for {
		j, err := l.find(caller, id)
		if err != nil {
			return reply, err
		}
		mine := changed.Effect != 0 && j.Raise.Effect == changed.Effect
		if mine && j.Raise.Refused != "" {
			return reply, messages.Errorf(messages.Insufficient, "budget: the budget stays at %s: %s", j.Spec.Budget.Words(), strings.TrimSuffix(j.Raise.Refused, " (Insufficient)"))
		}
		reply = job.ChangeReply{Job: id, State: j.State, Budget: j.Spec.Budget}
		if mine && j.Raise.Pending() {
			reply.Pending = j.Spec.Budget + j.Raise.Amount
		}
		if reply.Pending == 0 || !sleep(ctx, 10*time.Millisecond) {
			return reply, nil
		}
	}
}
