package embedded

import (
	"io"

	"github.com/candor-grid/candor/deploy/links"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

func startLinks(s *share) (*service, error) {
	if s.server == nil {
		return nil, nil
	}
	c := links.Config{Site: s.config.Site, Server: s.server, Operators: s.config.Operators, Peers: s.linked}
	if s.host != nil {
		c.Host, c.Hosts = s.host.Name, s.config.replicaIDs()
	}
	return s.serving(messages.Links, func(b bus.Bus) (io.Closer, error) {
		c.Bus = b
		return links.Start(c)
	})
}

// linked returns the names of the peers. The key of the map is the public key of the account that the site shares with
// the peer.
func (s *share) linked() map[string]messages.Name {
	all := map[string]messages.Name{}
	for _, p := range s.peers() {
		if account, err := s.authority.LinkAccount(p.Name); err == nil { // an invalid name is refused elsewhere
			all[account] = p.Name
		}
	}
	return all
}
