package embedded

import (
	"cmp"
	"errors"
	"io"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/connections"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// guard limits the number of connections of each account. It sends its requests to the servers over the connection in
// the field `system`.
type guard struct {
	*connections.Guard
	system bus.Bus
}

// startGuard starts the guard in a process that has the site's keys. If the process has a server, the guard closes only
// connections of that server.
func startGuard(s *share, speaks bus.Bus) (*guard, error) {
	c, err := s.busConfig("operator")
	if err != nil {
		return nil, err
	}
	c.Metrics = nil
	c.Renew = func() (string, string, error) {
		creds, err := s.authority.SystemCredentials(identity.ForService)
		return creds.Token, creds.Seed, err
	}
	own := ""
	if s.server == nil {
		c.Retry = true
	} else if own = s.server.ID(); s.config.TLS == nil {
		c.InProcess = s.server
	}
	system, err := s.connect(c)
	if err != nil {
		return nil, err
	}
	started, err := connections.Start(connections.Config{
		System: system, Bus: speaks, Account: s.authority.AccountKey(), Role: s.authority.RoleOf, Server: own,
		Most: cmp.Or(s.config.Limits.Connections, quota.DefaultConnections), Log: s.log.Named("connections"), Metrics: s.metrics.shared,
	})
	if err != nil {
		return nil, errors.Join(err, system.Close())
	}
	return &guard{started, system}, s.hearRevocations(system)
}

// hearRevocations listens for revocations from other hosts, and stores them in the keys. [share.watchKeys] applies them
// shortly after.
func (s *share) hearRevocations(system bus.Bus) error {
	_, err := system.Subscribe(connections.RevokedSubject, func(_ string, data []byte) {
		if err := s.authority.AddRevocations(data); err != nil {
			s.log.Warn("cannot store the revocations of another host: the revoked credentials still work on this host", zap.Error(err))
		}
	})
	return err
}

// Close stops the guard and closes its connection.
func (g *guard) Close() error { return errors.Join(g.Guard.Close(), g.system.Close()) }

// startConnections starts the guard of the connections in a process that runs only the admission or one actor.
func startConnections(s *share) (*service, error) {
	actor := messages.Admission
	if s.options.Only != nil {
		actor = s.options.Only.Actor
	}
	return s.serving(actor, func(b bus.Bus) (io.Closer, error) { return startGuard(s, b) })
}
