package runbook

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// racks is a site of three hosts, each a process with a state directory of its own, as
// the runbook has it, and an operator who works on the first.
type racks struct {
	*operator
	config embedded.Config
	hosts  map[string]*rack
}

// rack is a host's process.
type rack struct {
	*exec.Cmd
	said  *said
	ended chan struct{}
}

// said keeps what a process prints, and tells when it has said a text.
type said struct {
	mu    sync.Mutex
	text  strings.Builder
	await string
	found chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	if s.await != "" && strings.Contains(s.text.String(), s.await) {
		s.await = ""
		close(s.found)
	}
	return len(b), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newRacks(t *testing.T, binary string) *racks {
	t.Helper()
	r := &racks{operator: &operator{T: t, binary: binary, dir: t.TempDir()}, hosts: map[string]*rack{}}
	r.config = embedded.Default()
	r.config.State = filepath.Join(r.dir, "state")
	r.config.Replicas, r.config.Lease = 0, messages.Duration(5*time.Second)
	r.config.Accounts = r.config.Accounts[:1]
	r.config.Nodes = embedded.NodesAlike(3, r.config.Nodes[0].Slots)
	for i := range 3 {
		r.config.Hosts = append(r.config.Hosts, r.newHost(fmt.Sprintf("rack%d", i+1), fmt.Sprintf("node%d", i+1)))
	}
	r.write("site.yaml")
	if _, err := identity.Create(filepath.Join(r.dir, "keys"), r.config.Site); err != nil {
		t.Fatal(err)
	}
	// The operator's state directory is the first host's.
	if err := os.Symlink("rack1", filepath.Join(r.dir, "state")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.stop("rack1", "rack2", "rack3", "rack4")
		r.endExecutors()
	})
	return r
}

func (r *racks) newHost(name, node messages.Name) embedded.Host {
	h := embedded.Host{Name: name, Nodes: []messages.Name{node}}
	for _, address := range []*string{&h.Listen, &h.Cluster, &h.Auctioneer, &h.Bank} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.Fatal(err)
		}
		*address = l.Addr().String()
		if err := l.Close(); err != nil {
			r.Fatal(err)
		}
	}
	return h
}

// write writes the configuration: JSON is YAML.
func (r *racks) write(file string) {
	r.Helper()
	text, err := json.Marshal(&r.config)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, file), text, 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// start begins a host's process.
func (r *racks) start(host, config string) *rack {
	r.Helper()
	out := &said{await: "is up", found: make(chan struct{})}
	p := &rack{Cmd: exec.Command(r.binary, "up", "--config", filepath.Join(r.dir, config), "--host", host, "--keys", filepath.Join(r.dir, "keys"),
		"--state", filepath.Join(r.dir, host), "--leave-running", "--log-level", "warn"), said: out, ended: make(chan struct{})}
	p.Stdout, p.Stderr = out, out
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	r.hosts[host] = p
	return p
}

func (r *racks) up(hosts ...*rack) {
	r.Helper()
	late := time.After(patience)
	for _, p := range hosts {
		select {
		case <-p.said.found:
		case <-p.ended:
			r.Fatalf("%v ended:\n%s", p.Args, p.said)
		case <-late:
			r.Fatalf("%v is not up:\n%s", p.Args, p.said)
		}
	}
}

func (r *racks) startAll(config string) {
	r.Helper()
	r.up(r.start("rack1", config), r.start("rack2", config), r.start("rack3", config))
}

// stop interrupts hosts, as systemctl stop does, and waits for their end.
func (r *racks) stop(hosts ...string) { r.end(syscall.SIGTERM, hosts...) }

func (r *racks) end(signal syscall.Signal, hosts ...string) {
	for _, host := range hosts {
		if p := r.hosts[host]; p != nil {
			_ = p.Process.Signal(signal) // it may have ended before
		}
	}
	for _, host := range hosts {
		p := r.hosts[host]
		if p == nil {
			continue
		}
		delete(r.hosts, host)
		select {
		case <-p.ended:
		case <-time.After(patience):
			_ = p.Process.Kill()
			r.Errorf("%s did not end:\n%s", host, p.said)
		}
	}
}

// threeHosts carries out what the runbook says of hosts and keys, one after another on
// one site, with jobs before, between and after.
func threeHosts(t *testing.T, binary string) {
	r := newRacks(t, binary)
	r.startAll("site.yaml")
	jobs := 0
	work := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, "job.sh"), []byte("echo hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		jobs++
		out := r.try("submit --script --budget 10 --wait --timeout 60s job.sh")
		if !strings.Contains(out, "Completed") {
			_, id, _ := strings.Cut(out, "Submitted job ")
			id, _, _ = strings.Cut(id, " ")
			for host, p := range r.hosts {
				t.Logf("%s says:\n%s", host, p.said)
			}
			t.Fatalf("%s\n%s\n%s", out, r.try("job "+id), r.try("logs "+id+" --stderr"))
		}
	}
	work()
	r.upgrade(work)
	work()
	r.backUpAndRestore()
	work()
	r.replace()
	work()
	r.rotate()
	work()
	r.do("account", fmt.Sprintf("Spent, ever    %d credits", 10*jobs+longBudget))
	r.do("bank verify", "The books verify", "signed by the site's key")
}

// longBudget is the budget of the job that runs through an upgrade, in credits.
const longBudget = 20

