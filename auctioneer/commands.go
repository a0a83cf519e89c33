package auctioneer

import (
	"context"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// commands submits and cancels jobs, at this site and at others.
type commands struct {
	*submissions
	remote   *remote
	steering steering
}

// submit takes a job in three steps: it checks the job, asks the bank to hold the budget under an identifier made from
// the client's key, and commits the job. After any failure, the same request can be sent again. If the book refuses the
// submission, it also records an effect that frees the hold. If the submission never reaches the book, the hold ends
// after HoldFor.
func (l *commands) submit(ctx context.Context, account messages.Name, r job.SubmitRequest) (reply job.SubmitReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if r.Jobs != nil {
		return l.submitSeveral(ctx, account, &r)
	}
	if r.Site != "" && r.Site != l.Site {
		return l.remote.submit(ctx, account, &r)
	}
	return l.submitHere(ctx, account, &r)
}

func (l *commands) cancel(ctx context.Context, caller messages.Name, r job.CancelRequest) (reply job.CancelReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if r.Jobs != nil {
		reply.Jobs, err = l.cancelJobs(ctx, caller, r.Jobs)
		return reply, err
	}
	if away := l.remote.find(caller, r.Job); away != nil {
		if r.Tasks != nil {
			return reply, messages.Errorf(messages.Conflict, "job %d runs at another site, where tasks cannot be cancelled alone; cancel the whole job", r.Job)
		}
		return l.remote.cancel(ctx, caller, away)
	}
	if r.Tasks != nil {
		return l.steering.cancelTasks(ctx, caller, r)
	}
	l.replica.read(func(b *book.Book) { _, err = l.rules().Visible(b, caller, r.Job) })
	if err != nil {
		return reply, err
	}
	was, err := propose[job.State](ctx, l.site, &book.Command{Cancel: &book.Cancel{Job: r.Job, By: caller, Window: l.Limits.Window()}})
	return job.CancelReply{Job: r.Job, State: was}, err
}

// cancelJobs cancels several jobs; the jobs of this site are cancelled in one command. A job that the caller may not
// see is reported as missing.
func (l *commands) cancelJobs(ctx context.Context, caller messages.Name, ids []messages.JobID) ([]job.CancelOutcome, error) {
	out := make([]job.CancelOutcome, len(ids))
	here, places := &book.CancelJobs{By: caller, Window: l.Limits.Window()}, []int{}
	var away []messages.JobID
	l.replica.read(func(b *book.Book) {
		for i, id := range ids {
			out[i].Job = id
			if r := b.Remote(id); r != nil && (r.Account == caller || l.operates(caller)) {
				away = append(away, id)
			} else if _, err := l.rules().Visible(b, caller, id); err != nil {
				out[i].Error = messages.AsError(messages.VerbCancel, err)
			} else {
				here.Jobs, places = append(here.Jobs, id), append(places, i)
			}
		}
	})
	if len(here.Jobs) > 0 {
		done, err := propose[[]book.CancelledJob](ctx, l.site, &book.Command{CancelJobs: here})
		if err != nil {
			return nil, err
		}
		for k, i := range places {
			out[i].State, out[i].Error = done[k].State, done[k].Err
		}
	}
	return out, l.remote.cancelJobs(ctx, caller, away, out)
}
