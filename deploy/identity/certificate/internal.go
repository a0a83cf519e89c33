package certificate

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// InternalHours is the validity, in hours, of a certificate that a host makes for itself. It is renewed after half of
// this time.
const InternalHours = 72

// Internal is the authority for the connections between the hosts of a site: Raft, and the cluster of NATS servers. The
// authority is derived from the site's keys. So every host that has these keys makes its own certificates when it
// starts. For these connections, a host accepts no certificate that another authority has signed.
type Internal struct {
	site messages.Name
	cert *x509.Certificate
	key  ed25519.PrivateKey
	pool *x509.CertPool
}

// NewInternal derives the authority from a secret of the site.
func NewInternal(site messages.Name, secret [ed25519.SeedSize]byte) (*Internal, error) {
	key := ed25519.NewKeyFromSeed(secret[:])
	// Every host must compute the same bytes. So the serial number, the times and the signature must not be random.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{Organization: []string{"Candor site " + site}, CommonName: "hosts of " + site},
		IsCA:         true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("authority of the hosts of %s: %w", site, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("authority of the hosts of %s: %w", site, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &Internal{site: site, cert: cert, key: key, pool: pool}, nil
}

// Group returns a name that is in the certificates of one part of the site, on every host, such as "bank.west.candor".
// The part is the bank, the auctioneer, or the NATS servers.
func Group(part string, site messages.Name) string { return part + "." + site + ".candor" }

// issue makes a certificate for DNS names, valid from a day before now.
func (i *Internal) issue(now, end time.Time, names ...string) (tls.Certificate, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate of %s: %w", names[0], err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate of %s: %w", names[0], err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: i.cert.Subject.Organization}, DNSNames: names,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-early), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, public, i.key)
	if err != nil {
		return tls.Certificate{}, messages.Errorf(messages.Invalid, "certificate of %s: %v", names[0], err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Replica returns the TLS configuration of both ends of a replica's connections, with a certificate for exactly this
// host's replica of this actor.
func (i *Internal) Replica(actor string, host messages.Name) *tls.Config {
	return i.both(&renewed{authority: i, names: []string{host + "." + Group(actor, i.site)}, now: time.Now})
}

// serverPart is the name of the NATS servers in internal certificates.
const serverPart = "nats"

// Server returns a TLS configuration for the connections between the site's NATS servers. Both servers of such a
// connection use it, and accept each other.
func (i *Internal) Server(host messages.Name) *tls.Config {
	group := Group(serverPart, i.site)
	c := i.both(&renewed{authority: i, names: []string{host + "." + group, group}, now: time.Now})
	c.ServerName = group
	c.VerifyConnection = func(s tls.ConnectionState) error { return s.PeerCertificates[0].VerifyHostname(group) }
	return c
}

func (i *Internal) both(r *renewed) *tls.Config {
	c := trusting(i.pool)
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.get() }
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return r.get() }
	return c
}

// trusting returns a configuration for both ends of a connection. The other end must show a certificate that an
// authority in pool has signed.
func trusting(pool *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
}

type renewed struct {
	authority *Internal
	names     []string
	now       func() time.Time

	mu   sync.Mutex
	made time.Time
	cert *tls.Certificate
}

func (r *renewed) get() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	const good = InternalHours * time.Hour
	if age := now.Sub(r.made); r.cert != nil && age >= 0 && age < good/2 {
		return r.cert, nil
	}
	cert, err := r.authority.issue(now, now.Add(good), r.names...)
	if err != nil {
		return nil, err
	}
	r.made, r.cert = now, &cert
	return r.cert, nil
}

// WriteReplica writes the certificate of a replica that runs alone, on a host without the site's keys. With this one
// file, the replica proves its identity and checks the other replicas. Only its owner can read it. It is valid for
// HostDays.
func (i *Internal) WriteReplica(file, actor string, host messages.Name, now time.Time) error {
	if !messages.ValidName(host) {
		return messages.Errorf(messages.Invalid, "host %q: is not the name of a host; write a name like rack1, with lower-case letters, digits and hyphens", host)
	}
	cert, err := i.issue(now, now.AddDate(0, 0, HostDays), host+"."+Group(actor, i.site))
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", host, err)
	}
	return writePEMs(file, 0o600, pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		pem.Block{Type: "PRIVATE KEY", Bytes: key}, pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw})
}

// ReadReplica reads a file that WriteReplica wrote, for the named replica.
func ReadReplica(file, actor string, host, site messages.Name) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificate of a replica: %w", err)
	}
	// The file has the replica's certificate, the authority's certificate and the replica's key.
	pair, err := tls.X509KeyPair(text, text)
	if err != nil || len(pair.Certificate) != 2 {
		return nil, messages.Errorf(messages.Invalid, "%s: is not the certificate of a replica; make one with `candor site certify --replica`", file)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if name := host + "." + Group(actor, site); !slices.Equal(leaf.DNSNames, []string{name}) {
		return nil, messages.Errorf(messages.Invalid, "%s: is a certificate for %v, and this replica needs one for %s", file, leaf.DNSNames, name)
	}
	authority, err := x509.ParseCertificate(pair.Certificate[1])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	c := trusting(pool)
	pair.Certificate = pair.Certificate[:1]
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
