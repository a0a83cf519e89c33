package nats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
)

const patience = await.Patience

// place is the directory with the files and keys of a site's servers.
type place struct {
	*testing.T
	name messages.Name
	dir  string
	keys string
}

func newPlace(t *testing.T, name messages.Name) *place {
	t.Helper()
	p := &place{T: t, name: name, dir: t.TempDir()}
	p.keys = filepath.Join(p.dir, "keys")
	if _, err := identity.Create(p.keys, name); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) write(file string, text []byte) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, file), text, 0o600); err != nil {
		p.Fatal(err)
	}
}

// settle copies the configurations into the directory of the place. In the copies, it replaces the usual directories by
// directories of the test, and the ports by free ports. It also replaces the texts that the argument `replace` lists.
func (p *place) settle(replace []string, peers ...messages.Name) {
	p.Helper()
	accounts, err := Accounts(p.keys, peers...)
	if err != nil {
		p.Fatal(err)
	}
	p.write("accounts.conf", accounts)
	files, err := filepath.Glob("*.conf")
	if err != nil || len(files) < 6 {
		p.Fatalf("configurations %v: %v", files, err)
	}
	usual := []string{"/etc/candor/nats", p.dir, "/var/lib/candor", p.dir}
	for _, port := range []string{"4222", "6222", "7222", "7422"} {
		usual = append(usual, `"0.0.0.0:`+port+`"`, `"127.0.0.1:-1"`)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			p.Fatal(err)
		}
		p.write(f, []byte(strings.NewReplacer(append(replace, usual...)...).Replace(string(text))))
	}
}

// certify gives each place a self-signed certificate, which all places trust.
func certify(t *testing.T, places ...*place) {
	t.Helper()
	var all []byte
	for i, p := range places {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: p.name}, IsCA: true, BasicConstraintsValid: true,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		p.write("host.pem", cert)
		p.write("host.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
		all = append(all, cert...)
	}
	for _, p := range places {
		p.write("ca.pem", all)
		p.write("peers.pem", all)
	}
}

// check reads a configuration file, as the command "nats-server -t" does, but starts no server. A warning counts as an
// error.
func (p *place) check(file string) *server.Options {
	p.Helper()
	o := &server.Options{CheckConfig: true}
	if err := o.ProcessConfigFile(filepath.Join(p.dir, file)); err != nil {
		p.Fatalf("%s: %v", file, err)
	}
	return o
}

// run starts a server with a configuration. It returns the options with the ports that the server uses.
func (p *place) run(file string) (*server.Server, *server.Options) {
	p.Helper()
	o := p.check(file)
	o.CheckConfig, o.NoSigs = false, true
	return natstest.Run(p, o), o
}

func (p *place) connect(s *server.Server, role identity.Role, name messages.Name) *nats.Conn {
	p.Helper()
	authority, err := identity.Open(p.keys)
	if err != nil {
		p.Fatal(err)
	}
	creds, err := authority.Issue(role, name)
	if err != nil {
		p.Fatal(err)
	}
	file := filepath.Join(p.TempDir(), "creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		p.Fatal(err)
	}
	conn, err := nats.Connect(s.ClientURL(), nats.UserCredentials(file), nats.CustomInboxPrefix(messages.InboxPrefix(name)),
		nats.RootCAs(filepath.Join(p.dir, "ca.pem")))
	if err != nil {
		p.Fatalf("%s as %s: %v", p.name, name, err)
	}
	p.Cleanup(conn.Close)
	return conn
}

// insider connects with the key of the site's account, which allows everything there.
func (p *place) insider(s *server.Server) *nats.Conn {
	p.Helper()
	creds := natstest.Insider(p, s, p.keys, "west")
	conn, err := nats.Connect(s.ClientURL(), nats.UserCredentialBytes(creds), nats.RootCAs(filepath.Join(p.dir, "ca.pem")))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(conn.Close)
	return conn
}

