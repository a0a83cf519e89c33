package embedded

import (
	"fmt"
	"os"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Connect connects a user or operator of the site, under the name's own
// credentials and no others.
func (s *share) Connect(account messages.Name) (bus.Bus, error) {
	file := s.CredsFile(account)
	if _, err := os.Stat(file); err != nil {
		return nil, messages.Errorf(messages.NotFound, "account %q: has no credentials in %s; add it to the configuration or with candor user add", account, s.config.State)
	}
	c, err := s.busConfig(account)
	if err != nil {
		return nil, err
	}
	c.CredsFile = file
	return bus.Connect(c)
}

// connectTries is how often a part of the site tries to connect to its server.
const connectTries = 5

// connectAs connects a part of the site itself, under credentials made for it.
func (s *share) connectAs(role identity.Role, name messages.Name) (bus.Bus, error) {
	c, err := s.busConfig(name)
	if err != nil {
		return nil, err
	}
	if only := s.options.Only; only != nil {
		c.CredsFile, c.Retry = only.Creds, true
	} else {
		c.Renew = s.renewing(role, name)
	}
	if s.server != nil && s.config.TLS == nil {
		c.InProcess = s.server // no socket: a process may host thousands of agents
	}
	b, err := bus.Connect(c)
	for tries := 1; messages.KindOf(err) == messages.Unavailable && tries < connectTries; tries++ {
		b, err = bus.Connect(c) // the server is there, but may be busy with thousands of others
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", role, name, err)
	}
	return b, nil
}

func (s *share) busConfig(name messages.Name) (bus.Config, error) {
	c := bus.Config{URL: s.URL(), Name: name, Log: s.log, Metrics: s.metrics.counter, StreamReplicas: 1}
	if len(s.config.Hosts) > 1 {
		c.StreamReplicas = min(len(s.config.Hosts), 3)
	}
	var err error // clients prove themselves by credentials, so that an agent alone has no certificate
	c.TLS, err = s.config.TLS.Client()
	return c, err
}
