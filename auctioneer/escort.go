package auctioneer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/messages"
)

// errandsAtOnce is how many jobs are carried on with one destination at a time.
const errandsAtOnce = 32

// What failed is tried again after these times, or half as much again or less: a
// peer that was cut off is caught up with soon, and not by all at once.
const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 4 * time.Second
)

// escort carries the jobs that other sites run from phase to phase, each by an
// answer that can be asked for again: whatever leader does it, and however
// often. Errands to different destinations do not wait for one another.
func (l *leader) escort(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.attend(ctx, bankErrands) })
	attended := map[messages.Name]bool{}
	for ctx.Err() == nil {
		news := l.travel.news()
		for _, peer := range l.travel.destinations() {
			if !attended[peer] {
				attended[peer] = true
				running.Go(func() { l.attend(ctx, peer) })
				running.Go(func() { l.follow(ctx, peer) })
			}
		}
		select {
		case <-ctx.Done():
		case <-news:
		}
	}
}

// attend runs the errands to one destination. News does not shorten the wait
// after a failure: a busy site must not hammer a peer that is down.
func (l *leader) attend(ctx context.Context, to messages.Name) {
	var backoff time.Duration
	for ctx.Err() == nil {
		news := l.travel.news()
		jobs := l.travel.todo(to, errandsAtOnce)
		if len(jobs) == 0 {
			select {
			case <-ctx.Done():
			case <-news:
			}
			continue
		}
		err := l.runErrands(ctx, jobs)
		switch {
		case to == bankErrands:
		case messages.KindOf(err) == messages.Exhausted: // it answers
			l.travel.blame(to, nil)
		default:
			l.travel.blame(to, err)
		}
		if err == nil {
			backoff = 0
			continue
		}
		l.Log.Debug("jobs of other sites wait", zap.String("for", to), zap.Int("jobs", len(jobs)), zap.Error(err))
		backoff = min(max(2*backoff, firstBackoff), lastBackoff)
		sleep(ctx, backoff/2+rand.N(backoff))
	}
}

// runErrands carries jobs on, all at once; the error is one that may pass.
func (l *leader) runErrands(ctx context.Context, jobs []messages.JobID) (failed error) {
	var running sync.WaitGroup
	errs := make([]error, len(jobs))
	touched := map[messages.JobID]bool{}
	for i, id := range jobs {
		touched[id] = true
		running.Go(func() { errs[i] = l.advance(ctx, id) })
	}
	running.Wait()
	l.replica.read(func(b *book.Book) { l.travel.note(b, touched) })
	for _, err := range errs {
		if err != nil {
			l.metrics.errands.WithLabelValues("again").Inc()
			failed = err
			continue
		}
		l.metrics.errands.WithLabelValues("answered").Inc()
	}
	return failed
}

// advance asks what is to be asked about a job next, and commits the answer. The
// error is one that may pass.
func (l *leader) advance(ctx context.Context, id messages.JobID) error {
	ctx, cancel := context.WithTimeout(ctx, peerWithin)
	defer cancel()
	r, ok := l.roam(id)
	if !ok {
		return nil
	}
	if _, is := errand(&r); !is { // it has been run since it was listed
		return nil
	}
	var step book.Step
	var err error
	switch r.Phase {
	case book.Authorising:
		step, err = l.authorise(ctx, &r)
	case book.Sending:
		step, err = l.send(ctx, &r)
	case book.There:
		step, err = l.recall(ctx, &r)
	case book.Releasing:
		step, err = l.release(ctx, &r)
	}
	if err != nil {
		return err
	}
	step.Job = id
	_, err = l.propose(ctx, &book.Command{Travel: &book.Travel{Steps: []book.Step{step}}})
	return err
}

// roam copies a job that another site runs out of the book.
func (l *leader) roam(id messages.JobID) (r book.Roam, ok bool) {
	l.replica.read(func(b *book.Book) {
		if found := b.Roam(id); found != nil {
			r, ok = *found, true
		}
	})
	return r, ok
}

// waits says whether an errand has to wait: an error passes, or there is no room
// now, which says nothing of what was done before.
func waits(err error) bool {
	return messages.Passing(err) || messages.KindOf(err) == messages.Exhausted
}

// authorise has the bank set a job's budget aside for the other site to charge.
func (l *leader) authorise(ctx context.Context, r *book.Roam) (book.Step, error) {
	a, err := l.authorisation(ctx, r)
	switch {
	case err == nil:
		return book.Step{Authorised: &a}, nil
	case waits(err): // an earlier request, which was not answered, may have set credits aside
		return book.Step{}, err
	}
	return book.Step{Refused: messages.AsError(messages.VerbAuthorise, err)}, nil
}

func (l *leader) authorisation(ctx context.Context, r *book.Roam) (messages.SignedAuthorisation, error) {
	return bankAsk[messages.SignedAuthorisation](ctx, l, messages.VerbAuthorise, messages.AuthoriseRequest{
		Key: messages.RoamingKey(r.ID), Account: r.Payer, Member: r.Account, Peer: r.Peer, Amount: r.Spec.Budget,
		Interval: l.RoamFor, Job: r.ID, Reason: fmt.Sprintf("job %d, %s", r.ID, intake.Title(r.Spec)),
	})
}

// send asks the other site to run a job.
func (l *leader) send(ctx context.Context, r *book.Roam) (book.Step, error) {
	reply, err := peerAsk[messages.PeerSubmitReply](ctx, l, r.Peer, messages.VerbPeerSubmit, messages.PeerSubmitRequest{
		Job: r.ID, Account: r.Account, Spec: *r.Spec, Authorisation: *r.Authorisation}, peerWithin)
	switch {
	case err == nil:
		return book.Step{Arrived: heard(&reply.Job, r)}, nil
	case waits(err):
		return book.Step{}, err
	}
	return book.Step{Refused: messages.AsError(messages.VerbPeerSubmit, err)}, nil
}

// recall has the other site end a job. One that has ended, or is not known there,
// needs no more.
func (l *leader) recall(ctx context.Context, r *book.Roam) (book.Step, error) {
	_, err := peerAsk[messages.CancelReply](ctx, l, r.Peer, messages.VerbPeerCancel, messages.JobRequest{Job: r.ID}, peerWithin)
	switch kind := messages.KindOf(err); {
	case err == nil, kind == messages.Ended, kind == messages.NotFound:
		return book.Step{Told: true}, nil
	}
	return book.Step{}, err
}

// release has the bank take back what it authorised for a job that is not run.
// An authorisation that is not known here may have been given nevertheless: to
// ask for it once more finds out.
func (l *leader) release(ctx context.Context, r *book.Roam) (book.Step, error) {
	if r.Authorisation == nil {
		if _, err := l.authorisation(ctx, r); err != nil && waits(err) {
			return book.Step{}, err
		}
	}
	_, err := bankAsk[messages.ClearingReply](ctx, l, messages.VerbRevoke, messages.RevokeRequest{ID: messages.RoamingAuthorisation(r.ID)})
	if err != nil && waits(err) {
		return book.Step{}, err
	}
	return book.Step{Released: true}, nil
}
