package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/durable"
)

var loopbacks atomic.Uint32

// loopback returns a loopback address that no other call returns. Tests do not use 127.0.0.1, because there the
// connection of any process may take a port that a test has found free.
func loopback() string {
	n, pid := loopbacks.Add(1)%127+1, uint32(os.Getpid())
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>9&63, pid>>1&255, pid&1<<7+n)
}

// freePort returns an address with a free port. It keeps the port in use, so that no other call returns it, until
// `release` is called.
func freePort(t *testing.T, ip string) (address string, release func()) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), func() { _ = l.Close() }
}

// ownAddresses returns three hosts, each with a separate address and free ports on it.
func ownAddresses(t *testing.T) []Host {
	t.Helper()
	hosts := three()
	for i := range hosts {
		hosts[i].Name = fmt.Sprintf("host%d", i+1)
		ip := loopback()
		for _, address := range []*string{&hosts[i].Listen, &hosts[i].Cluster, &hosts[i].Auctioneer, &hosts[i].Bank} {
			at, release := freePort(t, ip)
			defer release() // released at the end, so that no two ports are the same
			*address = at
		}
	}
	return hosts
}

func spread(t *testing.T, hub *Site) Sites {
	t.Helper()
	dir := t.TempDir()
	base := Default()
	base.Site, base.Keys, base.Replicas = "west", filepath.Join(dir, "keys"), 0
	base.Hosts = ownAddresses(t)
	authority, err := identity.Create(base.Keys, base.Site)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := hub.authority.IssueLink("west")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "east.creds")
	if err := durable.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := hub.authority.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	base.Peers = []Peer{{Name: "east", URLs: []string{"nats://" + hub.info.Leaf}, Creds: file, Keys: []string{key}, Limit: 100 * messages.Credit}}
	own, err := authority.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	request[clearing.PeerReply](connect(t, hub, "operator"), messages.Bank, clearing.VerbPeer,
		clearing.PeerRequest{Peer: "west", Keys: []string{own}, Limit: 100 * messages.Credit, Retire: true})
	return startHosts(t, base, dir)
}

// TestHostsAreLinkedEach checks a site of several hosts. Each host must be connected to the other site. A message from
// any host must arrive at the other site exactly once. If one host stops, payments through the other hosts must still
// arrive.
func TestHostsAreLinkedEach(t *testing.T) {
	t.Parallel()
	c := firstLook(t, "east")[0]
	c.ListenLeaf, c.Peers = "127.0.0.1:0", []Peer{{Name: "west", Keys: []string{"A"}, Limit: 100 * messages.Credit}}
	authority, err := identity.Create(c.KeysDir(), c.Site)
	if err != nil {
		t.Fatal(err)
	}
	if c.Peers[0].Keys[0], err = authority.PublicKey(); err != nil { // any valid key, until the real one is known
		t.Fatal(err)
	}
	east := start(t, c)
	defer closeSite(t, east)
	west := spread(t, east)
	operator := connect(t, west[2], "operator")
	await.Until(t, "every host is linked", func() bool {
		r := operator.links()
		return len(r.Links) == 3 && len(r.Missing) == 0 && r.Links[0].Host == "host1" && r.Links[2].Host == "host3" && r.Trips[0].Took > 0
	})
	onceEach(t, west, east)

	bob := connect(t, east, "bob")
	for i, s := range west[:2] {
		connect(t, s, "alice").remit(s.host.Name, "east", "bob", messages.Credit)
		await.Until(t, "bob is paid", func() bool {
			return bob.account().Balance == messages.Credits(1001+i)*messages.Credit
		})
	}
	if err := west[0].Close(); err != nil {
		t.Fatal(err)
	}
	connect(t, west[1], "alice").remit("after", "east", "bob", messages.Credit)
	await.Until(t, "bob is paid without that host", func() bool { return bob.account().Balance == 1003*messages.Credit })
	await.Until(t, "the host that is gone is missed", func() bool { r := operator.links(); return len(r.Missing) == 1 && len(r.Links) == 2 })
}

// onceEach publishes one message from each host, and counts the messages that arrive.
func onceEach(t *testing.T, west Sites, east *Site) {
	t.Helper()
	subject := clearing.PeerVerb{Actor: messages.Auctioneer, Verb: clearing.VerbPeerQuote}.Subject("west", "east")
	var arrived atomic.Int64
	marks := make(chan struct{}, 1)
	inside := insider(t, east)
	if _, err := inside.Subscribe(subject, func(m *nats.Msg) {
		if string(m.Data) == "once" {
			arrived.Add(1)
		} else {
			marks <- struct{}{}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := inside.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, s := range west {
		from := insider(t, s)
		if err := from.Publish(subject, []byte("once")); err != nil {
			t.Fatal(err)
		}
		// A message that is sent later on the same path arrives later.
		if err := from.Publish(subject, []byte("mark")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-marks:
		case <-within(t).Done():
			t.Fatal("the mark never came")
		}
		if got := arrived.Load(); got != int64(i+1) {
			t.Errorf("after one message from each of %d hosts, %d have arrived", i+1, got)
		}
	}
}
