package auctioneer

import (
	"context"
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
)

// submitSeveral takes jobs as if each came with a request of its own: the bank is asked
// once for all holds, and the estimator once for jobs that are alike. If the outcome of a job is
// not known yet, the whole request is to be sent again.
func (l *submissions) submitSeveral(ctx context.Context, account messages.Name, r *messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	if err := r.Several(); err != nil {
		return reply, err
	}
	replies, errs := make([]messages.SubmitReply, len(r.Jobs)), make([]error, len(r.Jobs))
	said := make([]*intake.Submission, len(r.Jobs)) // that were prepared
	var under []*submission
	var places []int // of those under way, among the jobs
	for i := range r.Jobs {
		one := &messages.SubmitRequest{Key: r.Jobs[i].Key, Spec: r.Jobs[i].Spec, DryRun: r.DryRun}
		if said[i], errs[i] = l.rules.Prepare(account, one); errs[i] != nil {
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
	l.enterAll(ctx, under, func(k int, reply messages.SubmitReply, err error) { replies[places[k]], errs[places[k]] = reply, err })
	for _, err := range errs {
		if messages.KindOf(err).Retriable() { // the jobs that were taken have the same answers then
			return reply, err
		}
	}
	reply.Jobs = make([]messages.SubmitOutcome, len(r.Jobs))
	l.replica.read(func(b *book.Book) {
		for i := range reply.Jobs {
			if errs[i] != nil {
				reply.Jobs[i].Error = messages.AsError(messages.VerbSubmit, errs[i])
				continue
			}
			q := &replies[i]
			reply.Jobs[i] = messages.SubmitOutcome{Job: q.Job, Market: q.Market, Payer: q.Payer, Held: q.Held, Tasks: q.Tasks,
				Warnings: append(said[i].Said, intake.Unenforced(b, said[i])...)}
		}
	})
	return reply, nil
}

// enterAll has submissions paid for together, and committed in their order, by entries of the
// log that they share.
func (l *submissions) enterAll(ctx context.Context, all []*submission, done func(k int, reply messages.SubmitReply, err error)) {
	if len(all) == 0 {
		return
	}
	utilities := l.askUtilities(ctx, all)
	var commands []*book.Command
	var places []int // of those that were paid for, among all
	for k, err := range l.holdAll(ctx, all) {
		if err != nil {
			reply, err := l.unsecured(all[k], err)
			done(k, reply, err)
			continue
		}
		all[k].Assume(utilities(k))
		commands, places = append(commands, all[k].Command()), append(places, k)
	}
	receipts, errs := proposeInOrder[book.Receipt](ctx, l.Auctioneer, commands)
	for i, k := range places {
		if errs[i] == nil {
			l.metrics.submissions.Inc()
		}
		done(k, answer(receipts[i]), errs[i])
	}
}

// askUtilities is askUtility for several submissions: one question for all that ask the same.
func (l *submissions) askUtilities(ctx context.Context, all []*submission) (answer func(k int) *messages.UtilityReply) {
	asked := map[string]<-chan *messages.UtilityReply{}
	answers, questions := map[string]*messages.UtilityReply{}, make([]string, len(all))
	for k, s := range all {
		q, asks := s.AsksUtility()
		questions[k] = fmt.Sprint(asks, "\x00", q.Name, "\x00", q.Market, "\x00", q.Classes) // the account is the same
		if asked[questions[k]] == nil {
			asked[questions[k]] = l.askUtility(ctx, s)
		}
	}
	return func(k int) *messages.UtilityReply {
		q := questions[k]
		if from := asked[q]; from != nil {
			answers[q], asked[q] = <-from, nil
		}
		return answers[q]
	}
}
