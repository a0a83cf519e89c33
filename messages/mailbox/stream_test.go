package mailbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// issue returns a configuration for both directions, for a replica's name.
func (a *authority) issue(name string) *tls.Config {
	key := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: a.pool, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func TestGroupOverTLS(t *testing.T) {
	a := newAuthority(t)
	g := newGroup(t, 3, func(c *Config) { c.TLS = a.issue(c.ID) })
	g.start(g.ids...)
	checkResults(t, g, 10, 10)
	g.agree(100)
}

func TestStrangersAreNotLetIn(t *testing.T) {
	a := newAuthority(t)
	g := newGroup(t, 2, func(c *Config) { c.TLS = a.issue(c.ID) })
	g.config("r2") // gives it an address, so that it is known
	c := g.config("r1")
	s, err := openStream(c.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for name, caller := range map[string]struct {
		config *tls.Config
		in     bool
	}{
		"of the group": {a.issue("r2"), true},
		"of the same authority, not of the group": {a.issue("mallory"), false},
		"of another authority":                    {newAuthority(t).issue("r2"), false},
		"without a certificate":                   {&tls.Config{}, false},
	} {
		caller.config.RootCAs, caller.config.ServerName = a.pool, "r1"
		if in := letIn(t, s, caller.config); in != caller.in {
			t.Errorf("a caller %s: let in is %v", name, in)
		}
	}
	if _, err := tls.Dial("tcp", s.listener.Addr().String(), &tls.Config{RootCAs: a.pool, ServerName: "r2"}); err == nil {
		t.Error("r1 passed for r2")
	}
}

// letIn connects, and says whether the stream accepts the connection or hangs up.
func letIn(t *testing.T, s *stream, c *tls.Config) bool {
	t.Helper()
	conn, err := tls.Dial("tcp", s.listener.Addr().String(), c)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	hungUp := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1))
		close(hungUp)
	}()
	select {
	case accepted := <-s.accepted:
		return accepted.Close() == nil
	case <-hungUp:
		return false
	case <-time.After(patience):
		t.Fatal("neither accepted nor refused")
		return false
	}
}

func TestStreamCutsEveryConnection(t *testing.T) {
	g := newGroup(t, 1, nil)
	c := g.config("r1")
	s, err := openStream(c.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	client, err := s.Dial("r1", patience)
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr().String() != "r1" {
		t.Errorf("Raft is told the address %s", s.Addr())
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for name, conn := range map[string]net.Conn{"dialled": client, "accepted": server} {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("the %s connection lives", name)
		}
	}
	if _, err := s.Accept(); err == nil {
		t.Error("accepted after close")
	}
	if _, err := s.Dial("r1", patience); err == nil {
		t.Error("dialled after close")
	}
	if _, err := s.Dial("unknown", patience); err == nil {
		t.Error("dialled a replica that is not known")
	}
}
