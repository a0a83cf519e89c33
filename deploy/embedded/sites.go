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
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
)

// Sites are several sites in this process. Each has separate keys, servers and actors. They communicate over links, as
// sites of different owners do.
type Sites []*Site

// StartSites starts sites that are all peers of each other. Each peer may owe up to `limit`. The limit of all settled
// debts together has the same value. Each site accepts connections from the servers of all later sites. The sites have
// no hosts: each runs completely in this process.
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

// prepared returns a site that has only its keys.
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

// join adds the other sites as peers, and starts this site's server. The server connects to the earlier sites.
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

func (s *Site) admit(other *Site, p Peer) error {
	key, err := other.authority.PublicKey()
	if err != nil {
		return err
	}
	p.Name, p.Keys = other.config.Site, []string{key}
	s.config.Peers = append(s.config.Peers, p)
	return nil
}

// greetWithin is the longest time that Greet waits.
const greetWithin = 5 * time.Second

// Greet waits until each bank has an answer from the banks of the other sites. It waits at most for the time
// greetWithin. When the first bank starts, it gets no answers, because the banks that start later are not there yet.
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

func (s *Site) heard(ctx context.Context) bool {
	reply, err := ask[clearing.PeersReply](ctx, s.operator, messages.Bank, clearing.VerbPeers, messages.Empty{})
	return err == nil && !slices.ContainsFunc(reply.Peers, func(p clearing.PeerReply) bool { return p.Tries > 0 })
}

// Close stops all sites.
func (s Sites) Close() error { return Each(s, (*Site).Close) }
