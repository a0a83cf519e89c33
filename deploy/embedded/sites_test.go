package embedded

import (
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
)

func firstLook(t *testing.T, names ...messages.Name) (configs []Config) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		c := small(filepath.Join(dir, name))
		c.Site, c.Replicas = name, 1
		configs = append(configs, c)
	}
	return configs
}

func startSites(t *testing.T, configs []Config) Sites {
	t.Helper()
	sites, err := StartSites(within(t), configs, 500*messages.Credit, Options{Log: logged(t, zap.WarnLevel)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sites.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return sites
}

func (u user) peers() clearing.PeersReply {
	u.Helper()
	return request[clearing.PeersReply](u, messages.Bank, clearing.VerbPeers, messages.Empty{})
}

func (u user) remit(key string, peer, payee messages.Name, amount messages.Credits) {
	u.Helper()
	request[clearing.ClearingReply](u, messages.Bank, clearing.VerbRemit, clearing.RemitRequest{Key: key, Peer: peer, Payee: payee, Amount: amount})
}

// settled reports whether all peers of the user's site have answered its messages, and have confirmed all instructions.
func (u user) settled() bool {
	u.Helper()
	for _, p := range u.peers().Peers {
		if p.Outstanding > 0 || p.Tries > 0 {
			return false
		}
	}
	return true
}

// TestSitesSettle starts three sites, each a peer of the others. Credits must move between any two sites. After a
// restart, no bank may get the same payment twice.
func TestSitesSettle(t *testing.T) {
	t.Parallel()
	configs := firstLook(t, "west", "east", "north")
	sites, err := StartSites(within(t), configs, 500*messages.Credit, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sites {
		next := configs[(i+1)%len(sites)].Site
		connect(t, s, "alice").remit("k", next, "bob", 10*messages.Credit)
	}
	for _, s := range sites {
		operator := connect(t, s, "operator")
		await.Until(t, "the banks settle", operator.settled)
		bob := connect(t, s, "bob") // one connection, because an account may have only a few
		await.Until(t, "bob is paid", func() bool { return bob.account().Balance == 1010*messages.Credit })
		await.Until(t, "the receipts are back", operator.settled)
		if got := connect(t, s, "alice").account().Balance; got != 990*messages.Credit {
			t.Errorf("alice of %s has %v left, want 990", s.config.Site, got)
		}
		if peers := operator.peers(); len(peers.Peers) != 2 || peers.Reserve != 1000*messages.Credit {
			t.Errorf("%s has peers %+v", s.config.Site, peers)
		}
	}
	request[clearing.PeerReply](connect(t, sites[0], "operator"), messages.Bank, clearing.VerbPeer,
		clearing.PeerRequest{Peer: "east", Keys: sites[0].config.Peers[0].Keys, Limit: 77 * messages.Credit})
	if err := sites.Close(); err != nil {
		t.Fatal(err)
	}
	again := startSites(t, configs)
	if p := connect(t, again[0], "operator").peers().Peers[0]; p.Peer != "east" || p.Limit != 77*messages.Credit {
		t.Errorf("started again, the limit is %v, not what an operator set since", p.Limit)
	}
	alice := connect(t, again[1], "alice")
	alice.remit("k", "north", "bob", 10*messages.Credit) // the same key as before, so nothing happens
	alice.remit("l", "west", "bob", 5*messages.Credit)
	bob := connect(t, again[0], "bob")
	await.Until(t, "bob is paid again", func() bool { return bob.account().Balance == 1015*messages.Credit })
	await.Until(t, "the receipt is back", connect(t, again[1], "operator").settled)
	if got := alice.account().Balance; got != 985*messages.Credit {
		t.Errorf("alice has %v, want 985", got)
	}
}

func twoKeys(t *testing.T, site messages.Name) (keys [2]string) {
	t.Helper()
	for i := range keys {
		a, err := identity.Create(filepath.Join(t.TempDir(), "keys"), site)
		if err != nil {
			t.Fatal(err)
		}
		if keys[i], err = a.PublicKey(); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// TestAPeerIsJoinedAgain ends the relation with a peer ("part"). The sites must stay parted until the configuration has
// a new key of the peer.
func TestAPeerIsJoinedAgain(t *testing.T) {
	t.Parallel()
	c := firstLook(t, "west")[0]
	c.ListenLeaf, c.Reserve = "127.0.0.1:0", 9*messages.Credit
	keys := twoKeys(t, "east")
	var none messages.Credits
	for i, step := range []struct {
		keys []string // keys of east in the file; none: the file does not name east
		want clearing.PeerStanding
	}{{keys[:1], clearing.PeerOpen}, {keys[:1], clearing.PeerParted}, {nil, clearing.PeerParted}, {keys[1:], clearing.PeerOpen}} {
		if c.Peers = nil; step.keys != nil {
			c.Peers = []Peer{{Name: "east", Keys: step.keys, Limit: 5 * messages.Credit}}
		}
		s := start(t, c)
		operator := connect(t, s, "operator")
		if p := operator.peers().Peers[0]; p.Standing != step.want || step.want == clearing.PeerOpen && (p.Limit != 5*messages.Credit || !slices.Equal(p.Keys, step.keys)) {
			t.Errorf("start %d, with the keys %v: %+v", i, step.keys, p)
		}
		if i == 0 {
			request[clearing.PartReply](operator, messages.Bank, clearing.VerbPart, clearing.PartRequest{Peer: "east", Loss: &none, Reason: "it is gone"})
		}
		closeSite(t, s)
	}
}

// Changes of a peer in the configuration must be sent to the bank, and unchanged settings must not.
func TestConfigurationChangesPeers(t *testing.T) {
	t.Parallel()
	c := firstLook(t, "west")[0]
	c.ListenLeaf, c.Reserve = "127.0.0.1:0", 9*messages.Credit
	keys := twoKeys(t, "east")
	for _, step := range []struct {
		configured, byCommand, want messages.Credits
		key                         string
	}{
		{5 * messages.Credit, 7 * messages.Credit, 5 * messages.Credit, keys[0]},
		{5 * messages.Credit, 0, 7 * messages.Credit, keys[0]},
		{6 * messages.Credit, 0, 6 * messages.Credit, keys[0]},
		{6 * messages.Credit, 0, 6 * messages.Credit, keys[1]},
		{8 * messages.Credit, 0, 8 * messages.Credit, keys[0]}, // this key was retired
	} {
		c.Peers = []Peer{{Name: "east", Keys: []string{step.key}, Limit: step.configured}}
		s := start(t, c)
		operator := connect(t, s, "operator")
		got := operator.peers()
		p := got.Peers[0]
		known := slices.Contains(p.Keys, step.key) != slices.Contains(p.Retired, step.key)
		if p.Limit != step.want || !known || got.Reserve != c.Reserve {
			t.Errorf("configured %+v: limit %v, keys %v, retired %v, reserve %v", step, p.Limit, p.Keys, p.Retired, got.Reserve)
		}
		if len(p.Keys) == 2 { // the rotation has ended
			request[clearing.PeerReply](operator, messages.Bank, clearing.VerbPeer, clearing.PeerRequest{Peer: "east", Keys: p.Keys[1:], Limit: p.Limit, Retire: true})
		}
		if step.byCommand != 0 {
			request[clearing.PeerReply](operator, messages.Bank, clearing.VerbPeer, clearing.PeerRequest{Peer: "east", Keys: []string{step.key}, Limit: step.byCommand})
		}
		closeSite(t, s)
	}
}
