package auctioneer

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// regroup adds a replica of the auctioneer, or removes one.
func (l *operations) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (messages.ReplicasReply, error) {
	if !slices.Contains(l.Operators, caller) {
		return messages.ReplicasReply{}, messages.Errorf(messages.PermissionDenied, "only operators may change the replicas")
	}
	reply, err := mailbox.Regroup(ctx, messages.Auctioneer, l.box, &r)
	l.Log.Info("replicas", zap.String("by", caller), zap.String("add", r.Add), zap.String("remove", r.Remove), zap.Error(err))
	return reply, err
}

// replicas lists them.
func (l *operations) replicas(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.ReplicasReply, error) {
	if !slices.Contains(l.Operators, caller) {
		return messages.ReplicasReply{}, messages.Errorf(messages.PermissionDenied, "only operators may list the replicas")
	}
	return mailbox.Regroup(ctx, messages.Auctioneer, l.box, nil)
}
