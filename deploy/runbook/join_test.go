package runbook

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// joinSites carries out what the runbook says of joining another site, from both
// ends, and has one pay the other.
func joinSites(t *testing.T, binary string) {
	o := &operator{T: t, binary: binary, dir: t.TempDir()}
	for _, site := range []string{"west", "east"} {
		o.do(fmt.Sprintf("site init %s --listen 127.0.0.1:%d", site, twoPorts(t)), "candor up --config ")
	}
	o.do("site certify localhost 127.0.0.1 --tls west/tls", "localhost.pem")
	o.do("site invite east --config west/site.yaml", "west-invites-east.json")
	o.do("site join west-invites-east.json --config east/site.yaml --limit 5000", "Site west is in east/site.yaml", "east-answers-west.json")
	o.do("site join east-answers-west.json --config west/site.yaml --limit 4000", "Site east is in west/site.yaml")
	for _, site := range []string{"west", "east"} {
		o.do("config check "+site+"/site.yaml", "nothing is wrong")
		o.begin("site "+site+" is up", "up", "--config", filepath.Join(o.dir, site, "site.yaml"))
	}
	o.until("--state west/state site status", "PEER LINK ROUND TRIP", "east from 127.0.0.1", "answers")
	o.until("--state east/state site status", "west to 127.0.0.1", "answers")
	o.do("--state west/state grant operator 100 --yes", "100 credits")
	o.do("--state west/state grant alice 1 --yes", "1 credit")
	o.do("--state east/state grant bob 1 --yes", "1 credit")
	o.do("--state west/state --account operator remit bob@east 7", "Set aside 7 credits for bob at east")
	o.until("--state east/state --account operator account bob", "Balance 8 credits")
	o.until("--state west/state peer reconcile east", "the books agree")
	if out := o.do("site nats --config west/site.yaml", "# PEER-east"); strings.Contains(out, "SEED") {
		t.Error("the accounts for other servers hold a secret")
	}
}

// twoPorts finds a port that is free, for clients, and the one for servers of peers
// that goes with it.
func twoPorts(t *testing.T) int {
	t.Helper()
	const apart = 3200
	for range 100 {
		clients, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := clients.Addr().(*net.TCPAddr).Port
		peers, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+apart))
		_ = clients.Close()
		if err == nil {
			_ = peers.Close()
			return port
		}
	}
	t.Fatal("no two ports are free")
	return 0
}
