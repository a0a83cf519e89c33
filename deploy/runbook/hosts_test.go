package runbook

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/deploy/embedded"
)

// threeHosts follows the procedures of the runbook about hosts and keys, one after another, on one site. Jobs run
// before, during and after the procedures.
func threeHosts(t *testing.T, binary string) {
	r := newRacks(t, binary)
	r.startAll("site.yaml")
	work := r.work
	work()
	r.upgrade(work)
	work()
	for host := range r.hosts {
		filesOf(t, filepath.Join(r.dir, host)) // fails if a file of the host is not in the table
	}
	r.backUpAndRestore()
	work()
	r.replace()
	work()
	r.rotate()
	work()
	r.do("account", "Held for jobs  0 credits", "Spent, ever    0 credits") // nobody else wanted the slots
	r.do("bank verify", "The books verify", "signed by the site's key")
}

func (r *racks) work() {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "job.sh"), []byte("echo hello\n"), 0o600); err != nil {
		r.Fatal(err)
	}
	out := r.try("submit --chdir - --script --budget 10 --wait --timeout 60s job.sh")
	if !strings.Contains(out, "Completed") {
		_, id, _ := strings.Cut(out, "Submitted job ")
		id, _, _ = strings.Cut(id, " ")
		for host, p := range r.hosts {
			r.Logf("%s says:\n%s", host, p.Output)
		}
		r.Fatalf("%s\n%s\n%s", out, r.try("job "+id), r.try("logs "+id+" --stderr"))
	}
}

// upgrade restarts one host after another, and meanwhile a task keeps running.
func (r *racks) upgrade(work func()) {
	if err := os.Mkdir(filepath.Join(r.dir, "work"), 0o700); err != nil { // next to the site's state, which no task can see
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "long.sh"), []byte("while [ ! -e release ]; do sleep 0.05; done\n"), 0o600); err != nil {
		r.Fatal(err)
	}
	r.do("submit --script --chdir work --budget 20 long.sh", "Submitted job")
	for _, host := range []string{"rack2", "rack3", "rack1"} {
		r.stop(host)
		r.up(r.start(host, "site.yaml"))
		r.until("nodes", "node1 Up", "node2 Up", "node3 Up")
		r.until("replica list", "The auctioneer can lose 1 more replica", "The bank can lose 1 more replica")
		work()
	}
	r.do("jobs --active", "long.sh", "Running")
	if err := os.WriteFile(filepath.Join(r.dir, "work", "release"), nil, 0o600); err != nil {
		r.Fatal(err)
	}
	out := r.until("job 2", "long.sh", "Completed")
	if strings.Contains(out, "retried") {
		r.Errorf("the task was run again:\n%s", out)
	}
}

// backUpAndRestore makes a backup while the site serves. Then the site continues, loses all hosts, and is restored.
func (r *racks) backUpAndRestore() {
	all := []string{"rack1", "rack2", "rack3"}
	before := r.do("account")
	r.do("backup --state rack2 west-monday", "has the backup of site west")
	r.do("submit --chdir - --script --budget 10 --wait --timeout 60s job.sh", "Completed") // the restoration loses this job
	r.end(syscall.SIGKILL, all...)
	r.endExecutors()
	for _, host := range all {
		if err := os.Rename(filepath.Join(r.dir, host), filepath.Join(r.dir, host+".before")); err != nil {
			r.Fatal(err)
		}
		r.do("restore west-monday --state "+host+" --host "+host+" --keys keys", "has site west as it was at")
	}
	r.startAll("site.yaml")
	if after := r.do("account"); after != before {
		r.Errorf("restored, the account is\n%s, and was\n%s", after, before)
	}
	r.do("bank verify", "The books verify", "byte for byte")
	r.until("replica list", "The auctioneer can lose 1 more replica", "The bank can lose 1 more replica")
}

// replace puts the new host rack4 in the place of rack2. The host rack2 is lost with its disk.
func (r *racks) replace() {
	r.end(syscall.SIGKILL, "rack2")
	if err := os.RemoveAll(filepath.Join(r.dir, "rack2")); err != nil {
		r.Fatal(err)
	}
	r.until("replica list", "auctioneer rack2 Silent", "bank rack2 Silent", "The bank can lose no replica")
	h := r.newHost("rack4", "node2")
	h.Joins = true
	r.config.Hosts = []embedded.Host{r.config.Hosts[0], r.config.Hosts[2], h}
	r.write("site-new.yaml")
	r.do("config check site-new.yaml", "nothing is wrong")
	p := r.start("rack4", "site-new.yaml")
	r.until("replica add auctioneer rack4 --address "+h.Auctioneer, "auctioneer rack4 Follows")
	r.until("replica add bank rack4 --address "+h.Bank, "bank rack4 Follows")
	r.up(p)
	r.do("replica remove auctioneer rack2", "The auctioneer can lose 1 more replica")
	r.do("replica remove bank rack2", "The bank can lose 1 more replica")
	r.until("site drop rack2 --config site-new.yaml --keys keys --state rack1", "no longer has a server west-rack2")
	r.until("nodes", "node1 Up", "node2 Up", "node3 Up")
	if out := r.try("replica remove bank rack1"); !strings.Contains(out, "add another replica first") {
		r.Errorf("removing a replica that is needed prints\n%s", out)
	}
	// The other hosts read the new configuration at their next start.
	for _, host := range []string{"rack3", "rack1"} {
		r.stop(host)
		r.up(r.start(host, "site-new.yaml"))
	}
	r.until("replica list", "The auctioneer can lose 1 more replica", "The bank can lose 1 more replica")
}

// rotate rotates keys, and revokes leaked credentials.
func (r *racks) rotate() {
	flags := " --config site-new.yaml --keys keys --state rack1"
	r.do("site rotate user-role" + flags)
	r.until("user add alice"+flags, "alice.creds")
	r.do("site rotate user-role --finish"+flags, "The rotation of key user-role has ended")
	r.until("account", "Account alice")
	leaked, err := os.ReadFile(filepath.Join(r.dir, "rack1", "creds", "alice.creds"))
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "leaked.creds"), leaked, 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.do("account --account alice --creds leaked.creds", "Account alice")
	r.do("user revoke alice"+flags, "revoked")
	r.until("account --account alice --creds leaked.creds", "does not accept the credentials of alice in")
	r.until("account", "Account alice")
	next := strings.TrimSpace(r.do("site rotate bank" + flags))
	r.do("site rotate bank --finish"+flags, "has ended")
	r.until("peer list", next)
	r.do("site rotate operator" + flags)
	for _, host := range []string{"rack3", "rack4", "rack1"} {
		r.stop(host)
		r.up(r.start(host, "site-new.yaml"))
	}
	r.do("site rotate operator --finish"+flags, "has ended")
}
