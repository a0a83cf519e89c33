package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// TestAttackOnThreeHosts attacks a site of three hosts on one machine, with all ports that hosts use between each
// other. Each host has a separate state directory, and separate system users for tasks.
func TestAttackOnThreeHosts(t *testing.T) {
	switch {
	case os.Geteuid() != 0:
		t.Skip("needs root, to give each host users of its own")
	case !everything():
		t.Skip("only in make attack")
	}
	t.Parallel()
	attack(t, upHosts(t))
}

// upHosts starts a site of three hosts with "candor up --host".
func upHosts(t *testing.T) *site {
	t.Helper()
	dir := filepath.Dir(stateDir(t, nil))
	c := embedded.Default()
	c.Site, c.State, c.Replicas, c.Listen, c.Nodes = "west", filepath.Join(dir, "rack1"), 0, "", nil
	c.MetricsToken = filepath.Join(dir, "metrics.token")
	if err := os.WriteFile(c.MetricsToken, []byte(strings.Repeat("secret", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	listens := freeAddresses(t, 15)
	for i := range 3 {
		a := listens[5*i:]
		node := messages.Name(fmt.Sprint("node", i+1))
		c.Nodes = append(c.Nodes, embedded.Node{Name: node, Slots: embedded.Slots{{Class: "map", Slots: 2}, {Class: "reduce", Slots: 1}}})
		c.Hosts = append(c.Hosts, embedded.Host{Name: fmt.Sprint("rack", i+1), Listen: a[0], Cluster: a[1], Auctioneer: a[2], Bank: a[3], Metrics: a[4], Nodes: []messages.Name{node}})
	}
	var hosts []*site
	for i, h := range c.Hosts {
		c.Tasks.User = fmt.Sprintf("%d-%d", 1_000_000+100_000*i, 1_065_535+100_000*i)
		file := filepath.Join(dir, h.Name+".yaml")
		text, err := json.Marshal(c) // JSON is valid YAML
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		keys := filepath.Join(dir, "rack1", "keys")
		s := &site{T: t, state: filepath.Join(dir, h.Name)}
		if i == 0 {
			if out, err := s.plainly("site", "init", "--config", file, "--keys", keys); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		s.begin(nil, "--config", file, "--host", h.Name, "--keys", keys)
		hosts = append(hosts, s)
	}
	for _, h := range hosts {
		h.await()
	}
	hosts[0].others, hosts[0].addresses, hosts[0].nodes = hosts[1:], listens, len(c.Nodes)
	return hosts[0]
}

func freeAddresses(t *testing.T, count int) (addresses []string) {
	t.Helper()
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}
