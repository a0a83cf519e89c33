package netlab

import (
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// Two clusters with gateways connect the servers of two sites. Requests must arrive before and after a cut of the
// gateways, but not during the cut.
func TestGatewaysCarryRequestsBetweenSites(t *testing.T) {
	network, err := Loopback()
	if err != nil {
		t.Skip(err)
	}
	l := &Lab{Dir: t.TempDir(), network: network}
	for i, name := range []messages.Name{"west", "east"} {
		s := &Site{Name: name, lab: l, number: i + 1, dir: t.TempDir()}
		if s.authority, err = identity.Create(filepath.Join(s.dir, "keys"), name); err != nil {
			t.Fatal(err)
		}
		l.Sites = append(l.Sites, s)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.JoinByGateways(time.Millisecond, messages.Credit); err != nil {
		t.Fatal(err)
	}
	west, east := linked(t, l.Sites[0]), linked(t, l.Sites[1])
	verb := clearing.PeerVerb{Actor: messages.Bank, Verb: clearing.VerbInstruct}
	if _, err := east.Subscribe(messages.Subject("east", verb.Actor, verb.Verb, "*"), func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	asks := func(within time.Duration) error {
		_, err := west.Request(verb.Subject("west", "east"), []byte("1"), within)
		return err
	}
	until := func(what string) {
		t.Helper()
		var err error
		for end := time.Now().Add(roadStart); time.Now().Before(end); {
			if err = asks(time.Second); err == nil {
				return
			}
		}
		t.Fatalf("%s: %v", what, err)
	}
	until("joined")
	l.Cut(l.Sites[0])
	if err := asks(100 * time.Millisecond); err == nil {
		t.Error("a request passes a cut")
	}
	l.Heal(l.Sites[0])
	until("healed")
}

// linked returns a connection for the bank of a site. It goes through the NATS server at the site's border.
func linked(t *testing.T, s *Site) *nats.Conn {
	t.Helper()
	p := s.peers[0]
	account, err := s.authority.LinkAccount(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(p.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	o := natstest.Loopback()
	o.ServerName = s.Name
	if err := natsserver.Secure(o, s.authority, p.Name); err != nil {
		t.Fatal(err)
	}
	o.LeafNode.Remotes = []*server.RemoteLeafOpts{{LocalAccount: account, Credentials: p.Creds, URLs: []*url.URL{at}}}
	own := natstest.Run(t, o)
	creds, err := embedded.WriteCredentials(s.dir, s.authority, identity.Service, messages.ServiceIdentity(messages.Bank))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(own.ClientURL(), nats.UserCredentials(creds), nats.CustomInboxPrefix(messages.InboxPrefix(messages.ServiceIdentity(messages.Bank))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
