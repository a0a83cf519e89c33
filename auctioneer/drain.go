package auctioneer

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// operations does what operators ask for.
type operations struct{ *leader }

// drain has a node take no more work.
func (l *operations) drain(ctx context.Context, caller messages.Name, r messages.DrainRequest) (reply messages.DrainReply, err error) {
	if !slices.Contains(l.Operators, caller) {
		return reply, messages.Errorf(messages.PermissionDenied, "only operators may drain a node")
	}
	if err := r.Validate(); err != nil {
		return reply, err
	}
	reply.Node = r.Node
	if !r.Undo {
		reply.Until = l.Clock().Add(r.Notice)
	}
	n, err := l.propose(ctx, &book.Command{Drain: &book.Drain{Node: r.Node, Until: reply.Until}})
	if err != nil {
		return reply, err
	}
	reply.Tasks = n.(int)
	if r.Undo {
		l.Log.Info("node takes work", zap.String("node", r.Node), zap.String("by", caller))
		return reply, nil
	}
	l.Log.Info("node drains", zap.String("node", r.Node), zap.Stringer("until", reply.Until), zap.Int("tasks", reply.Tasks))
	return reply, nil
}

// draining says which of a job's tasks are on nodes that drain, and until when.
func draining(b *book.Book, j *book.Job) (tasks int, until messages.Time) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if n := b.Nodes()[t.Node]; t.Phase == book.Claimed && n.Drain != 0 {
				tasks++
				if until == 0 || n.Drain < until {
					until = n.Drain
				}
			}
		}
	}
	return tasks, until
}