// The NATS server must find no fault in the configurations of this directory.
func TestConfigurations(t *testing.T) {
	t.Setenv("CANDOR_HOST", "rack1")
	west, east := newPlace(t, "west"), newPlace(t, "east")
	certify(t, west, east)
	west.settle(nil, "east")
	account, err := PeerAccount(west.keys, "east")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CANDOR_PEER", account)
	creds, err := PeerCredentials(east.keys, "west")
	if err != nil {
		t.Fatal(err)
	}
	west.write("peer.creds", creds)
	for _, file := range []string{"site.conf", "cluster.conf", "hub.conf", "leaf.conf", "gateway.conf"} {
		o := west.check(file)
		if o.TLSConfig == nil || o.MaxPayload != 8<<20 || !o.JetStream || !o.SyncAlways || o.AuthTimeout != 10 || len(o.TrustedOperators) != 2 {
			t.Errorf("%s: TLS %v, payload %d, JetStream %v, synced %v, time to identify %v, %d operators", file,
				o.TLSConfig != nil, o.MaxPayload, o.JetStream, o.SyncAlways, o.AuthTimeout, len(o.TrustedOperators))
		}
		if _, err := server.NewServer(o); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	west.write("wrong.conf", []byte("include site.conf\nping_intervall: \"10s\"\n"))
	if err := (&server.Options{}).ProcessConfigFile(filepath.Join(west.dir, "wrong.conf")); err == nil {
		t.Error("a misspelt option passes")
	}
}

// A NATS server with the configuration of the site must accept credentials that were signed with the site's keys.
func TestOneSite(t *testing.T) {
	t.Setenv("CANDOR_HOST", "rack1")
	west := newPlace(t, "west")
	certify(t, west)
	west.settle(nil)
	s, _ := west.run("site.conf")
	bank := west.connect(s, identity.Service, "$bank")
	answer(t, bank, "candor.west.bank.account.*")
	if err := ask(west.connect(s, identity.User, "alice"), "candor.west.bank.account.alice"); err != nil {
		t.Errorf("alice cannot ask the bank: %v", err)
	}
}

func answer(t *testing.T, conn *nats.Conn, subject string) {
	t.Helper()
	if _, err := conn.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(m.Subject)) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

func ask(conn *nats.Conn, subject string) error {
	reply, err := conn.Request(subject, nil, patience)
	if err != nil {
		return err
	}
	if string(reply.Data) != subject {
		return fmt.Errorf("the answer is of %s", reply.Data)
	}
	return nil
}

func link(t *testing.T) (west, east *place, hub, leaf *server.Server) {
	var listening *server.Options
	west, east = newPlace(t, "west"), newPlace(t, "east")
	certify(t, west, east)
	west.settle(nil, "east")
	t.Setenv("CANDOR_HOST", "west1")
	hub, listening = west.run("hub.conf")
	account, err := PeerAccount(east.keys, "west")
	if err != nil {
		t.Fatal(err)
	}
	creds, err := PeerCredentials(west.keys, "east")
	if err != nil {
		t.Fatal(err)
	}
	east.write("peer.creds", creds)
	t.Setenv("CANDOR_HOST", "east1")
	t.Setenv("CANDOR_PEER", account)
	east.settle([]string{"hub.west.example:7422", fmt.Sprintf("127.0.0.1:%d", listening.LeafNode.Port)}, "west")
	leaf, _ = east.run("leaf.conf")
	return west, east, hub, leaf
}

// Two sites of different owners are linked. Their services must be able to send each other the requests that exist
// between sites. Nobody else may send over the link, and no other request may pass.
func TestLeafs(t *testing.T) {
	west, east, hub, leaf := link(t)
	atWest, atEast := west.connect(hub, identity.Service, "$bank"), east.connect(leaf, identity.Service, "$bank")
	answer(t, atWest, "candor.west.bank.transfer.*")
	answer(t, atWest, "candor.west.auctioneer.submit.*")
	for _, verb := range clearing.PeerVerbs() {
		answer(t, atWest, messages.Subject("west", verb.Actor, verb.Verb, "*"))
		answer(t, atEast, messages.Subject("east", verb.Actor, verb.Verb, "*"))
	}
	for _, verb := range clearing.PeerVerbs() {
		if err := eventually(atEast, verb.Subject("east", "west")); err != nil {
			t.Errorf("east asks west %+v: %v", verb, err)
		}
		if err := eventually(atWest, verb.Subject("west", "east")); err != nil {
			t.Errorf("west asks east %+v: %v", verb, err)
		}
	}
	insider := east.insider(leaf)
	for _, subject := range []string{
		"candor.west.bank.instruct.$north", // the name of another peer
		"candor.west.bank.transfer.$east",  // another verb
		"candor.west.bank.instruct.alice",  // the name of a user
		"candor.west.auctioneer.submit.alice",
	} {
		if err := ask(insider, subject); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("east asks west %s: %v, want nobody to be there", subject, err)
		}
	}
}

// eventually repeats a request while NATS reports that nobody serves its subject. It takes some time until the server
// at this end of the link knows the subscriptions at the other end.
func eventually(conn *nats.Conn, subject string) error {
	for deadline := time.Now().Add(patience); ; {
		err := ask(conn, subject)
		if !errors.Is(err, nats.ErrNoResponders) || time.Now().After(deadline) {
			return err
		}
	}
}

// A client must not connect with a peer's credentials.
func TestPeerCredentialsAreForLeafs(t *testing.T) {
	west, _, hub, _ := link(t)
	creds, err := PeerCredentials(west.keys, "east")
	if err != nil {
		t.Fatal(err)
	}
	west.write("client.creds", creds)
	conn, err := nats.Connect(hub.ClientURL(), nats.UserCredentials(filepath.Join(west.dir, "client.creds")), nats.RootCAs(filepath.Join(west.dir, "ca.pem")))
	if err == nil {
		conn.Close()
		t.Error("a peer's credentials connect a client")
	}
}

// Invalid names, the site itself, and repeated names must be refused as peers.
func TestPeersAreRefused(t *testing.T) {
	west := newPlace(t, "west")
	for _, peers := range [][]messages.Name{{"West!"}, {""}, {"../x"}, {"west"}, {"east", "east"}} {
		if _, err := Accounts(west.keys, peers...); messages.KindOf(err) != messages.Invalid {
			t.Errorf("peers %q: %v", peers, err)
		}
	}
}
