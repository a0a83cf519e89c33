package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
)

// of puts the name of a host where the names of the files have "{host}".
func (t *TLS) of(host messages.Name) *TLS {
	if t == nil {
		return nil
	}
	file := func(name string) string { return strings.ReplaceAll(name, "{host}", host) }
	return &TLS{Cert: file(t.Cert), Key: file(t.Key), CA: file(t.CA)}
}

// load reads the files into a configuration for both ends of a connection:
// each proves itself to the other. The certificate of a host carries the
// host's name as a DNS name, by which the replicas know one another.
func (t *TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls: %s holds no certificate", t.CA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// secureServer has clients check the server's certificate, and the servers of
// a cluster each other's. Clients prove themselves by their credentials.
func secureServer(o *server.Options, t *TLS) error {
	if t == nil {
		return nil
	}
	both, err := t.load()
	if err != nil {
		return err
	}
	clients := both.Clone()
	clients.ClientAuth = tls.NoClientCert
	o.TLSConfig, o.TLSVerify = clients, false
	o.Cluster.TLSConfig = both
	return nil
}
