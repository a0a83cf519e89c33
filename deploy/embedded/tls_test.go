package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

type certificates struct {
	*testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) *certificates {
	a := &certificates{T: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	a.key = a.newKey()
	a.write("ca.pem", "CERTIFICATE", a.sign(a.cert, &a.key.PublicKey))
	return a
}

func (a *certificates) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	return key
}

func (a *certificates) sign(c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key, a.key)
	if err != nil {
		a.Fatal(err)
	}
	return der
}

func (a *certificates) write(name, kind string, der []byte) string {
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.Fatal(err)
	}
	return file
}

// issue makes the certificate of a host. It is valid for the host's name, for loopback, and for further addresses.
func (a *certificates) issue(host string, also ...net.IP) *TLS {
	key := a.newKey()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		IPAddresses: append(also, net.IPv4(127, 0, 0, 1)), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey)
	return &TLS{Cert: a.write(host+".pem", "CERTIFICATE", cert), Key: a.write(host+".key", "PRIVATE KEY", der), CA: filepath.Join(a.dir, "ca.pem")}
}

// Three hosts with separate certificates must connect as one site over TLS. Nobody may connect without TLS.
func TestHostsOverTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newCertificates(t), t.TempDir()
	base := Default()
	base.Keys = filepath.Join(dir, "keys")
	if _, err := identity.Create(base.Keys, base.Site); err != nil {
		t.Fatal(err)
	}
	base.Hosts = ownAddresses(t)
	for _, h := range base.Hosts {
		ip, _, _ := net.SplitHostPort(h.Listen)
		ca.issue(h.Name, net.ParseIP(ip))
	}
	base.TLS = &TLS{Cert: filepath.Join(ca.dir, "{host}.pem"), Key: filepath.Join(ca.dir, "{host}.key"), CA: filepath.Join(ca.dir, "ca.pem")}
	sites := startHosts(t, base, dir)
	alice := connect(t, sites[2], "alice")
	if job := alice.final(alice.submit("k", twoStages(t.TempDir(), messages.Credit))); job.State != jobmsg.Completed {
		t.Errorf("the job ended %v", job.State)
	}
	plain := bus.Config{URL: "nats://" + base.Hosts[0].Listen, Name: "alice", CredsFile: sites[0].CredsFile("alice")}
	if b, err := bus.Connect(plain); err == nil {
		t.Error("a client without TLS could connect")
		_ = b.Close()
	}
	if err := sites.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A certificate that expires within an hour must be in the metrics and in the log.
func TestACertificateThatExpiresSoonIsTold(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.TLS = 1, newCertificates(t).issue("localhost")
	core, logs := observer.New(zap.WarnLevel)
	s, err := Start(within(t), c, Options{Metrics: true, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	await.Until(t, "the log has the certificate", func() bool {
		return logs.FilterMessageSnippet("the certificate of this host expires soon").Len() == 1
	})
	families, err := s.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "candor_certificate_left_seconds" {
			if left := f.GetMetric()[0].GetGauge().GetValue(); left <= 0 || left > 3600 {
				t.Errorf("%v seconds are left of an hour", left)
			}
			return
		}
	}
	t.Error("the metric is missing")
}

// The certificate of a replica that runs alone expires within a day. It must be in the metrics and in the log, with the
// command that makes a new one.
func TestACertificateOfAReplicaThatExpiresSoonIsTold(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	authority, url := alone(t, &c)
	only := Only{Actor: messages.Bank, Server: url, Certificate: filepath.Join(c.State, "replica.pem")}
	var err error
	if only.Creds, err = WriteCredentials(c.State, authority, identity.Service, messages.ServiceIdentity(messages.Bank)); err != nil {
		t.Fatal(err)
	}
	c.Hosts, c.Nodes, c.Replicas = ownAddresses(t), Default().Nodes, 0
	if err := internal(t, authority).WriteReplica(only.Certificate, messages.Bank, "host2", time.Now().AddDate(0, 0, 1-certificate.HostDays)); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	s, err := Start(within(t), c, Options{Host: "host2", Only: &only, Metrics: true, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	await.Until(t, "the log has the certificate", func() bool {
		return logs.FilterMessageSnippet("the certificate of this replica of the bank expires soon: issue a new one with candor site certify host2 --replica bank, and start this replica").Len() == 1
	})
	families, err := s.Gatherer().Gather()
	if err != nil || !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "candor_certificate_left_seconds" }) {
		t.Errorf("the metric is missing: %v", err)
	}
}

// A site whose certificate has expired does not start, and must say to check the clock, and how to get a new one.
func TestACertificateThatExpired(t *testing.T) {
	t.Parallel()
	c, dir, past := small(t.TempDir()), t.TempDir(), time.Now().AddDate(-3, 0, 0)
	authority, err := certificate.Create(dir, c.Site, past)
	if err == nil {
		err = authority.Issue("localhost", []string{"127.0.0.1"}, past)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.TLS = &TLS{Cert: filepath.Join(dir, "localhost.pem"), Key: filepath.Join(dir, "localhost.key"), CA: filepath.Join(dir, "ca.pem")}
	s, err := Start(within(t), c, Options{})
	if err == nil {
		closeSite(t, s)
	}
	if err == nil || !strings.Contains(err.Error(), "check the clock of this machine; if it is right") || !strings.Contains(err.Error(), "candor site certify") || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("the start says %v", err)
	}
}

// An agent that runs alone must connect with TLS without a certificate, even if the configured certificate files do not
// exist.
func TestClientsNeedNoCertificate(t *testing.T) {
	files := newCertificates(t).issue("rack1")
	files.Cert, files.Key = "nowhere", "nowhere"
	s := &share{config: Config{TLS: files}, metrics: newMetrics(false), options: Options{Only: &Only{Server: "tls://localhost:1"}}}
	if c, err := s.busConfig("node1"); err != nil || c.TLS == nil || len(c.TLS.Certificates) > 0 {
		t.Errorf("%+v, %v", c.TLS, err)
	}
}

// A site warns in the last tenth of a certificate's life, at most 30 days before its end. So a certificate of one day
// does not warn from its first minute.
func TestTheWarningOfACertificateFollowsItsLife(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for life, want := range map[time.Duration]time.Duration{day: day / 10, 90 * day: 9 * day, 300 * day: 30 * day, certificate.HostDays * day: 30 * day} {
		now := time.Now()
		if got := certificateNotice(&x509.Certificate{NotBefore: now, NotAfter: now.Add(life)}); got != want {
			t.Errorf("a certificate of %v warns %v before its end, want %v", life, got, want)
		}
	}
}
