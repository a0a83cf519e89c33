package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/money"
)

type terms struct {
	Keys  []string         `json:"keys"`
	Limit messages.Credits `json:"limit"`
	// Share is the share from the configuration, or nil if the configuration gives none.
	Share *messages.Credits `json:"share,omitempty"`
}

func (p *Peer) terms() terms { return terms{p.Keys, p.Limit, p.Share} }

func (t terms) same(u terms) bool {
	return t.Limit == u.Limit && slices.Equal(t.Keys, u.Keys) && t.stated() == u.stated()
}

// stated returns the peer's share of the reserve from the configuration, or −1 if the configuration has none.
func (t terms) stated() messages.Credits {
	if t.Share == nil {
		return -1
	}
	return *t.Share
}

func (t terms) has(k clearing.PeerReply) bool {
	return t.Limit == k.Limit && len(t.merged(k)) == len(k.Keys) && (t.Share == nil || *t.Share == k.Share)
}

// merged returns the bank's keys, followed by configured keys that are new to the bank. An old configuration, from
// before a rotation, must neither restore an old key nor remove a new one.
func (t terms) merged(k clearing.PeerReply) []string {
	keys := slices.Clone(k.Keys)
	for _, key := range t.Keys {
		if !slices.Contains(keys, key) && !slices.Contains(k.Retired, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// The type told has the terms of the peers that the site last sent to its bank. The site sends terms again only if the
// configured terms differ from these. If it sent them at each start, it would overwrite later changes: changes by a
// command, or a peer's new key.
type told struct {
	Peers   map[messages.Name]terms `json:"peers"`
	Reserve messages.Credits        `json:"reserve"`
}

// toldFile is the file in the state directory that stores the struct `told`.
const toldFile = "peers.json"

func readTold(state string) (told, error) {
	t := told{Peers: map[messages.Name]terms{}}
	path := filepath.Join(state, toldFile)
	if err := durable.ReadJSON(path, &t); err != nil {
		return t, fmt.Errorf("state directory: %s: %w", path, err)
	}
	return t, nil
}

func (o *operator) openPeers(ctx context.Context) error {
	c := &o.config
	peers := o.peers()
	if len(peers) == 0 && c.Reserve == 0 {
		return nil
	}
	before, err := readTold(c.State)
	if err != nil {
		return err
	}
	known, err := ask[clearing.PeersReply](ctx, o, messages.Bank, clearing.VerbPeers, messages.Empty{})
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	now := told{Peers: map[messages.Name]terms{}, Reserve: c.Reserve}
	for _, p := range peers {
		if err := o.openPeer(ctx, p, before, known.Peers); err != nil {
			return err
		}
		now.Peers[p.Name] = p.terms()
	}
	if c.Reserve != 0 && c.Reserve != before.Reserve {
		if _, err := ask[money.AccountReply](ctx, o, messages.Bank, clearing.VerbReserve, clearing.ReserveRequest{Limit: c.Reserve}); err != nil {
			return fmt.Errorf("reserve for settlements: %w", err)
		}
	}
	return replaceJSON(filepath.Join(c.State, toldFile), now)
}

// openPeer tells the bank about a peer that is new to it, or whose terms changed. It does not repeat unchanged terms,
// because setting terms closes a dispute.
func (o *operator) openPeer(ctx context.Context, p Peer, before told, known []clearing.PeerReply) error {
	request := clearing.PeerRequest{Peer: p.Name, Keys: p.Keys, Limit: p.Limit, Share: p.Share}
	if i := slices.IndexFunc(known, func(k clearing.PeerReply) bool { return k.Peer == p.Name }); i >= 0 {
		if old := slices.IndexFunc(p.Keys, func(key string) bool { return slices.Contains(known[i].Retired, key) }); old >= 0 {
			o.log.Warn("the configuration names a retired key of a peer: remove the key", zap.String("peer", p.Name), zap.String("key", p.Keys[old]))
		}
		was, ok := before.Peers[p.Name]
		parted := known[i].Standing == clearing.PeerParted
		if parted && len(p.terms().merged(known[i])) == len(known[i].Keys) {
			o.log.Warn("the configuration names a peer that this site has parted from: remove the peer, or add the peer again with candor peer add", zap.String("peer", p.Name))
			return nil
		}
		if !parted && (!ok || was.same(p.terms()) || p.terms().has(known[i])) { // if a parted site has a new key, this is a new agreement
			return nil
		}
		request.Keys = p.terms().merged(known[i])
		o.log.Info("the configuration changes the terms of a peer", zap.String("peer", p.Name),
			zap.Stringer("limit", p.Limit), zap.Stringer("before", known[i].Limit), zap.Strings("keys", request.Keys))
	}
	if _, err := ask[clearing.PeerReply](ctx, o, messages.Bank, clearing.VerbPeer, request); err != nil {
		return fmt.Errorf("peer %s: %w", p.Name, err)
	}
	return nil
}
