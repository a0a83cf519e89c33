package auctioneer

import (
	"context"
	"sync"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// submitSeveral submits several jobs. The result is the same as if each job came in its own request. But it asks the
// bank only once for all holds, and the estimator only once for equal jobs. If the outcome of a job is unknown, the
// client must send the whole request again.
func (l *submissions) submitSeveral(ctx context.Context, account messages.Name, r *job.SubmitRequest) (reply job.SubmitReply, err error) {
	if err := r.Several(); err != nil {
		return reply, err
	}
	said, replies, errs := l.enterSeveral(ctx, account, r)
	if !r.DryRun {
		if err := l.refused(ctx, said, replies, errs); err != nil {
			return reply, err
		}
	}
	final := false
	for _, err := range errs {
		if messages.KindOf(err).Retriable() { // the client repeats the whole request; accepted jobs then get the same answers
			return reply, err
		}
		final = final || err != nil
	}
	if final {
		if err := l.verify(ctx); err != nil {
			return reply, err
		}
	}
	reply.Jobs = make([]job.SubmitOutcome, len(r.Jobs))
	l.replica.read(func(b *book.Book) {
		for i := range reply.Jobs {
			if errs[i] != nil {
				reply.Jobs[i].Error = messages.AsError(messages.VerbSubmit, errs[i])
				continue
			}
			q := &replies[i]
			reply.Jobs[i] = job.SubmitOutcome{Job: q.Job, Market: q.Market, Payer: q.Payer, Held: q.Held, Tasks: q.Tasks, Warnings: warnings(b, said[i])}
		}
	})
	return reply, nil
}

func (l *submissions) enterSeveral(ctx context.Context, account messages.Name, r *job.SubmitRequest) (said []*intake.Submission, replies []job.SubmitReply, errs []error) {
	said, replies, errs = make([]*intake.Submission, len(r.Jobs)), make([]job.SubmitReply, len(r.Jobs)), make([]error, len(r.Jobs))
	var under []*submission
	var places []int // positions of these submissions among the jobs of the request
	l.prepareSeveral(account, r, said, errs)
	for i := range r.Jobs {
		if errs[i] != nil {
			continue
		}
		s := &submission{Submission: said[i], heeded: true}
		if r.DryRun {
			replies[i], errs[i] = l.enter(ctx, s, true)
			continue
		}
		known, leave, err := l.begin(s)
		switch errs[i] = err; {
		case err != nil:
		case known != nil:
			replies[i] = *known
		default:
			defer leave()
			under, places = append(under, s), append(places, i)
		}
	}
	l.enterAll(ctx, under, func(k int, reply job.SubmitReply, err error) { replies[places[k]], errs[places[k]] = reply, err })
	return said, replies, errs
}

// prepareSeveral prepares several submissions. If the site has a filter program, the program is asked about each
// submission, which takes time. In this case a few submissions are prepared at the same time.
func (l *submissions) prepareSeveral(account messages.Name, r *job.SubmitRequest, said []*intake.Submission, errs []error) {
	rules := l.rules()
	prepare := func(i int) {
		said[i], errs[i] = rules.Prepare(account, &job.SubmitRequest{Key: r.Jobs[i].Key, Spec: r.Jobs[i].Spec, DryRun: r.DryRun})
	}
	if rules.Filter == nil {
		for i := range r.Jobs {
			prepare(i)
		}
		return
	}
	var all sync.WaitGroup
	const atOnce = 4 // only a few at a time, so that submissions of other accounts can come in between
	for k := range atOnce {
		all.Go(func() {
			for i := k; i < len(r.Jobs); i += atOnce {
				prepare(i)
			}
		})
	}
	all.Wait()
}
