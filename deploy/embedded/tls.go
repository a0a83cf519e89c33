package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
)

// The method `of` returns a copy of t for one host: in the names of the files, "{host}" is replaced by the host's name.
func (t *TLS) of(host messages.Name) *TLS {
	if t == nil {
		return nil
	}
	file := func(name string) string { return strings.ReplaceAll(name, "{host}", host) }
	return &TLS{Cert: file(t.Cert), Key: file(t.Key), CA: file(t.CA)}
}

// load returns a TLS configuration for both ends of a connection. Each end must show a certificate.
func (t *TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	pool := x509.NewCertPool()
	if err := trust(pool, t.CA); err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// secureClients makes clients check the server's certificate. The server asks clients for no certificate, because they
// prove their identity by credentials.
func secureClients(o *server.Options, t *TLS) error {
	if t == nil {
		return nil
	}
	clients, err := t.load()
	if err != nil {
		return err
	}
	clients.ClientAuth = tls.NoClientCert
	o.TLSConfig, o.TLSVerify = clients, false
	return nil
}

// certificateNotice returns how long before the end of a certificate the site begins to warn. This is the last tenth of
// the certificate's life, and at most 30 days.
func certificateNotice(c *x509.Certificate) time.Duration {
	return min(30*24*time.Hour, c.NotAfter.Sub(c.NotBefore)/10)
}

// watchCertificate tells in metrics, and in the log, when a certificate expires. The process uses the certificate that
// it read at its start, also after the file was replaced. The text `whose` says who shows the certificate, for example
// "this host". The text `renew` names the command that makes a new one.
func (s *share) watchCertificate(t *tls.Config, whose, renew string) {
	left, notice := func() float64 { return math.Inf(1) }, time.Duration(0)
	if t != nil {
		c := t.Certificates[0].Leaf
		left, notice = func() float64 { return time.Until(c.NotAfter).Seconds() }, certificateNotice(c)
		often := max(time.Second, min(24*time.Hour, notice/2)) // at least once during the notice
		s.watchers.Go(func() {
			each(s.ctx, messages.Duration(often), func() {
				if left() < notice.Seconds() {
					s.log.Warn("the certificate of "+whose+" expires soon: issue a new one with "+renew+", and start "+whose+" again", zap.Time("expires", c.NotAfter))
				}
			})
		})
	}
	s.metrics.shared.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_certificate_left_seconds",
		Help: "Seconds until the certificate of this host, or of a replica that runs alone, expires. A host without a certificate has +Inf.",
	}, left), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "candor_certificate_notice_seconds",
		Help: "Seconds before the end of this certificate at which the site begins to warn: the last tenth of its life, at most 30 days.",
	}, notice.Seconds))
}

// replicaTLS returns the certificate that this host's replica shows to the other replicas. If this process has the
// site's keys, it makes the certificate from them. Otherwise it reads the certificate from a file, which was made on a
// host with the keys.
func (s *share) replicaTLS(actor string) (*tls.Config, error) {
	if only := s.options.Only; only != nil && only.Certificate != "" {
		return certificate.ReadReplica(only.Certificate, actor, s.host.Name, s.config.Site)
	}
	authority := s.authority
	if authority == nil {
		var err error
		if authority, err = identity.OpenFor(s.config.KeysDir(), s.config.Site); errors.Is(err, fs.ErrNotExist) {
			return nil, messages.Errorf(messages.Invalid,
				"this replica of the %s needs a certificate: name its file with --certificate (candor site certify %s --replica %s makes one), or set keys to the directory of the site's keys; %s has no keys",
				actor, s.host.Name, actor, s.config.KeysDir())
		} else if err != nil {
			return nil, err
		}
	}
	internal, err := authority.Internal()
	if err != nil {
		return nil, err
	}
	return internal.Replica(actor, s.host.Name), nil
}
