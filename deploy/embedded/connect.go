package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Connect connects to the site as a user or operator, with credentials for this name only.
func (s *share) Connect(account messages.Name) (bus.Bus, error) {
	file := s.CredsFile(account)
	if _, err := os.Stat(file); err != nil {
		return nil, messages.Errorf(messages.NotFound, "account %q: has no credentials in %s; add the account to the configuration, or make credentials with candor user add", account, s.config.State)
	}
	c, err := s.busConfig(account)
	if err != nil {
		return nil, err
	}
	c.CredsFile = file
	return bus.Connect(c)
}

// While a part of the site cannot connect to its server, it tries again and again. connectEvery is the time between two
// tries. connectSays is the time between two log messages about this.
const (
	connectEvery = 100 * time.Millisecond
	connectSays  = 5 * time.Second
)

// connect connects a part of the site, such as the bank, to the NATS server. If this fails, it tries again, until the
// server stops or the start has taken too long. If the certificate is wrong, it returns the error at once, because a
// later attempt would fail too.
func (s *share) connect(c bus.Config) (b bus.Bus, err error) {
	says := time.Now().Add(connectSays)
	err = again(s.patience, connectEvery, func() (more bool, err error) {
		if b, err = bus.Connect(c); err == nil {
			return false, nil
		}
		_, unproven := errors.AsType[*tls.CertificateVerificationError](err)
		more = messages.KindOf(err) == messages.Unavailable && !unproven && s.server != nil && s.server.Running()
		if more && time.Now().After(says) {
			says = time.Now().Add(connectSays)
			s.log.Warn("waiting for a connection to the NATS server of this process", zap.String("as", c.Name), zap.Error(err))
		}
		return more, err
	})
	if _, unproven := errors.AsType[*tls.CertificateVerificationError](err); unproven {
		clock := ""
		if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
			clock = "check the clock of this machine; if it is right, "
		}
		err = fmt.Errorf("a part of the site does not accept the certificate of a server of the site: %scheck the files that \"tls:\" of the configuration names, or issue a new certificate with candor site certify, or with the authority of your own that signed it (%w)", clock, err)
	}
	return b, err
}

// connectAs connects a part of the site with newly made credentials for a role and a name.
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
	// If the server is in this process, the part connects to it without a socket, because a process may have thousands
	// of agents. There is one exception: an agent of a site with several hosts needs a socket. Only a connection over a
	// socket can change to another server.
	if s.server != nil && s.config.TLS == nil && (role != identity.Node || len(s.config.Hosts) < 2) {
		c.InProcess = s.server
	}
	b, err := s.connect(c)
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
	var err error // clients prove their identity by credentials, so an agent needs no certificate
	c.TLS, err = s.config.TLS.Client()
	return c, err
}
