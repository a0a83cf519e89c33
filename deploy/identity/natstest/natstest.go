// Package natstest starts NATS servers for tests, and does what strangers can do with stolen keys. Only tests import
// it.
package natstest

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// Run starts a server, and returns when it accepts connections. The server stops when the test
// ends.
func Run(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(await.Patience) {
		t.Fatal("the server takes no connections")
	}
	return s
}

// Loopback returns the options of a silent server on a free port of this host.
func Loopback() *server.Options {
	return &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
}

// Stranger returns the options of a server that is linked to a site, with credentials that the site issued. The server
// has none of our rules. So it can do at least as much harm as the server of any peer.
func Stranger(t testing.TB, leaf string, creds []byte) *server.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stolen.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Loopback()
	o.ServerName = "stranger"
	o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{{Scheme: "nats-leaf", Host: leaf}}, Credentials: file}}
	return o
}

// Forge makes credentials with the key of an account, given by its seed.
func Forge(t testing.TB, seed []byte, name messages.Name) []byte {
	t.Helper()
	account, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	key, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.NewUserClaims(key)
	claims.Name = name
	token, err := claims.Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	own, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file, err := jwt.FormatUserConfig(token, own)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Seed reads a key of a site, such as account.nk, from its keys directory.
func Seed(t testing.TB, keys, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(keys, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(text)
}

// Insider returns credentials that may read and publish everything in a site's account. They are signed with the
// account's own key, which the site's server normally does not accept for credentials. Insider makes the server accept
// them. An operator who runs a changed program could do the same.
func Insider(t testing.TB, s *server.Server, keys string, peers ...messages.Name) []byte {
	t.Helper()
	operator, err := nkeys.FromSeed(Seed(t, keys, "operator.nk"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := identity.Open(keys)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := authority.Tokens(peers...)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeAccountClaims(tokens.Accounts[1].Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Encode(operator); err != nil { // Encode writes the issuer into the claims
		t.Fatal(err)
	}
	account, err := s.LookupAccount(claims.Subject)
	if err != nil {
		t.Fatal(err)
	}
	account.Issuer = claims.Issuer
	s.UpdateAccountClaims(account, claims)
	return Forge(t, Seed(t, keys, "account.nk"), "")
}
