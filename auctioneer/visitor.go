package auctioneer

import (
	"context"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// outward is a job of another site as that site is told of it.
func outward(j *book.Job) messages.JobSummary {
	s := summary(j)
	s.Job, s.Visit = j.Visit.Job, nil
	s.Account, _, _ = strings.Cut(j.Account, "@")
	s.Payer = s.Account
	return s
}

// visitor finds the job that another site asks about by its number there.
func (l *leader) visitor(caller messages.Name, id messages.JobID) (finding, error) {
	home, err := homeOf(caller)
	if err != nil {
		return nil, err
	}
	return func(b *book.Book) (*book.Job, error) {
		if j := b.Visitor(messages.Visit{Home: home, Job: id}); j != nil {
			return j, nil
		}
		return nil, messages.Errorf(messages.NotFound, "there is no job %d of site %s here", id, home)
	}, nil
}

func (l *leader) peerJob(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.JobDetail, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.detail(ctx, find)
	if err == nil {
		reply.Job, reply.Visit = r.Job, nil
		reply.Account, _, _ = strings.Cut(reply.Account, "@")
		reply.Payer = reply.Account
	}
	return reply, err
}

func (l *leader) peerTasks(ctx context.Context, caller messages.Name, r messages.TasksRequest) (reply messages.TasksReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.tasksOf(ctx, find, r)
	for i := range reply.Tasks {
		reply.Tasks[i].Task.Job = r.Job
	}
	reply.Account, _, _ = strings.Cut(reply.Account, "@")
	return reply, err
}

func (l *leader) peerWhy(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.WhyReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	reply, err = l.reasons(ctx, find)
	reply.Job = r.Job
	return reply, err
}

func (l *leader) peerCancel(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.CancelReply, err error) {
	find, err := l.visitor(caller, r.Job)
	if err != nil {
		return reply, err
	}
	var c book.Cancel
	err = l.look(ctx, func(b *book.Book) error {
		j, err := find(b)
		if err == nil {
			c = book.Cancel{Job: j.ID, By: j.Account}
		}
		return err
	})
	if err != nil {
		return reply, err
	}
	was, err := l.propose(ctx, &book.Command{Cancel: &c})
	if err != nil {
		return reply, err
	}
	return messages.CancelReply{Job: r.Job, State: was.(messages.State)}, nil
}

// peerLogs reads the output of a task as the job's owner, whom the node lets: no
// user here can speak under that name, and the auctioneer may under any.
func (l *leader) peerLogs(ctx context.Context, caller messages.Name, r messages.OutputRequest) (reply messages.LogsReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	find, err := l.visitor(caller, r.Logs.Attempt.Task.Job)
	if err != nil {
		return reply, err
	}
	var owner messages.Name
	err = l.look(ctx, func(b *book.Book) error {
		j, err := find(b)
		if err != nil {
			return err
		}
		if b.Node(r.Node) == nil {
			return messages.Errorf(messages.NotFound, "node: site %s has no node %q", l.Site, r.Node)
		}
		owner, r.Logs.Attempt.Task.Job = j.Account, j.ID
		return nil
	})
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerWithin-time.Second)
	defer cancel()
	return bus.Call[messages.LogsReply](ctx, l.Bus, messages.LogsSubject(l.Site, r.Node, owner), r.Logs)
}
