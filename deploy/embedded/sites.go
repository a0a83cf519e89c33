package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
)

// Sites are several sites of this process, each with its own keys, servers and
// actors, which meet as sites of different owners do: over links between their
// servers, by the requests that sites take from one another.
type Sites []*Site

// StartSites starts sites that are all peers of one another, each trusting each
// up to a limit, which is its reserve for settlements too. The first takes the
// servers of all others, and so on. Without hosts: each site is here as a whole.
func StartSites(ctx context.Context, configs []Config, limit messages.Credits, o Options) (Sites, error) {
	var all Sites
	fail := func(err error) (Sites, error) { return nil, errors.Join(err, all.Close()) }
	if len(configs) > 0 {
		o.usersFile = filepath.Join(configs[0].State, usersFile)
	}
	for _, c := range configs {
		s, err := prepared(c, o)
		if err != nil {
			return fail(fmt.Errorf("site %s: %w", c.Site, err))
		}
		all = append(all, s)
	}
	for i, s := range all {
		if err := s.join(all[:i], all[i+1:], limit); err != nil {
			return fail(fmt.Errorf("site %s: %w", s.config.Site, err))
		}
	}
	if err := Each(all, func(s *Site) error { return s.startActors(ctx) }); err != nil {
		return nil, unstarted(ctx, err, all.Close())
	}
	return all, nil
}

// prepared returns a site that has its keys and nothing else yet.
func prepared(c Config, o Options) (*Site, error) {
	if err := c.Validate(); err != nil {
		return nil, messages.Errorf(messages.Invalid, "configuration: %v", err)
	}
	if len(c.Hosts) > 0 || o.Only != nil {
		return nil, messages.Errorf(messages.Invalid, "hosts: sites of several hosts cannot start together; start each host with its own command")
	}
	if o.Log != nil {
		o.Log = o.Log.With(zap.String("site", c.Site))
	}
	s, err := newSite(c, o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// join makes others the site's peers, and starts its server: it connects to
// the peers that listen already, and the later ones connect to it.
func (s *Site) join(earlier, later Sites, limit messages.Credits) error {
	if s.config.ListenLeaf == "" {
		s.config.ListenLeaf = "127.0.0.1:0"
	}
	s.config.Peers = nil
	for _, other := range earlier {
		creds, err := other.authority.IssueLink(s.config.Site)
		if err != nil {
			return err
		}
		file := CredsFile(s.config.State, filepath.Join("links", other.config.Site))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := durable.WriteFile(file, creds, 0o600); err != nil {
			return err
		}
		if err := s.admit(other, Peer{URLs: []string{"nats://" + other.info.Leaf}, Creds: file, Limit: limit}); err != nil {
			return err
		}
	}
	for _, other := range later {
		if err := s.admit(other, Peer{Limit: limit}); err != nil {
			return err
		}
	}
	return s.listen()
}

// admit makes another site of this process a peer.
func (s *Site) admit(other *Site, p Peer) error {
	key, err := other.authority.PublicKey()
	if err != nil {
		return err
	}
	p.Name, p.Keys = other.config.Site, []string{key}
	s.config.Peers = append(s.config.Peers, p)
	return nil
}

// greetWithin bounds the wait of Greet. A bank that was a stranger to a peer asks again
// within peerBackoff.
const greetWithin = 5 * time.Second

// Greet waits until each bank has heard the banks of the others, at most for greetWithin: the
// first bank that starts is a stranger to banks that have no peers yet.
func (s Sites) Greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greetWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, site := range s {
		for !site.heard(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// heard reports whether no peer is silent.
func (s *Site) heard(ctx context.Context) bool {
	reply, err := ask[messages.PeersReply](ctx, s.operator, messages.Bank, messages.VerbPeers, messages.Empty{})
	return err == nil && !slices.ContainsFunc(reply.Peers, func(p messages.PeerReply) bool { return p.Tries > 0 })
}

// Close stops all sites.
func (s Sites) Close() error { return Each(s, (*Site).Close) }
