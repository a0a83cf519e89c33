package auctioneer

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A request to the bank pays for at most mostTogether submissions, and at most mostUnderWay requests run at the same
// time. Submissions that arrive meanwhile go into the next request.
const (
	mostTogether = 256
	mostUnderWay = 2
)

// The method `together` enters a submission together with other submissions that arrive at about the same time. The
// submissions share one payment request to the bank, and they share log entries. If fewer than mostUnderWay requests to
// the bank are running, the submission is entered at once.
func (l *submissions) together(ctx context.Context, s *submission, leave func()) (job.SubmitReply, error) {
	a, g := &alone{submission: s, leave: leave, done: make(chan struct{})}, &l.gathered
	g.mu.Lock()
	g.waiting = append(g.waiting, a)
	goes := g.underWay < mostUnderWay
	if goes {
		g.underWay++
	}
	g.mu.Unlock()
	if goes {
		go l.enterGathered(context.WithoutCancel(ctx))
	}
	select {
	case <-a.done:
		return a.reply, a.err
	case <-ctx.Done():
		return job.SubmitReply{}, messages.Errorf(messages.Unknown, "the submission is still under way; ask again with the same key")
	}
}

// enterGathered enters the submissions in l.gathered into the book, at most mostTogether at a time, until none is left.
func (l *submissions) enterGathered(ctx context.Context) {
	for {
		g := &l.gathered
		g.mu.Lock()
		n := min(len(g.waiting), mostTogether)
		batch := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		if n == 0 {
			g.underWay--
		}
		g.mu.Unlock()
		if n == 0 {
			return
		}
		l.enterBatch(ctx, batch)
	}
}

// enterBatch enters submissions together. If this panics, every submission without an answer gets an error, and the
// site continues.
func (l *submissions) enterBatch(ctx context.Context, batch []*alone) {
	ctx, cancel := context.WithTimeout(ctx, bus.RequestTimeout)
	defer cancel()
	answered := make([]bool, len(batch))
	done := func(k int, reply job.SubmitReply, err error) {
		batch[k].reply, batch[k].err, answered[k] = reply, err, true
		batch[k].leave()
		close(batch[k].done)
	}
	defer func() {
		if cause := recover(); cause != nil {
			l.Log.Error("the handling of submissions panicked", zap.Any("cause", cause), zap.ByteString("stack", debug.Stack()))
			for k := range batch {
				if !answered[k] {
					done(k, job.SubmitReply{}, messages.Errorf(messages.Internal, "the site could not answer because of a defect; see its log"))
				}
			}
		}
	}()
	all := make([]*submission, len(batch))
	for k, a := range batch {
		all[k] = a.submission
	}
	l.enterAll(ctx, all, done)
}

// enterAll asks the bank in one request to hold the budgets of all submissions. Then it commits the submissions in
// order, in shared log entries.
func (l *submissions) enterAll(ctx context.Context, all []*submission, done func(k int, reply job.SubmitReply, err error)) {
	if len(all) == 0 {
		return
	}
	utilities := l.askUtilities(ctx, all)
	var commands []*book.Command
	var places []int // positions of the paid submissions in `all`
	for k, err := range l.holdAll(ctx, all) {
		if err = cmp.Or(err, l.inTerm(l.number)); err != nil {
			done(k, job.SubmitReply{}, err)
			continue
		}
		all[k].Assume(utilities(k))
		commands, places = append(commands, all[k].Command()), append(places, k)
	}
	receipts, errs := proposeInOrder[book.Receipt](ctx, l.site, commands)
	for i, k := range places {
		if errs[i] == nil {
			l.metrics.submissions.Inc()
		}
		done(k, answer(receipts[i]), errs[i])
	}
}

// askUtilities does the same as askUtility, for several submissions. Submissions with equal questions share a request
// to the estimator.
func (l *submissions) askUtilities(ctx context.Context, all []*submission) (answer func(k int) *market.UtilityReply) {
	asked := map[string]<-chan *market.UtilityReply{}
	answers, questions := map[string]*market.UtilityReply{}, make([]string, len(all))
	for k, s := range all {
		q, asks := s.AsksUtility()
		questions[k] = fmt.Sprint(asks, "\x00", q.Account, "\x00", q.Name, "\x00", q.Market, "\x00", q.Classes)
		if asked[questions[k]] == nil {
			asked[questions[k]] = l.askUtility(ctx, s)
		}
	}
	return func(k int) *market.UtilityReply {
		q := questions[k]
		if from := asked[q]; from != nil {
			answers[q], asked[q] = <-from, nil
		}
		return answers[q]
	}
}
