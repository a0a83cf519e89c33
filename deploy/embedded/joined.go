package embedded

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/messages"
)

// joined has the peers that were added to the configuration while the site runs.
type joined struct {
	mu   sync.Mutex
	list []Peer
}

func (s *share) peers() []Peer {
	s.joined.mu.Lock()
	defer s.joined.mu.Unlock()
	return slices.Concat(s.config.Peers, s.joined.list)
}

// joinWithin is the longest time that the bank may take to accept new peers.
const joinWithin = 10 * time.Second

// enlist adds the new peers of a changed configuration to the running site, in its server and its bank. All other
// changes, also those of existing peers, take effect only at the next start.
func (s *share) enlist(o *server.Options, changed *Config) error {
	before := s.peers()
	var fresh []Peer
	for _, p := range changed.Peers {
		i := slices.IndexFunc(before, func(known Peer) bool { return known.Name == p.Name })
		switch {
		case i < 0:
			fresh = append(fresh, p)
		case !reflect.DeepEqual(before[i], p):
			s.log.Warn("the configuration changes a peer: start the site again to apply the change", zap.String("peer", p.Name))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	all := s.config
	all.Peers = slices.Concat(before, fresh)
	names := all.peerNames()
	if err := natsserver.Refresh(s.server, o, s.authority, names...); err != nil {
		return err
	}
	if err := s.relink(o, &all, fresh); err != nil {
		return err
	}
	s.joined.mu.Lock()
	s.joined.list = append(s.joined.list, fresh...)
	s.joined.mu.Unlock()
	s.log.Info("the configuration has new peers; they take part from now on", zap.Strings("peers", names[len(before):]))
	return nil
}

// introduce tells the bank about the configured peers that the bank does not know yet.
func (s *share) introduce() error {
	ctx, cancel := context.WithTimeout(s.ctx, joinWithin)
	defer cancel()
	as := &operator{share: s}
	return errors.Join(as.openPeers(ctx), as.close())
}

// relink reloads the running server with the options for new peers.
func (s *share) relink(o *server.Options, all *Config, fresh []Peer) error {
	next := o.Clone()
	next.TrustedKeys = nil // the server computes the trusted keys from the operators again
	next.PingInterval, next.MaxPingsOut = linkPing, linkPings
	next.LeafNode.Remotes = slices.Clone(o.LeafNode.Remotes)
	for i := range fresh {
		if len(fresh[i].URLs) == 0 && o.LeafNode.Port == 0 {
			return messages.Errorf(messages.Conflict, "peer %s: this site was started without an address for servers of peers; start the site again", fresh[i].Name)
		}
		if err := connectLeaf(next, all.TLS, &fresh[i], s.authority); err != nil {
			return err
		}
	}
	if o.LeafNode.TLSConfig != nil {
		var err error
		if next.LeafNode.TLSConfig, err = leafTLS(all); err != nil {
			return err
		}
	}
	remotes, admits := next.LeafNode.Remotes, next.LeafNode.TLSConfig
	if err := s.server.ReloadOptions(next); err != nil {
		return err
	}
	o.LeafNode.Remotes, o.LeafNode.TLSConfig = remotes, admits
	return nil
}
