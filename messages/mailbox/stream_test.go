package mailbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
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

func (a *authority) issue(names ...string) *tls.Config {
	return a.issueUntil(time.Now().Add(time.Hour), names...)
}

func (a *authority) issueUntil(end time.Time, names ...string) *tls.Config {
	key := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: end, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: a.pool, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
}

func TestGroupOverTLS(t *testing.T) {
	t.Parallel()
	g := newSecureGroup(t, 3, nil)
	g.start(g.ids...)
	checkResults(t, g, 10, 10)
	g.agree(100)
}

func openSecure(t *testing.T) (*stream, *authority) {
	t.Helper()
	g := newSecureGroup(t, 2, nil)
	g.config("r2") // this call gives r2 an address, so that the group knows r2
	c := g.config("r1")
	s, err := openStream(c.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, g.issuer
}

func TestStrangersAreNotLetIn(t *testing.T) {
	t.Parallel()
	s, a := openSecure(t)
	for name, caller := range map[string]struct {
		config *tls.Config
		in     bool
	}{
		"of the group": {a.issue("r2.bank.west"), true},
		"of the same authority, not of the group":   {a.issue("mallory.bank.west"), false},
		"of the other group, under the same ID":     {a.issue("r2.auctioneer.west"), false},
		"a host's certificate with the bare ID":     {a.issue("r2"), false},
		"for two replicas at once":                  {a.issue("r2.bank.west", "r2.auctioneer.west"), false},
		"for the group, and no replica":             {a.issue("bank.west"), false},
		"of the group, expired":                     {a.issueUntil(time.Now().Add(-time.Minute), "r2.bank.west"), false},
		"of another authority":                      {newAuthority(t).issue("r2.bank.west"), false},
		"without a certificate":                     {&tls.Config{}, false},
		"of the group, by a version before TLS 1.3": {older(a.issue("r2.bank.west")), false},
	} {
		caller.config.RootCAs, caller.config.ServerName = a.pool, "r1.bank.west"
		if in := letIn(t, s, caller.config); in != caller.in {
			t.Errorf("a caller %s: let in is %v", name, in)
		}
	}
	eventually(t, "every refusal is counted", func() bool { return s.refusedTotal.Load() == 9 })
	if _, err := tls.Dial("tcp", s.listener.Addr().String(), &tls.Config{RootCAs: a.pool, ServerName: "r2.bank.west"}); err == nil {
		t.Error("r1 passed for r2")
	}
}

func older(c *tls.Config) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	return c
}

func (s *stream) known() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// The server lists its connections. If it refuses a connection, for example of a port scanner, it must remove this
// connection from the list.
func TestRefusedConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	s, a := openSecure(t)
	stranger := newAuthority(t).issue("r2.bank.west")
	stranger.RootCAs, stranger.ServerName = a.pool, "r1.bank.west"
	for range 20 {
		if letIn(t, s, stranger) {
			t.Fatal("a stranger is let in")
		}
	}
	eventually(t, "refused connections are forgotten", func() bool { return s.known() == 0 })
}

// If there are too many silent connections, the oldest of them must be closed. A replica must be let in at once.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s, a := openSecure(t)
	for range 2 * maxHandshakes {
		c, err := net.Dial("tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	replica := a.issue("r2.bank.west")
	replica.ServerName = "r1.bank.west"
	if !letIn(t, s, replica) {
		t.Error("a replica is kept out")
	}
	eventually(t, "the silent are bounded", func() bool { return s.known() <= maxHandshakesFrom })
}

type addressed struct {
	net.Conn
	from   string
	closed bool
}

func (c *addressed) RemoteAddr() net.Addr { return idAddr(c.from + ":7") }
func (c *addressed) Close() error         { c.closed = true; return nil }

// There are two limits: one for the connections from an address, and one for all connections. If a new connection
// exceeds the first limit, the oldest connection from its address must be closed. If it exceeds only the second limit,
// the oldest of all connections must be closed.
func TestEachAddressMakesRoomForItself(t *testing.T) {
	g := new(handshakes)
	replica := &addressed{from: "10.0.0.2"}
	g.begin(replica)
	var flood []*addressed
	for range 3 * maxHandshakes {
		flood = append(flood, &addressed{from: "10.0.0.9"})
		g.begin(flood[len(flood)-1])
	}
	if replica.closed || len(g.open) != 1+maxHandshakesFrom {
		t.Errorf("the replica is closed: %v; %d greet", replica.closed, len(g.open))
	}
	if oldest, newest := flood[0].closed, flood[len(flood)-1].closed; !oldest || newest {
		t.Errorf("of the flood the oldest is closed: %v, the newest: %v", oldest, newest)
	}
	for i := range maxHandshakes {
		g.begin(&addressed{from: fmt.Sprintf("10.1.0.%d", i)})
	}
	if !replica.closed || len(g.open) != maxHandshakes {
		t.Errorf("the oldest is closed: %v; %d greet", replica.closed, len(g.open))
	}
	last := g.open[len(g.open)-1]
	g.end(last)
	if len(g.open) != maxHandshakes-1 || last.(*addressed).closed {
		t.Error("an ended greeting is held, or closed")
	}
}

// letIn makes a connection, and reports whether the stream accepts it.
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
	t.Parallel()
	for name, g := range map[string]*group{"in memory": newGroup(t, 1, nil), "over TCP": newSecureGroup(t, 1, nil)} {
		t.Run(name, func(t *testing.T) { cutsEveryConnection(t, g) })
	}
}

func cutsEveryConnection(t *testing.T, g *group) {
	c := g.config("r1")
	s, err := openStream(c.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := s.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	client, err := s.Dial("r1", patience)
	if err != nil {
		t.Fatal(err)
	}
	server := <-accepted
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

// A second replica with the same ID must be refused until the first has stopped.
func TestReplicaRunsOnceInAProcess(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	c := g.config("r1")
	first, err := openStream(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStream(&c); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a second one: %v", err)
	}
	if _, err := first.Dial("r1", time.Millisecond); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("a replica that does not accept: %v", err)
	}
	if n := first.known(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openStream(&c)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// TestGroupMovesIntoMemory takes the log of replicas that communicated over ports. Replicas in one process must be able
// to continue with it, because the log names replicas only by their IDs.
func TestGroupMovesIntoMemory(t *testing.T) {
	t.Parallel()
	g := newSecureGroup(t, 3, nil)
	g.start(g.ids...)
	g.propose("over TCP")
	g.stop(g.ids...)
	g.issuer = nil
	g.start(g.ids...)
	g.propose("in memory")
	g.agree(2)
}
