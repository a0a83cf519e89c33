package embedded

import (
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// alone starts the NATS server of a site, with keys and credentials, but without any actor.
func alone(t *testing.T, c *Config) (*identity.Authority, string) {
	t.Helper()
	authority, err := identity.Create(filepath.Join(c.State, "keys"), c.Site)
	if err != nil {
		t.Fatal(err)
	}
	options, err := serverOptions(c, nil, authority)
	if err != nil {
		t.Fatal(err)
	}
	server, err := startServer(options, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	if err := writeCredentials(c, authority); err != nil {
		t.Fatal(err)
	}
	return authority, server.ClientURL()
}

// TestActorsAlone starts each actor alone, against a server that has no Candor code. Together they must work like a
// site in one process.
func TestActorsAlone(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	authority, url := alone(t, &c)
	var err error
	for _, only := range []Only{
		{Actor: messages.Bank}, {Actor: messages.Auctioneer}, {Actor: messages.Estimator}, {Actor: messages.NodeAgent, Node: "node1"},
	} {
		role, name := identity.Service, messages.ServiceIdentity(only.Actor)
		if only.Node != "" {
			role, name = identity.Node, only.Node
		}
		if only.Creds, err = WriteCredentials(c.State, authority, role, name); err != nil {
			t.Fatal(err)
		}
		only.Server = url
		s, err := Start(within(t), c, Options{Only: &only})
		if err != nil {
			t.Fatalf("%s: %v", only.Actor, err)
		}
		defer closeSite(t, s)
	}
	as := func(name messages.Name) user {
		b, err := bus.Connect(bus.Config{URL: url, Name: name, CredsFile: CredsFile(c.State, name), Retry: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return user{t, b, c.Site, name}
	}
	request[money.AccountReply](as("operator"), messages.Bank, messages.VerbGrant,
		money.GrantRequest{Key: "k", Account: "alice", Amount: 10 * messages.Credit})
	alice := as("alice")
	if job := alice.final(alice.submit("k", twoStages(t.TempDir(), messages.Credit))); job.State != jobmsg.Completed {
		t.Errorf("the job ended %v", job.State)
	}
}

func TestOnlyRefuses(t *testing.T) {
	c := small(t.TempDir())
	if _, err := Start(within(t), c, Options{Only: &Only{Actor: "broker"}}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("an actor that is none: %v, want Invalid", err)
	}
	if _, err := Start(within(t), c, Options{Only: &Only{Actor: messages.NodeAgent, Node: "node9"}}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("a node that is not configured: %v, want NotFound", err)
	}
	if _, err := Start(within(t), c, Options{Host: "rack1"}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a host without hosts: %v, want Invalid", err)
	}
	c.Nodes, c.Hosts = Default().Nodes, three()
	if _, err := Start(within(t), c, Options{Host: "rack1"}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a host that is not configured: %v, want Invalid", err)
	}
	_, err := Start(within(t), c, Options{Host: "a", Only: &Only{Actor: messages.Bank, Server: "nats://127.0.0.1:1"}})
	if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "--certificate") {
		t.Errorf("a replica of several without keys or certificate: %v, want Invalid", err)
	}
}

// After a start was refused, no part of the site may still run. An example is the part that stores the clock.
func TestNothingGoesOnAfterARefusedStart(t *testing.T) {
	var over atomic.Bool
	c, late := small(t.TempDir()), new(atomic.Bool)
	wall := func() messages.Time {
		if over.Load() {
			late.Store(true)
		}
		return messages.TimeOf(time.Now())
	}
	for range 100 {
		over.Store(false)
		if _, err := Start(within(t), c, Options{Only: &Only{Actor: "broker"}, Wall: wall}); messages.KindOf(err) != messages.Invalid {
			t.Fatalf("an actor that is none: %v, want Invalid", err)
		}
		over.Store(true)
		runtime.Gosched()
	}
	if late.Load() {
		t.Error("the clock was read after a start had been refused")
	}
}
