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
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// racks is a site of three hosts, as in the runbook. Each is a process with a separate state directory. The operator
// works on the first.
type racks struct {
	*operator
	config embedded.Config
	hosts  map[string]*await.Process
	given  int // number of addresses that were given out, one for each host
}

func newRacks(t *testing.T, binary string) *racks {
	t.Helper()
	r := &racks{operator: &operator{T: t, binary: own(t, binary), dir: t.TempDir()}, hosts: map[string]*await.Process{}}
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
	if err := os.Symlink("rack1", filepath.Join(r.dir, "state")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.stop("rack1", "rack2", "rack3", "rack4")
		r.endExecutors()
	})
	return r
}

// newHost returns a host with a separate loopback address, and free ports there, which no other host or connection
// uses.
func (r *racks) newHost(name, node messages.Name) embedded.Host {
	h := embedded.Host{Name: name, Nodes: []messages.Name{node}}
	r.given++
	for _, address := range []*string{&h.Listen, &h.Cluster, &h.Auctioneer, &h.Bank} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.78.%d:0", r.given))
		if err != nil {
			r.Fatal(err)
		}
		defer l.Close()
		*address = l.Addr().String()
	}
	return h
}

// The file is written as JSON, which is also valid YAML.
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

func (r *racks) start(host, config string) *await.Process {
	r.Helper()
	p := await.Start(r, exec.Command(r.binary, "up", "--config", filepath.Join(r.dir, config), "--host", host, "--keys", filepath.Join(r.dir, "keys"),
		"--state", filepath.Join(r.dir, host), "--leave-running", "--log-level", "warn"), "is up")
	r.hosts[host] = p
	return p
}

func (r *racks) up(hosts ...*await.Process) {
	r.Helper()
	for _, p := range hosts {
		r.happens(patience, p.Found, p.Ended)
		select {
		case <-p.Found:
		default:
			r.Fatalf("%v ended, or is not up:\n%s", p.Args, p.Output)
		}
	}
}

func (r *racks) startAll(config string) {
	r.Helper()
	r.up(r.start("rack1", config), r.start("rack2", config), r.start("rack3", config))
}

func (r *racks) stop(hosts ...string) { r.end(syscall.SIGTERM, hosts...) }

func (r *racks) end(signal syscall.Signal, hosts ...string) {
	for _, host := range hosts {
		if p := r.hosts[host]; p != nil {
			_ = p.Process.Signal(signal) // the process may have ended already
		}
	}
	for _, host := range hosts {
		p := r.hosts[host]
		if p == nil {
			continue
		}
		delete(r.hosts, host)
		if !r.happens(patience, p.Ended, nil) {
			_ = p.Process.Kill()
			r.Errorf("%s did not end:\n%s", host, p.Output)
		}
	}
}

// endExecutors ends the executors of the program under test, and their tasks end with them. After "systemctl stop",
// executors and tasks still run. On a real host, "systemctl kill" would end them.
func (r *racks) endExecutors() {
	r.Helper()
	r.eachExecutor(func(p *os.Process) { _ = p.Signal(syscall.SIGKILL) }) // an executor may end by itself
	left := 0
	gone := r.turns(patience, func() bool {
		left = 0
		r.eachExecutor(func(*os.Process) { left++ })
		return left == 0
	})
	if !gone {
		r.Fatalf("%d executors are still there", left)
	}
}

func (r *racks) eachExecutor(do func(*os.Process)) {
	r.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range commands {
		text, _ := os.ReadFile(file) // a process that has ended has no such file
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
