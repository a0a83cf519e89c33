package embedded

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Each error in a peer must be reported with its place and with advice.
func TestPeersAreChecked(t *testing.T) {
	good := func() *Config {
		c := small("state")
		c.ListenLeaf = "127.0.0.1:7422"
		c.Peers = []Peer{
			{Name: "east", Keys: []string{"A"}, Limit: messages.Credit},
			{Name: "north", Keys: []string{"A"}, URLs: []string{"tls://hub.north.example:7422"}, Creds: "north.creds"},
		}
		return &c
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func(*Config)
		want  string
	}{
		{func(c *Config) { c.ListenLeaf = "here" }, `listen_leaf: "here" is not an address`},
		{func(c *Config) { c.Reserve = -1 }, "reserve: -0.000001 is negative"},
		{func(c *Config) { c.Peers[0].Name = "West!" }, `peers[0].name: "West!" is not a name`},
		{func(c *Config) { c.Peers[0].Name = "west" }, `peers[0].name: "west" is this site`},
		{func(c *Config) { c.Peers[1].Name = "east" }, `peers[1].name: "east" is listed twice`},
		{func(c *Config) { c.Peers[0].Name = "bank" }, `peers[0].name: "bank" is the name of an actor`},
		{func(c *Config) { c.Peers[0].Keys = nil }, "peers[0].keys: give 1 to 4 public keys"},
		{func(c *Config) { c.Peers[0].Limit = -1 }, "peers[0].limit:"},
		{func(c *Config) { c.Peers[1].URLs[0] = "north:7422" }, `peers[1].urls[0]: "north:7422" is no address of a hub`},
		{func(c *Config) { c.Peers[1].Creds = "" }, "peers[1].creds: is missing"},
		{func(c *Config) { c.Peers[1].URLs = nil }, "peers[1].urls: is missing; name the address at which"},
		{func(c *Config) { c.ListenLeaf = "" }, "peers[0].urls: is missing, and no peer can connect to this site"},
		{func(c *Config) { c.TLS = &TLS{"c", "k", "a"} }, "peers[0].ca: is missing"},
		{func(c *Config) { c.Hosts = three() }, "peers[0].urls: is missing, and no peer can connect"},
	} {
		spoiled := good()
		c.spoil(spoiled)
		if err := spoiled.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

// If a server has peers, it must notice a cut within seconds, and try the connection again at once. A server without
// peers must not ping more often.
func TestLinksAreWatched(t *testing.T) {
	c := small(t.TempDir())
	authority, err := identity.Create(t.TempDir()+"/keys", c.Site)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := serverOptions(&c, nil, authority)
	if err != nil {
		t.Fatal(err)
	}
	c.ListenLeaf, c.Peers = "127.0.0.1:0", []Peer{{Name: "east"}, {Name: "north", URLs: []string{"nats://127.0.0.1:1"}, Creds: "x"}}
	linked, err := serverOptions(&c, nil, authority)
	if err != nil {
		t.Fatal(err)
	}
	if alone.LeafNode.Port != 0 || alone.PingInterval != 10*time.Second {
		t.Errorf("alone: port %d, ping %v", alone.LeafNode.Port, alone.PingInterval)
	}
	unseen := linked.PingInterval * time.Duration(linked.MaxPingsOut+1)
	if unseen > 6*time.Second || linked.LeafNode.ReconnectInterval > time.Second || !linked.LeafNode.NoAdvertise || len(linked.LeafNode.Remotes) != 1 {
		t.Errorf("linked: a cut is unseen for %v, %+v", unseen, linked.LeafNode)
	}
}
