package bank

import (
	"context"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// regroup adds a replica of the bank, or removes one.
func (b *Bank) regroup(ctx context.Context, caller messages.Name, r messages.ReplicaRequest) (messages.ReplicasReply, error) {
	if err := b.operator(caller, "change the replicas"); err != nil {
		return messages.ReplicasReply{}, err
	}
	reply, err := mailbox.Regroup(ctx, messages.Bank, b.box, &r)
	b.config.Log.Info("replicas", zap.String("by", caller), zap.String("add", r.Add), zap.String("remove", r.Remove), zap.Error(err))
	return reply, err
}

// replicas lists them.
func (b *Bank) replicas(ctx context.Context, caller messages.Name, _ messages.Empty) (messages.ReplicasReply, error) {
	if err := b.operator(caller, "list the replicas"); err != nil {
		return messages.ReplicasReply{}, err
	}
	return mailbox.Regroup(ctx, messages.Bank, b.box, nil)
}
