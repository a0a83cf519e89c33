package embedded

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// openPeers gives the bank the configured peers, as an operator does. What the
// bank has already it is not told again: new terms close a dispute.
func (s *Site) openPeers(ctx context.Context) error {
	c := &s.config
	if len(c.Peers) == 0 && c.Reserve == 0 {
		return nil
	}
	known, err := ask[messages.PeersReply](ctx, s, messages.Bank, messages.VerbPeers, messages.Empty{})
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	for _, p := range c.Peers {
		if err := s.openPeer(ctx, p, known.Peers); err != nil {
			return err
		}
	}
	if c.Reserve != 0 && c.Reserve != known.Reserve {
		if _, err := ask[messages.AccountReply](ctx, s, messages.Bank, messages.VerbReserve, messages.ReserveRequest{Limit: c.Reserve}); err != nil {
			return fmt.Errorf("reserve for settlements: %w", err)
		}
	}
	return nil
}

func (s *Site) openPeer(ctx context.Context, p Peer, known []messages.PeerReply) error {
	i := slices.IndexFunc(known, func(k messages.PeerReply) bool { return k.Peer == p.Name })
	if i >= 0 && known[i].Limit == p.Limit && slices.Equal(known[i].Keys, p.Keys) {
		return nil
	}
	if i >= 0 {
		s.log.Info("the configuration changes the terms of a peer", zap.String("peer", p.Name),
			zap.Stringer("limit", p.Limit), zap.Stringer("before", known[i].Limit), zap.Strings("keys", p.Keys))
	}
	request := messages.PeerRequest{Peer: p.Name, Keys: p.Keys, Limit: p.Limit}
	if _, err := ask[messages.PeerReply](ctx, s, messages.Bank, messages.VerbPeer, request); err != nil {
		return fmt.Errorf("peer %s: %w", p.Name, err)
	}
	return nil
}
