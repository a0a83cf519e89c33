package embedded

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/certificate"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/money"
)

// burglar is a Raft transport that does not belong to the group.
type burglar struct {
	net.Listener             // a listener that accepts no connection
	config       *tls.Config // nil: speaks plaintext
}

func (b burglar) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (b burglar) Close() error              { return nil }
func (b burglar) Addr() net.Addr            { return &net.TCPAddr{} }

func (b burglar) Dial(to raft.ServerAddress, within time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", string(to), within)
	if err != nil || b.config == nil {
		return c, err
	}
	return tls.Client(c, b.config), nil
}

// append sends entries to a replica's port, as a leader of the given term would.
func (b burglar) append(to string, term uint64) (answer raft.AppendEntriesResponse, err error) {
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: b, MaxPool: 1, Timeout: patience, Logger: hclog.NewNullLogger(), MsgpackUseNewTimeFormat: true})
	defer transport.Close()
	leader := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("host2"), Addr: []byte("host2")}
	request := raft.AppendEntriesRequest{RPCHeader: leader, Term: term,
		Entries: []*raft.Log{{Index: 1, Term: term, Type: raft.LogCommand, Data: []byte("a forged grant")}}, LeaderCommitIndex: 1}
	err = transport.AppendEntries("host1", raft.ServerAddress(to), &request, &answer)
	return answer, err
}

// selfSigned returns a certificate for the given names that no authority has signed. Anybody who has a key can make
// such a certificate.
func selfSigned(t *testing.T, key ed25519.PrivateKey, names ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func keyOf(t *testing.T, a *identity.Authority, role identity.Role, name messages.Name) ed25519.PrivateKey {
	t.Helper()
	creds, err := a.Credentials(role, name)
	if err != nil {
		t.Fatal(err)
	}
	_, seed, err := nkeys.DecodeSeed([]byte(creds.Seed))
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func hosted(t *testing.T) (Sites, *identity.Authority) {
	t.Helper()
	dir := t.TempDir()
	base := Default()
	base.Keys, base.Replicas, base.Hosts = filepath.Join(dir, "keys"), 0, ownAddresses(t)
	authority, err := identity.Create(base.Keys, base.Site)
	if err != nil {
		t.Fatal(err)
	}
	return startHosts(t, base, dir), authority
}

// startHosts starts a site of several hosts, with their state directories in dir.
func startHosts(t *testing.T, base Config, dir string, tune ...func(host int, o *Options)) Sites {
	t.Helper()
	sites := make(Sites, len(base.Hosts))
	var starts []func() error
	for i, h := range base.Hosts {
		c := base
		c.State = filepath.Join(dir, h.Name)
		ctx := within(t)
		starts = append(starts, func() (err error) {
			o := Options{Host: h.Name}
			for _, f := range tune {
				f(i, &o)
			}
			sites[i], err = Start(ctx, c, o)
			return err
		})
	}
	err := together(starts)
	// The other hosts are closed too. Otherwise they would continue to run in directories that the test removes.
	sites = slices.DeleteFunc(sites, func(s *Site) bool { return s == nil })
	t.Cleanup(func() { _ = sites.Close() })
	if err != nil {
		t.Fatal(err)
	}
	return sites
}

// internal returns the certificate authority of the ports that only the hosts of a site use.
func internal(t *testing.T, a *identity.Authority) *certificate.Internal {
	t.Helper()
	i, err := a.Internal()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// burglars returns TLS configurations of intruders, who try to connect to the port of an actor's replicas. The key of
// the map says whose key or certificate the intruder has.
func burglars(t *testing.T, a *identity.Authority, actor string) map[string]*tls.Config {
	t.Helper()
	name := "host2." + certificate.Group(actor, "west")
	ours := internal(t, a)
	holds := func(pairs ...tls.Certificate) *tls.Config { return &tls.Config{Certificates: pairs} }
	other, err := identity.Create(filepath.Join(t.TempDir(), "keys"), "west") // another site with the same name
	if err != nil {
		t.Fatal(err)
	}
	expired := filepath.Join(t.TempDir(), "expired.pem")
	if err := ours.WriteReplica(expired, actor, "host2", time.Now().AddDate(-3, 0, 0)); err != nil {
		t.Fatal(err)
	}
	late, err := certificate.ReadReplica(expired, actor, "host2", "west")
	if err != nil {
		t.Fatal(err)
	}
	host, err := newCertificates(t).issue("host2").load()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]string{messages.Bank: messages.Auctioneer, messages.Auctioneer: messages.Bank}[actor]
	all := map[string]*tls.Config{
		"anybody in plaintext":             nil,
		"anybody without a certificate":    {},
		"a user":                           holds(selfSigned(t, keyOf(t, a, identity.User, "alice"), name)),
		"an agent":                         holds(selfSigned(t, keyOf(t, a, identity.Node, "node1"), name)),
		"the other actor as a service":     holds(selfSigned(t, keyOf(t, a, identity.Service, messages.ServiceIdentity(elsewhere)), name)),
		"a host's certificate for clients": host,
		"a NATS server of the site":        ours.Server("host2"),
		"a replica of the other actor":     ours.Replica(elsewhere, "host2"),
		"a replica of no host":             ours.Replica(actor, "host9"),
		"a replica of another site":        internal(t, other).Replica(actor, "host2"),
		"a replica, expired":               late,
	}
	for _, c := range all {
		if c != nil {
			c.InsecureSkipVerify, c.VerifyConnection = true, nil // burglars do not check the other side
		}
	}
	return all
}

// TestForgedEntriesAreNotTaken sends entries to replicas with the keys of everybody who is not a replica. There must be
// no answer, no new term, no committed entry, and no change in the books. Then it sends the same entries with a
// replica's real certificate. Now there must be an answer: this shows that only the keys were wrong before.
func TestForgedEntriesAreNotTaken(t *testing.T) {
	t.Parallel()
	sites, authority := hosted(t)
	victim := sites[0]
	operator := connect(t, sites[1], "operator")
	before := request[money.BooksReply](operator, messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true})
	for actor, g := range map[string]*group{messages.Bank: victim.banks, messages.Auctioneer: victim.auctioneers} {
		term := g.statuses()[0].Term
		to := g.address(victim.host)
		for who, config := range burglars(t, authority, actor) {
			if answer, err := (burglar{config: config}).append(to, 1<<40); err == nil {
				t.Errorf("%s, %s: answered %+v", actor, who, answer)
			}
		}
		genuine := internal(t, authority).Replica(actor, "host2")
		genuine.ServerName = "host1." + certificate.Group(actor, "west")
		answer, err := (burglar{config: genuine}).append(to, 0)
		if err != nil || answer.Success || answer.Term < term || answer.Term >= 1<<40 {
			t.Errorf("%s: a replica of an old term is answered %+v, %v", actor, answer, err)
		}
		if now := g.statuses()[0].Term; now >= 1<<40 {
			t.Errorf("%s: the term was %d, and is %d", actor, term, now)
		}
	}
	after := request[money.BooksReply](operator, messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true})
	if !after.Balanced || after.Issued != before.Issued {
		t.Errorf("the books were %+v, and are %+v", before, after)
	}
}

