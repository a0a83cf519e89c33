package netlab

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
)

func (s *Site) tls() string { return filepath.Join(s.dir, "tls") }

// ca returns the file with the certificate of the site's authority.
func (s *Site) ca() string { return filepath.Join(s.tls(), certificate.CAFile) }

func (s *Site) scheme() string {
	if s.plan.TLS {
		return "tls"
	}
	return "nats"
}

// certify issues a certificate for each rack (host) of a site with TLS. The certificate is valid for the rack's own
// address. It is also valid for the addresses at the borders of all sites, because links to other sites begin there.
func (s *Site) certify() error {
	if !s.plan.TLS {
		return nil
	}
	authority, err := certificate.Create(s.tls(), s.Name, time.Now())
	if err != nil {
		return err
	}
	for _, h := range s.Racks {
		reached := []string{h.Address}
		for number := range s.lab.planned {
			reached = append(reached, s.lab.network.Border(number+1))
		}
		if err := authority.Issue(h.Name, reached, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// This method returns the TLS configuration with which clients check the site's servers.
func (s *Site) trusts() (*tls.Config, error) {
	pem, err := os.ReadFile(s.ca())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, messages.Errorf(messages.Invalid, "%s: holds no certificate", s.ca())
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, nil
}
