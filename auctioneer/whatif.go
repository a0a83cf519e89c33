package auctioneer

import (
	"context"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// whatIf answers what another bid of a job would change now. It copies the market, and lets the copies decide. The
// leader waits only while the market is copied. The copies decide for one question at a time.
func (l *queries) whatIf(ctx context.Context, caller messages.Name, r marketmsg.WhatIfRequest) (reply marketmsg.WhatIfReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	reply.Job = r.Job
	if away := l.remoteJob(caller, r.Job); away != nil {
		reply.Message = "the job runs at another site, whose market decides about it"
		return reply, nil
	}
	var spec *job.JobSpec
	err = l.lookAt(ctx, l.seenBy(caller, r.Job), func(b *book.Book, j *book.Job) error {
		spec = j.Spec
		var stands marketmsg.WhyReply
		switch expected(b, l.inForce().Find(j.Spec.Market), j, &stands); {
		case !j.Active():
			reply.Message = "the job has ended: its bid cannot change anything"
		case stands.Message != "":
			reply.Message = "no bid changes this now: " + stands.Message
		}
		return nil
	})
	if err != nil || reply.Message != "" {
		return reply, err
	}
	return reply, l.fork(ctx, caller, r.Bid, spec, &reply)
}

// fork returns two copies of a job's market. In the first copy, the job has its present bid. In the second copy, it has
// the bid that the user asks about.
func (l *queries) fork(ctx context.Context, caller messages.Name, bid messages.Credits, spec *job.JobSpec, reply *marketmsg.WhatIfReply) error {
	m := l.inForce().Find(spec.Market)
	if m == nil {
		reply.Message = "the market " + spec.Market + " no longer exists"
		return nil
	}
	present := spec.Budget
	if reply.Term, reply.Message = market.Bids(m); reply.Term == marketmsg.TermRate {
		present = spec.Rate
	}
	if reply.Message != "" {
		return nil
	}
	if bid == 0 {
		bid = present
	}
	leave, err := l.questions.enter(ctx, l.Clock(), caller)
	if err != nil {
		return err
	}
	defer leave()
	now := l.Clock()
	var is *market.Fork
	err = l.withMarket(m.Name, func(m *market.Market) error {
		is, reply.Message = m.SeenBy(caller, l.operates(caller)).Fork(now, reply.Job, 0)
		return nil
	})
	if is == nil {
		return err
	}
	other := is.With(now, bid-present)
	outcomes := [2]marketmsg.BidOutcome{}
	for i, f := range []*market.Fork{is, other} {
		if outcomes[i], err = f.Decide(now); err != nil {
			return err
		}
	}
	outcomes[0].Bid, outcomes[1].Bid = present, bid
	reply.Now, reply.Then = &outcomes[0], &outcomes[1]
	return nil
}
