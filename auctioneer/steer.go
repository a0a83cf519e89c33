package auctioneer

import (
	"context"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// steering answers requests that change a job or end its tasks.
type steering struct{ *term }

// find returns a job that the caller may change. An operator may change any job, and others only their own jobs.
func (l steering) find(caller messages.Name, id messages.JobID) (found book.Job, err error) {
	l.replica.read(func(b *book.Book) {
		j, failed := l.rules().Visible(b, caller, id)
		if err = failed; err == nil {
			found = *j
		}
	})
	return found, err
}

func (l steering) hold(ctx context.Context, caller messages.Name, r job.JobRequest) (reply job.HoldReply, err error) {
	j, err := l.find(caller, r.Job)
	if err != nil {
		return reply, err
	}
	if err := l.rules().MayHold(&j); err != nil {
		return reply, err
	}
	return l.park(ctx, caller, r.Job, false)
}

func (l steering) release(ctx context.Context, caller messages.Name, r job.JobRequest) (reply job.HoldReply, err error) {
	if _, err := l.find(caller, r.Job); err != nil {
		return reply, err
	}
	return l.park(ctx, caller, r.Job, true)
}

func (l steering) park(ctx context.Context, caller messages.Name, id messages.JobID, release bool) (reply job.HoldReply, err error) {
	p, err := propose[book.Parking](ctx, l.site, &book.Command{Park: &book.Park{Job: id, By: caller, Operator: l.operates(caller), Release: release}})
	return job.HoldReply{Job: id, State: p.State, Hold: !release, Changed: p.Changed, Running: p.Running}, err
}

func (l steering) requeue(ctx context.Context, caller messages.Name, r job.RequeueRequest) (reply job.RequeueReply, err error) {
	j, err := l.find(caller, r.Job)
	if err != nil {
		return reply, err
	}
	command := &book.Requeue{Job: r.Job}
	if r.Stage != nil && (*r.Stage < 0 || *r.Stage >= len(j.Stages)) {
		return reply, messages.Errorf(messages.NotFound, "stage: job %d has stages 0 to %d", j.ID, len(j.Stages)-1)
	}
	switch {
	case r.Task != nil:
		ref := messages.TaskRef{Job: r.Job, Index: *r.Task}
		if r.Stage != nil {
			ref.Stage = uint32(*r.Stage)
		}
		command.Tasks = []messages.TaskRef{ref}
	case r.Stage != nil:
		command.Stage = r.Stage
	}
	n, err := propose[int](ctx, l.site, &book.Command{Requeue: command})
	return job.RequeueReply{Job: r.Job, Tasks: n}, err
}

// cancelTasks cancels tasks of a job that continues with its other tasks. It refuses in markets whose mechanism
// relies on all tasks of a bid.
func (l steering) cancelTasks(ctx context.Context, caller messages.Name, r job.CancelRequest) (reply job.CancelReply, err error) {
	j, err := l.find(caller, r.Job)
	if err != nil {
		return reply, err
	}
	c := &book.CancelTasks{Job: r.Job, Tasks: r.Tasks, By: caller, Window: l.Limits.Window()}
	if r.Stage != nil {
		c.Stage = *r.Stage
	}
	switch m := l.inForce().Find(j.Spec.Market); {
	case r.Stage == nil && len(j.Stages) > 1:
		return reply, messages.Errorf(messages.Invalid, "stage: job %d has %d stages; name the stage of the tasks", j.ID, len(j.Stages))
	case m != nil && !registry.Of(m).Raises.Budget:
		return reply, messages.Errorf(messages.Conflict, "tasks: bids in %s markets, such as %s, are for all tasks of a job; cancel the whole job", m.Mechanism, m.Name)
	}
	n, err := propose[int](ctx, l.site, &book.Command{CancelTasks: c})
	return job.CancelReply{Job: r.Job, State: j.State, Tasks: n}, err
}
