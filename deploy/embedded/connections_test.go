package embedded

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// isOpen counts the connections that work.
func isOpen(all []*nats.Conn) (n int) {
	for _, nc := range all {
		if nc.IsConnected() && nc.FlushTimeout(patience) == nil {
			n++
		}
	}
	return n
}

// TestConnectionsOfAnAccountAreBounded opens more connections than an account may have. The last connections must be
// refused or cut. When a connection is closed, another one can be opened.
func TestConnectionsOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas, c.Limits.Connections = 1, 4
	s, err := Start(within(t), c, Options{Metrics: true, Log: logged(t, zap.ErrorLevel)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	f := fort{t, s}
	held := make([]user, 4)
	for i := range held {
		held[i] = connect(t, s, "alice")
		held[i].account()
	}
	over, err := s.Connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	subject := messages.Subject(c.Site, messages.Bank, messages.VerbAccount, "alice")
	f.grows("candor_connections_refused_total", "role=user", func() {
		await.Until(t, "the fifth is refused", func() bool {
			_, err := bus.Call[money.AccountReply](within(t), over, subject, money.AccountRequest{})
			return messages.KindOf(err) == messages.Exhausted && strings.Contains(err.Error(), "account alice has 4 open connections")
		})
	})
	_ = over.Close() // without this, the connection would take the next free place
	var flood []*nats.Conn
	f.grows("candor_connections_refused_total", "role=user", func() {
		for range 40 {
			nc, err := nats.Connect(s.URL(), nats.Timeout(patience), nats.UserCredentials(s.CredsFile("alice")), nats.NoReconnect(), nats.Name("bob"))
			if err != nil {
				continue // the guard has already cut this connection
			}
			defer nc.Close()
			flood = append(flood, nc)
		}
	})
	await.Until(t, "the flood is cut", func() bool { return isOpen(flood) == 0 })
	for i := range held {
		held[i].account()
	}
	if bob := connect(t, s, "bob"); bob.account().Balance == 0 {
		t.Error("bob has nothing")
	}
	_ = held[0].bus.Close()
	again := connect(t, s, "alice")
	await.Until(t, "the place of a connection that ended is free", func() bool {
		_, err := bus.Call[money.AccountReply](within(t), again.bus, subject, money.AccountRequest{})
		return err == nil
	})
	f.stays(again)
}

// stays opens more connections of a user, so that the newest one is cut. It checks that the earlier connection of the
// user still works.
func (f fort) stays(u user) {
	f.Helper()
	f.grows("candor_connections_refused_total", "", func() {
		mallory, err := nats.Connect(f.URL(), nats.Timeout(patience), nats.UserCredentials(f.CredsFile("alice")), nats.NoReconnect())
		if err != nil {
			f.Fatal(err)
		}
		defer mallory.Close()
		await.Until(f.T, "a later connection is cut", func() bool { return !mallory.IsConnected() })
		u.account()
	})
}

// Here the NATS server does not run in the bank's process. The bank's process must limit the connections of each
// account at this server. This includes connections that were made before the process started.
func TestConnectionsAtServersOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Limits.Connections = 4
	authority, server := alone(t, &c)
	var flood []*nats.Conn
	for range 6 {
		nc, err := nats.Connect(server, nats.Timeout(patience), nats.UserCredentials(CredsFile(c.State, "alice")), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		flood = append(flood, nc)
	}
	creds, err := WriteCredentials(c.State, authority, identity.Service, messages.ServiceIdentity(messages.Bank))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(within(t), c, Options{Only: &Only{Actor: messages.Bank, Server: server, Creds: creds}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	await.Until(t, "the newest two are cut", func() bool { return isOpen(flood[:4]) == 4 && isOpen(flood[4:]) == 0 })
}
