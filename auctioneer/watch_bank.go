package auctioneer

import (
	"context"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
	"github.com/candor-grid/candor/messages/wire"
)

// watchBank sends requests to the bank at intervals, and records whether the bank answers. If the group has only one
// replica, it sends none: no other replica could lead instead.
func (a *site) watchBank(ctx context.Context) {
	subject := messages.Subject(a.Site, messages.Bank, messages.VerbStatus, messages.ServiceIdentity(messages.Auctioneer))
	payload, err := wire.Marshal(messages.Empty{}, wire.Msgpack)
	for err == nil && sleep(ctx, beat.Until(askBankEvery)) {
		if len(a.box.Status().Replicas) < 2 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, askBankWithin)
		sent := time.Now()
		_, failed := a.Bus.Request(within, subject, payload)
		cancel()
		next := a.replica.bank.Load().after(sent, time.Now(), failed)
		a.replica.bank.Store(&next)
	}
}
