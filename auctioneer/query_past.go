package auctioneer

import (
	"context"

	"github.com/candor-grid/candor/messages"
)

// past gives another replica of the auctioneer what was added to the histories.
func (l *queries) past(_ context.Context, caller messages.Name, r messages.PastRequest) (messages.PastReply, error) {
	if caller != messages.ServiceIdentity(messages.Auctioneer) {
		return messages.PastReply{}, messages.Errorf(messages.PermissionDenied, "only replicas of the auctioneer copy the histories; ask for the history of a market instead")
	}
	return l.histories.part(r.From, r.After), nil
}

// history tells how a market or a node was, to whoever may ask how it is.
func (l *queries) history(ctx context.Context, caller messages.Name, r messages.HistoryRequest) (reply messages.HistoryReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if r.Over == 0 {
		r.Over = 3600 * aSecond
	}
	if m := l.inForce(); r.Market != "" && m.Find(r.Market) == nil {
		return reply, m.Missing("market: ", r.Market)
	}
	if err := l.verify(ctx); err != nil {
		return reply, err
	}
	now := l.Clock()
	l.histories.mu.Lock()
	defer l.histories.mu.Unlock()
	reply.Since = l.histories.since
	if m := l.histories.markets[r.Market]; m != nil {
		m.tell(&reply, now, r.Over, caller, l.operates(caller))
	} else if n := l.histories.nodes[r.Node]; n != nil {
		n.tell(&reply, now, r.Over)
	}
	return reply, nil
}