// upgrade restarts one host after another under a task that runs on through it.
func (r *racks) upgrade(work func()) {
	release := filepath.Join(r.dir, "release")
	script := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done\n", release)
	if err := os.WriteFile(filepath.Join(r.dir, "long.sh"), []byte(script), 0o600); err != nil {
		r.Fatal(err)
	}
	r.do(fmt.Sprintf("submit --script --budget %d long.sh", longBudget), "Submitted job")
	for _, host := range []string{"rack2", "rack3", "rack1"} {
		r.stop(host)
		r.up(r.start(host, "site.yaml"))
		r.until("nodes", "node1 Up", "node2 Up", "node3 Up")
		r.until("replica list", "The auctioneer can lose 1 replica more", "The bank can lose 1 replica more")
		work()
	}
	r.do("jobs --active", "long.sh", "Running")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		r.Fatal(err)
	}
	out := r.until("job 2", "long.sh", "Completed")
	if strings.Contains(out, "retried") {
		r.Errorf("the task was run again:\n%s", out)
	}
}

// backUpAndRestore copies the directories of stopped hosts, goes on, and goes back.
func (r *racks) backUpAndRestore() {
	all := []string{"rack1", "rack2", "rack3"}
	before := r.do("account")
	r.stop(all...)
	for _, host := range all {
		r.tar("-C", host, "-cf", host+".tar", ".")
	}
	r.do("bank verify --history rack1/bank/rack1", "The books verify", "signed by the site's key")
	r.startAll("site.yaml")
	r.do("submit --script --budget 10 --wait --timeout 60s job.sh", "Completed") // is lost by the restoration
	r.stop(all...)
	r.endExecutors()
	for _, host := range all {
		if err := os.Rename(filepath.Join(r.dir, host), filepath.Join(r.dir, host+".before")); err != nil {
			r.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(r.dir, host), 0o711); err != nil {
			r.Fatal(err)
		}
		r.tar("-C", host, "-xf", host+".tar")
	}
	r.startAll("site.yaml")
	if after := r.do("account"); after != before {
		r.Errorf("restored, the account is\n%s, and was\n%s", after, before)
	}
	r.do("bank verify", "The books verify")
}

// endExecutors ends what "systemctl stop" leaves running, as "systemctl kill" does:
// the executors of the program under test, and with them their tasks.
func (r *racks) endExecutors() {
	r.Helper()
	r.eachExecutor(func(p *os.Process) { _ = p.Signal(syscall.SIGKILL) }) // it may end by itself
	every, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer every.Stop()
	for left := 1; left > 0; {
		left = 0
		r.eachExecutor(func(*os.Process) { left++ })
		select {
		case <-every.C:
		case <-late:
			r.Fatalf("%d executors are still there", left)
		}
	}
}

func (r *racks) eachExecutor(do func(*os.Process)) {
	r.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range commands {
		text, _ := os.ReadFile(file) // a process that has ended has none
		if !strings.HasPrefix(string(text), r.binary+"\x00executor\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			r.Fatal(err)
		}
		if p, err := os.FindProcess(pid); err == nil {
			do(p)
		}
	}
}

func (r *racks) tar(arguments ...string) {
	r.Helper()
	c := exec.CommandContext(r.Context(), "tar", arguments...)
	c.Dir = r.dir
	if out, err := c.CombinedOutput(); err != nil {
		r.Fatalf("tar %v: %v\n%s", arguments, err, out)
	}
}

// replace has rack4 take the place of rack2, which is lost with its disk.
func (r *racks) replace() {
	r.end(syscall.SIGKILL, "rack2")
	if err := os.RemoveAll(filepath.Join(r.dir, "rack2")); err != nil {
		r.Fatal(err)
	}
	r.until("replica list", "auctioneer rack2 Silent", "bank rack2 Silent", "The bank can lose 0 replicas more")
	h := r.newHost("rack4", "node2")
	h.Joins = true
	r.config.Hosts = []embedded.Host{r.config.Hosts[0], r.config.Hosts[2], h}
	r.write("site-new.yaml")
	r.do("config check site-new.yaml", "nothing is wrong")
	p := r.start("rack4", "site-new.yaml")
	r.until("replica add auctioneer rack4 --address "+h.Auctioneer, "auctioneer rack4 Follows")
	r.until("replica add bank rack4 --address "+h.Bank, "bank rack4 Follows")
	r.up(p)
	r.do("replica remove auctioneer rack2", "The auctioneer can lose 1 replica more")
	r.do("replica remove bank rack2", "The bank can lose 1 replica more")
	r.until("site drop rack2 --config site-new.yaml --keys keys --state rack1", "have forgotten west-rack2")
	r.until("nodes", "node1 Up", "node2 Up", "node3 Up")
	if out := r.try("replica remove bank rack1"); !strings.Contains(out, "add another first") {
		r.Errorf("removing a replica that is needed prints\n%s", out)
	}
	// The others take the new configuration when they are next started.
	for _, host := range []string{"rack3", "rack1"} {
		r.stop(host)
		r.up(r.start(host, "site-new.yaml"))
	}
	r.until("replica list", "The auctioneer can lose 1 replica more", "The bank can lose 1 replica more")
}

// rotate replaces keys, and makes credentials that leaked worthless.
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
	r.do("user revoke alice"+flags, "opens nothing any more")
	r.until("account --account alice --creds leaked.creds", "does not accept account alice")
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
