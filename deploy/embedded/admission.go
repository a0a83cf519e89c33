package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"

	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// startAdmission starts the admission of this process. On a site of several hosts, each host has an admission service,
// and any of them can answer.
func startAdmission(s *share) (*service, error) {
	ca, err := s.config.TLS.Authority()
	if err != nil {
		return nil, err
	}
	return s.serving(messages.Admission, func(b bus.Bus) (io.Closer, error) {
		return admission.Start(admission.Config{
			Site: s.config.Site, Bus: b, Issuer: s.authority, Operators: s.config.Operators,
			Servers: s.servers(), CA: ca, Log: s.log.Named(messages.Admission), Metrics: s.metrics.shared,
		})
	})
}

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

// Authority returns the certificate that clients need to check the site's servers, as PEM text. Without TLS, it returns
// "".
func (t *TLS) Authority() (string, error) {
	if t == nil {
		return "", nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "tls.ca: %v", err)
	}
	return string(pem), nil
}

// Client returns the TLS configuration with which a client checks the site's servers. Without TLS, it returns nil.
func (t *TLS) Client() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	return c, trust(c.RootCAs, t.CA)
}