// Only servers with the site's certificates may connect to the port between NATS servers.
func TestStrangersAreNoRoutes(t *testing.T) {
	t.Parallel()
	sites, authority := hosted(t)
	enter := func(c *tls.Config) error {
		conn, err := net.Dial("tcp", sites[0].host.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if c != nil {
			secure := tls.Client(conn, c)
			if err := secure.Handshake(); err != nil {
				return err
			}
			conn = secure
		}
		if _, err := io.WriteString(conn, "CONNECT {\"verbose\":false}\r\nPING\r\n"); err != nil {
			return err
		}
		info, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.HasPrefix(info, "INFO ") {
			t.Errorf("a server says %q", info)
		}
		return err
	}
	all := burglars(t, authority, messages.Bank)
	delete(all, "a NATS server of the site")
	all["a replica of the bank"] = internal(t, authority).Replica(messages.Bank, "host2")
	all["a replica of the bank"].InsecureSkipVerify = true
	for who, c := range all {
		if err := enter(c); err == nil {
			t.Errorf("%s is let in", who)
		}
	}
	if err := enter(internal(t, authority).Server("host2")); err != nil {
		t.Errorf("a server of the site is refused: %v", err)
	}
}

func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the files of process %d: %v, %v", pid, fds, err)
	}
	for _, fd := range fds {
		if target, _ := os.Readlink(fd); strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	const listens = "0A" // the state of a socket that listens
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == listens && own[f[9]] {
				addresses = append(addresses, f[1])
			}
		}
	}
	return addresses
}

