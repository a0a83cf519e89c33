package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/messages"
)

// startAdmission starts the admission of this process, which has the site's keys.
// With hosts each has one, and any of them answers.
func startAdmission(s *share) (*service, error) {
	ca, err := s.config.TLS.authority()
	if err != nil {
		return nil, err
	}
	b, err := s.connectAs(identity.Service, messages.ServiceIdentity(messages.Admission))
	if err != nil {
		return nil, err
	}
	started, err := admission.Start(admission.Config{
		Site: s.config.Site, Bus: b, Issuer: s.authority, Operators: s.config.Operators,
		Servers: s.servers(), CA: ca, Log: s.log.Named(messages.Admission), Metrics: s.metrics.shared,
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &service{started, b}, nil
}

// servers are the addresses of all hosts for clients.
func (s *share) servers() []string {
	if s.host == nil {
		return []string{s.URL()}
	}
	var urls []string
	for i := range s.config.Hosts {
		urls = append(urls, "nats://"+s.config.Hosts[i].Listen)
	}
	return urls
}

// authority is the PEM that vouches for the site's servers; "" without TLS.
func (t *TLS) authority() (string, error) {
	if t == nil {
		return "", nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return "", fmt.Errorf("tls: %w", err)
	}
	return string(pem), nil
}

// Client is what a client needs to check the site's servers; nil without TLS.
func (t *TLS) Client() (*tls.Config, error) {
	pem, err := t.authority()
	if pem == "" || err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	if !c.RootCAs.AppendCertsFromPEM([]byte(pem)) {
		return nil, fmt.Errorf("tls: %s holds no certificate", t.CA)
	}
	return c, nil
}
