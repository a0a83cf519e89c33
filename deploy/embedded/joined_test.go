package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
)

// TestSitesBecomePeersWhileTheyRun adds each of two running sites to the configuration of the other site. The sites
// must become peers while their jobs run. Other changes of the configuration must wait for the next start.
func TestSitesBecomePeersWhileTheyRun(t *testing.T) {
	t.Parallel()
	names := []messages.Name{"west", "east", "north"}
	sites, files := make([]*Site, 3), make([]atomic.Pointer[Config], 3)
	for i, c := range firstLook(t, names...) {
		if i == 0 {
			c.ListenLeaf = "127.0.0.1:0"
		}
		var err error
		sites[i], err = Start(within(t), c, Options{Log: logged(t, zap.ErrorLevel), Changed: func() (*Config, error) { return files[i].Swap(nil), nil }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := sites[i].Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	west := sites[0]
	ops := connect(t, west, "operator")
	if r := ops.links(); len(r.Links)+len(r.Trips) != 0 {
		t.Fatalf("before there is a peer: %+v", r)
	}
	hub := west.Config()
	for i, s := range sites[1:] {
		// A server that reloads its configuration may refuse new connections for a moment.
		alice, bob, back := connect(t, west, "alice"), connect(t, s, "bob"), connect(t, s, "operator")
		creds, err := west.authority.IssueLink(s.config.Site)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "west.creds")
		if err := os.WriteFile(file, creds, 0o600); err != nil {
			t.Fatal(err)
		}
		key := func(s *Site) []string {
			k, err := s.authority.PublicKey()
			if err != nil {
				t.Fatal(err)
			}
			return []string{k}
		}
		hub.Peers = append(slices.Clone(hub.Peers), Peer{Name: s.config.Site, Keys: key(s), Limit: 500 * messages.Credit})
		changed := hub
		changed.Reserve = 1 // takes effect at the next start
		files[0].Store(&changed)
		spoke := s.Config()
		spoke.Peers = []Peer{{Name: "west", URLs: []string{"nats://" + west.info.Leaf}, Creds: file, Keys: key(west), Limit: 500 * messages.Credit}}
		files[i+1].Store(&spoke)
		await.Until(t, "the sites are linked", func() bool {
			r := ops.links()
			return len(r.Links) == i+1 && len(r.Trips) == i+1 && !slices.ContainsFunc(r.Trips, func(p clearing.PeerTrip) bool { return p.Took == 0 })
		})
		await.Until(t, "the banks know one another", func() bool {
			list := request[clearing.PeersReply](ops, messages.Bank, clearing.VerbPeers, messages.Empty{}).Peers
			return len(list) == i+1 && len(request[clearing.PeersReply](back, messages.Bank, clearing.VerbPeers, messages.Empty{}).Peers) == 1
		})
		alice.remit("to "+s.config.Site, s.config.Site, "bob", 10*messages.Credit)
		await.Until(t, "bob is paid", func() bool { return bob.account().Balance == 1010*messages.Credit })
	}
	if r := request[clearing.PeersReply](ops, messages.Bank, clearing.VerbPeers, messages.Empty{}); r.Reserve == 1 {
		t.Error("the running site took more of the configuration than its peers")
	}
}
