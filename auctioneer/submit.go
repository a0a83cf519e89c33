package auctioneer

import (
	"context"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func (l *submissions) submitHere(ctx context.Context, account messages.Name, r *job.SubmitRequest) (reply job.SubmitReply, err error) {
	s, err := l.rules().Prepare(account, r)
	if err == nil {
		reply, err = l.enter(ctx, &submission{Submission: s, heeded: true}, r.DryRun)
	}
	if err != nil && s != nil && !r.DryRun {
		replies, errs := []job.SubmitReply{reply}, []error{err}
		if err := l.refused(ctx, []*intake.Submission{s}, replies, errs); err != nil {
			return reply, err
		}
		reply, err = replies[0], errs[0]
	}
	if err == nil {
		l.replica.read(func(b *book.Book) { reply.Warnings = warnings(b, s) })
		if r.DryRun && s.Market != nil {
			reply.Buys, _ = intake.Buys(s)
			reply.Warnings = slices.DeleteFunc(reply.Warnings, func(w string) bool { return w == reply.Buys })
		}
	}
	return reply, err
}

func (l *submissions) enter(ctx context.Context, s *submission, dryRun bool) (reply job.SubmitReply, err error) {
	known, leave, err := l.begin(s)
	if err != nil {
		return reply, err
	}
	if known != nil {
		return *known, nil
	}
	if s.visit == nil && !dryRun {
		return l.together(ctx, s, leave)
	}
	defer leave()
	if dryRun {
		return job.SubmitReply{Market: s.Spec.Market, Payer: s.Payer, Held: s.Held(), Tasks: s.Spec.TaskCount()}, l.affordable(ctx, s)
	}
	utility := l.askUtility(ctx, s)
	if err := l.federated.accept(ctx, s.visit); err != nil {
		return reply, err
	}
	s.Assume(<-utility)
	if err := l.inTerm(l.number); err != nil {
		return reply, err
	}
	receipt, err := propose[book.Receipt](ctx, l.site, s.Command())
	if err != nil {
		return job.SubmitReply{}, err
	}
	l.metrics.submissions.Inc()
	return answer(receipt), nil
}

// begin starts a submission. If an earlier submission has the same key, begin returns the answer to the earlier
// submission. Otherwise it returns the function `leave`, which the caller must call when the submission is over.
func (l *submissions) begin(s *submission) (known *job.SubmitReply, leave func(), err error) {
	receipt, err := l.known(s)
	if err != nil {
		return nil, nil, err
	}
	if receipt != nil {
		reply := answer(*receipt)
		return &reply, nil, nil
	}
	if s.visit == nil {
		if err := l.reruns(s.Account, s.Spec); err != nil {
			return nil, nil, err
		}
	}
	if s.heeded {
		if err := intake.Heeds(s.Spec, s.Market, l.inForce()); err != nil {
			return nil, nil, err
		}
	}
	if leave, err = l.within(s); err != nil {
		return nil, nil, err
	}
	if err := l.admit(s); err != nil {
		leave()
		return nil, nil, err
	}
	return nil, leave, nil
}

// refused is called for submissions that are about to be refused. An earlier try of the same submission may still be on
// its way into the book. So refused waits until all earlier tries are decided. If the submission is then in the book,
// its user gets the stored answer instead of the refusal. The wait needs no log entry.
func (l *submissions) refused(ctx context.Context, all []*intake.Submission, replies []job.SubmitReply, errs []error) error {
	final := false
	for i, s := range all {
		if s == nil || errs[i] == nil || messages.Waits(errs[i]) {
			continue
		}
		if final = true; l.gate.underWay(s.Account, s.Key) {
			errs[i] = tried(s.Key)
		}
	}
	if final {
		if err := l.decided(ctx); err != nil {
			return err
		}
	}
	l.replica.read(func(b *book.Book) {
		for i, s := range all {
			if s == nil || errs[i] == nil {
				continue
			}
			if known, _ := b.Known(s.Account, s.Key, s.Digest); known != nil {
				replies[i], errs[i] = answer(*known), nil
			} else {
				errs[i] = s.Judged(b, errs[i])
			}
		}
	})
	return nil
}

// The method `within` checks a new submission against the limits of its account. Submissions of the account that are
// not finished count as pending jobs, until the caller calls leave. Submissions to other sites are checked in the same
// way.
func (l *submissions) within(s *submission) (leave func(), err error) {
	if s.visit != nil {
		return func() {}, l.welcomes(s.visit.Home)
	}
	account := s.Account
	if !s.counted {
		if err := l.gate.pass(l.Clock(), account); err != nil {
			return nil, err
		}
	}
	most, pending := l.Limits.PendingJobs, 0
	l.replica.read(func(b *book.Book) { pending = l.gate.enter(b, s.Account, s.Key, most) })
	leave = func() { l.gate.leave(s.Account, s.Key) }
	if most > 0 && pending >= most {
		leave()
		l.metrics.limited.WithLabelValues("pending").Inc()
		return nil, messages.Errorf(messages.Exhausted, "account %s has %d jobs that have not ended, which is the limit; submit again when one of these jobs has ended", s.Account, pending)
	}
	return leave, nil
}

// visitsPerSite is the maximum number of remembered jobs of one other site. So no site can use up the memory for all.
const visitsPerSite = book.MaxVisits / 8

// welcomes applies the limits of one account to all users of another site together. Its error asks the site to try
// again later, which sites do automatically.
func (l *submissions) welcomes(home messages.Name) error {
	if err := l.gate.pass(l.Clock(), home+"/"); err != nil { // no account can have this name
		return messages.Errorf(messages.Unavailable, "%s", messages.Detail(err))
	}
	var guests book.VisitingCount
	l.replica.read(func(b *book.Book) { guests = b.Visiting(home) })
	if most := l.Limits.PendingJobs; most > 0 && guests.Pending >= most || guests.Remembered >= visitsPerSite {
		l.metrics.limited.WithLabelValues("pending").Inc()
		return messages.Errorf(messages.Exhausted, "site %s has %d active jobs here and %d remembered jobs, its limit; submit again when some jobs have ended", home, guests.Pending, guests.Remembered)
	}
	return nil
}