// Without a configuration, a site has one process. It must listen only for NATS clients. It must have no port for
// replicas, at which a stranger could send forged log entries.
func TestSiteOfOneProcessHasOneDoor(t *testing.T) {
	t.Parallel()
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	c := &cluster{T: t, processes: map[messages.Name]*await.Process{}}
	p := await.Start(t, exec.Command(built, "up", "--listen", "127.0.0.1:0", "--state", state, "--log-level", "warn"), "is up")
	c.processes["site"] = p
	t.Cleanup(c.stopAll)
	c.awaitUp(p)
	info, err := ReadInfo(state)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(info.Server, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	want := "0100007F:" + strings.ToUpper(hex.EncodeToString([]byte{byte(n >> 8), byte(n)}))
	if got := listening(t, p.Process.Pid); len(got) != 1 || got[0] != want {
		t.Errorf("the site listens on %v, and was to listen on %s, port %s, alone", got, want, port)
	}
	if answer, err := (burglar{}).append("127.0.0.1:"+port, 1<<40); err == nil {
		t.Errorf("the port for clients answers a leader: %+v", answer)
	}
	if strings.Contains(p.Output.String(), "panic") {
		t.Error(p.Output)
	}
}

func TestNothingIsPlaintextBeyondLoopback(t *testing.T) {
	secured := func(c *Config) { c.TLS = &TLS{Cert: "c", Key: "k", CA: "a"} }
	plain := func(c *Config) { c.Plaintext = true }
	token := func(c *Config) { c.MetricsToken = "token" }
	public := func(c *Config) { c.MetricsPublic = true }
	all := func(more ...func(*Config)) []func(*Config) { return more }
	for _, tc := range []struct {
		listen, metrics string
		with            []func(*Config)
		refused         string // "": it is not
	}{
		{"127.0.0.1:1", "127.0.0.1:2", nil, ""},
		{"[::1]:1", "localhost:2", nil, ""},
		{"10.0.0.1:1", "", nil, "plaintext: true"},
		{"0.0.0.0:1", "", nil, "set tls"},
		{"[::]:1", "", nil, "set tls"},
		{"west.example:1", "", nil, "set tls"},
		{"10.0.0.1:1", "", all(secured), ""},
		{"10.0.0.1:1", "", all(plain), ""},
		{"127.0.0.1:1", "10.0.0.1:2", nil, "metrics_public: true"},
		{"127.0.0.1:1", "10.0.0.1:2", all(plain), "metrics_token"},
		{"127.0.0.1:1", "10.0.0.1:2", all(token), "could read the token"},
		{"127.0.0.1:1", "10.0.0.1:2", all(secured), "metrics_token"},
		{"127.0.0.1:1", "10.0.0.1:2", all(secured, token), ""},
		{"127.0.0.1:1", "10.0.0.1:2", all(public), ""},
	} {
		c := valid()
		c.Listen, c.Metrics = tc.listen, tc.metrics
		for _, change := range tc.with {
			change(&c)
		}
		err := c.Validate()
		if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
			t.Errorf("listen %s, metrics %s: %v; want %q", tc.listen, tc.metrics, err, tc.refused)
		}
	}
	c := valid()
	c.Hosts = three()
	for i := range c.Hosts {
		c.Hosts[i].Cluster, c.Hosts[i].Auctioneer, c.Hosts[i].Bank = fmt.Sprint("10.0.0.", i, ":1"), fmt.Sprint("10.0.0.", i, ":2"), fmt.Sprint("10.0.0.", i, ":3")
	}
	if err := c.Validate(); err != nil {
		t.Errorf("ports between hosts, which are always TLS: %v", err)
	}
}

// The token's file must not be readable for everybody, and must contain a token.
func TestTokenOfTheMetrics(t *testing.T) {
	c := valid()
	c.Metrics, c.MetricsToken = "127.0.0.1:0", filepath.Join(t.TempDir(), "token")
	for _, tc := range []struct {
		text string
		mode os.FileMode
		kind messages.Kind // messages.Internal stands for no error
	}{
		{strings.Repeat("a", 24) + "\n", 0o600, messages.Internal},
		{strings.Repeat("a", 24), 0o640, messages.Internal},
		{strings.Repeat("a", 24), 0o644, messages.PermissionDenied},
		{"short", 0o600, messages.Invalid},
		{"two words, though both are long enough", 0o600, messages.Invalid},
	} {
		_ = os.Remove(c.MetricsToken)
		if err := os.WriteFile(c.MetricsToken, []byte(tc.text), tc.mode); err != nil {
			t.Fatal(err)
		}
		if d, err := c.MetricsDoor(""); messages.KindOf(err) != tc.kind || tc.kind == messages.Internal && d.Token != strings.Repeat("a", 24) {
			t.Errorf("%q, mode %o: %+v, %v", tc.text, tc.mode, d, err)
		}
	}
	c.MetricsToken += "-gone"
	if _, err := c.MetricsDoor(""); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no file: %v", err)
	}
	c.TLS, c.Metrics, c.MetricsToken = newCertificates(t).issue("localhost"), "0.0.0.0:0", ""
	if d, err := c.MetricsDoor(""); err != nil || d.TLS == nil {
		t.Errorf("beyond loopback: %+v, %v", d, err)
	}
}

// A site that listens at all addresses must be reachable over loopback, also for commands on its machine.
func TestASiteListensAtAllAddresses(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.TLS, c.Listen = newCertificates(t).issue("localhost"), "0.0.0.0:0"
	s, err := Start(within(t), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	connect(t, s, "alice").runs("at all addresses")
}
