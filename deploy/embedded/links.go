package embedded

import (
	"io"

	"github.com/candor-grid/candor/deploy/links"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// startLinks starts the service that says how the server of this process is
// linked to those of peers.
func startLinks(s *share) (*service, error) {
	if len(s.config.Peers) == 0 || s.server == nil {
		return nil, nil
	}
	c := links.Config{Site: s.config.Site, Server: s.server, Operators: s.config.Operators, Peers: map[string]messages.Name{}}
	for _, p := range s.config.Peers {
		account, err := s.authority.LinkAccount(p.Name)
		if err != nil {
			return nil, err
		}
		c.Peers[account] = p.Name
	}
	if s.host != nil {
		c.Host, c.Hosts = s.host.Name, s.config.replicaIDs()
	}
	return s.serving(messages.Links, func(b bus.Bus) (io.Closer, error) {
		c.Bus = b
		return links.Start(c)
	})
}
