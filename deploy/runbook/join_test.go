package runbook

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// joinSites carries out the runbook's instructions for joining another site, at both sites. Then one site pays the
// other, a key is rotated, and the sites part.
func joinSites(t *testing.T, binary string) {
	o := &operator{T: t, binary: binary, dir: t.TempDir()}
	for i, site := range []string{"west", "east"} {
		o.do(fmt.Sprintf("site init %s --listen %s", site, twoPorts(t, i+1)), "candor up --config ")
	}
	o.do("site certify localhost 127.0.79.1 --tls west/tls", "localhost.pem")
	o.do("site invite east --config west/site.yaml", "west-invites-east.json")
	o.do("site join west-invites-east.json --config east/site.yaml --limit 5000", "Site west is in east/site.yaml", "east-answers-west.json")
	o.do("site join east-answers-west.json --config west/site.yaml --limit 4000", "Site east is in west/site.yaml")
	kill := map[string]func(){}
	for _, site := range []string{"west", "east"} {
		o.do("config check "+site+"/site.yaml", "nothing is wrong")
		kill[site] = o.begin("site "+site+" is up", "up", "--config", filepath.Join(o.dir, site, "site.yaml"))
	}
	o.until("--state west/state site status", "PEER LINK ROUND TRIP", "east from 127.0.0.1", "answers")
	o.until("--state east/state site status", "west to 127.0.79.1", "answers")
	o.do("--state west/state grant operator 100 --yes", "100 credits")
	o.do("--state west/state grant alice 1 --yes", "1 credit")
	o.do("--state east/state grant bob 1 --yes", "1 credit")
	o.do("--state west/state --account operator remit bob@east 7", "The bank has set aside 7 credits for bob at east")
	o.until("--state east/state --account operator account bob", "Balance 8 credits")
	o.until("--state west/state peer reconcile east", "the books agree")
	if out := o.do("site nats --config west/site.yaml", "# PEER-east"); strings.Contains(out, "SEED") {
		t.Error("the accounts for other servers hold a secret")
	}
	restoreAPeer(o, kill["west"])
	rotatePeer(o)
	partAlone(o)
}

// restoreAPeer restores a site from a backup, as the runbook says. After this backup, the site traded with a peer. The
// two sites must continue to trade.
func restoreAPeer(o *operator, kill func()) {
	o.Helper()
	west, east := "--state west/state ", "--state east/state "
	o.do("backup --state west/state west-monday", "has the backup of site west")
	o.do(west+"grant late 3 --yes", "3 credits")
	o.do(west+"--account operator remit bob@east 11", "this is request 2")
	o.do(east+"grant operator 50 --yes", "50 credits")
	o.do(east+"--account operator remit alice@west 2", "this is request 1")
	o.do(east+"--account operator remit late@west 4", "this is request 2")
	o.until(west+"peer list", "east 12 0 4000 0 4000 3 3") // until all messages between the sites are answered
	kill()
	if err := os.Rename(filepath.Join(o.dir, "west", "state"), filepath.Join(o.dir, "west.before")); err != nil {
		o.Fatal(err)
	}
	o.do("restore west-monday --state west/state --keys west/keys", "has site west as it was at")
	o.begin("site west is up", "up", "--config", filepath.Join(o.dir, "west", "site.yaml"))

	o.until(west+"peer list", "this site was restored: candor peer reconcile east")
	o.until(west+"peer reconcile east", "Lost here: 1 message number", "Lost here: 2 message numbers", "To go on from the totals of east, after its operator confirmed them: candor peer reconcile east --adopt",
		"For clearing--correction -5", "exit status 1")
	if out := o.try(west + "peer reconcile east --adopt"); !strings.Contains(out, "has not confirmed") {
		o.Errorf("without the other operator it says\n%s", out)
	}
	o.until(east+"peer reconcile west", "Site west lost the records of instructions", "exit status 1")
	o.do(east+"peer reconcile west --confirm", "Confirmed for west: the operator of that site now runs `candor peer reconcile east --adopt`")
	if out := o.try(west + "peer reconcile east --adopt"); !strings.Contains(out, ": 3 message numbers had been lost") || !strings.Contains(out, "exit status 7") {
		o.Errorf("the adoption says\n%s", out)
	}
	o.do(west+"peer list", "Corrections", "-5")
	for _, site := range []string{west, east} {
		o.do(site+"peer reconcile "+map[string]string{west: "east", east: "west"}[site], "the books agree")
	}
	o.do(west+"--account operator remit bob@east 1", "this is request 3")
	o.do(east+"--account operator remit alice@west 1", "this is request 3")
	o.until(east+"--account operator account bob", "Balance 20 credits")
	for _, site := range []string{west, east} {
		o.try(site + "settle --cycle 1")
	}
	for _, site := range []string{west, east} {
		o.until(site+"settle", "Cycle 1 is complete", "west pays 12 credits to east")
		o.do(site+"bank verify", "The books verify")
	}
}

// twoPorts returns a loopback address of one site with two free ports: for clients, and for other sites' servers.
func twoPorts(t *testing.T, site int) (listen string) {
	t.Helper()
	const apart = 3200
	host := fmt.Sprintf("127.0.79.%d", site)
	for range 100 {
		clients, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		port := clients.Addr().(*net.TCPAddr).Port
		peers, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port+apart))
		_ = clients.Close()
		if err == nil {
			_ = peers.Close()
			return clients.Addr().String()
		}
	}
	t.Fatal("no two ports are free")
	return ""
}
