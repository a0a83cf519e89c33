package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// ensemble is a site in which each actor is a separate process. There are three replicas of the auctioneer, three
// replicas of the bank, the agent of a node with one slot, and its executor. The NATS server runs in the process of the
// test.
type ensemble struct {
	*cluster
	url    string
	creds  map[string]string // credentials file of each actor
	frozen []int
}

const onlyNode = "node1"

func newEnsemble(t *testing.T) *ensemble {
	e := &ensemble{cluster: newCluster(t), creds: map[string]string{}}
	reserve := messages.Price(messages.Credit / 100)
	e.Markets = []market.Market{{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}, Reserve: &reserve}}
	e.Nodes = []Node{{Name: onlyNode, Slots: Slots{{Class: "cpu", Slots: 1}}}}
	for i := range e.Hosts {
		e.Hosts[i].Nodes = nil
	}
	e.Hosts[0].Nodes = []messages.Name{onlyNode}
	e.Listen = "127.0.0.1:0"
	e.Tasks.User = runner.UserSelf // tasks run as this user, because they report to the test by files
	text, err := json.Marshal(&e.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	e.serve()
	for _, h := range e.Hosts {
		e.begin(messages.Auctioneer, h.Name)
		e.begin(messages.Bank, h.Name)
	}
	e.begin(messages.NodeAgent, e.Hosts[0].Name)
	return e
}

func (e *ensemble) serve() {
	authority, err := identity.OpenOrCreate(e.Keys, e.Site)
	if err != nil {
		e.Fatal(err)
	}
	options, err := serverOptions(&e.Config, nil, authority)
	if err != nil {
		e.Fatal(err)
	}
	s, err := startServer(options, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	e.Cleanup(e.stopAll) // this runs before the server is stopped, because cleanups run in reverse order
	e.url = s.ClientURL()
	if err := writeCredentials(&e.Config, authority); err != nil {
		e.Fatal(err)
	}
	for actor, as := range map[string]struct {
		role identity.Role
		name messages.Name
	}{
		messages.Auctioneer: {identity.Service, messages.ServiceIdentity(messages.Auctioneer)},
		messages.Bank:       {identity.Service, messages.ServiceIdentity(messages.Bank)},
		messages.NodeAgent:  {identity.Node, onlyNode},
	} {
		if e.creds[actor], err = WriteCredentials(e.State, authority, as.role, as.name); err != nil {
			e.Fatal(err)
		}
	}
}

func (e *ensemble) begin(actor string, host messages.Name) {
	e.Helper()
	args := []string{actor, "--config", e.config, "--host", host, "--state", e.State, "--log-level", "error",
		"--server", e.url, "--creds", e.creds[actor]}
	if actor == messages.NodeAgent {
		args = append(args, "--node", onlyNode)
	}
	if actor == messages.Bank { // hosts of the auctioneer get the site's keys; hosts of the bank do not
		args = append(args, "--certificate", e.certificate(host))
	}
	command := exec.Command(e.binary, args...)
	command.Env = append(os.Environ(), "GOMAXPROCS=1") // one thread for each process, because eight of them run
	e.processes[actor+"/"+host] = await.Start(e, command, "")
}

func (e *ensemble) certificate(host messages.Name) string {
	e.Helper()
	file := filepath.Join(e.dir, host+"-bank.pem")
	made := exec.Command(e.binary, "site", "certify", host, "--replica", messages.Bank, "--config", e.config, "--output", file)
	if out, err := made.CombinedOutput(); err != nil {
		e.Fatalf("%v: %v\n%s", made.Args, err, out)
	}
	return file
}

func (e *ensemble) as(name messages.Name) user {
	e.Helper()
	b, err := bus.Connect(bus.Config{URL: e.url, Name: name, CredsFile: CredsFile(e.State, name), Retry: true})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = b.Close() })
	return user{e.T, b, e.Site, name}
}

func (e *ensemble) pids(actor string, but messages.Name) (out []int) {
	for name, p := range e.processes {
		if host, is := strings.CutPrefix(name, actor+"/"); is && host != but {
			out = append(out, p.Process.Pid)
		}
	}
	return out
}

// executor returns the parent process of the tasks, or 0 if there is none.
func (e *ensemble) executor() int {
	found := 0
	eachProcess(func(pid int, command []string, _ string) {
		if len(command) > 1 && command[0] == e.binary && command[1] == "executor" {
			found = pid
		}
	})
	return found
}

// eachProcess calls f for each process of the machine that the test may inspect.
func eachProcess(f func(pid int, command []string, environ string)) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if len(command) > 0 {
			f(pid, strings.Split(string(command), "\x00"), string(environ))
		}
	}
}

// freeze stops processes until thaw is called.
func (e *ensemble) freeze(pids ...int) {
	e.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			e.Fatalf("process %d: %v", pid, err)
		}
	}
	e.frozen = append(e.frozen, pids...)
}

func (e *ensemble) thaw() {
	for _, pid := range e.frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	e.frozen = nil
}

// victims are the kinds of processes that a test can kill.
var victims = []string{"agent", "executor", "auctioneer", "bank"}

type target struct {
	pid  int
	name string // name of the process in e.processes; "" means an executor, which its agent starts again
}

// find returns the process with the name `victim`. If `victim` is the name of a group of replicas, find returns the
// leader's process.
func (e *ensemble) find(operator user, victim string) target {
	e.Helper()
	name := ""
	switch victim {
	case "executor":
		return target{pid: e.executor()}
	case "agent":
		name = messages.NodeAgent + "/" + e.Hosts[0].Name
	default:
		name = victim + "/" + operator.leader(victim)
	}
	p := e.processes[name]
	if p == nil {
		e.Fatalf("there is no process %q, but %v", name, slices.Sorted(maps.Keys(e.processes)))
	}
	return target{p.Process.Pid, name}
}

// strike kills a process with kill -9, and starts it again. An executor is started again by its agent.
func (e *ensemble) strike(t target) {
	e.Helper()
	if err := syscall.Kill(t.pid, syscall.SIGKILL); err != nil {
		e.Fatalf("%+v: %v", t, err)
	}
	if t.name == "" {
		await.Until(e, fmt.Sprintf("process %d is gone", t.pid), func() bool { return syscall.Kill(t.pid, 0) != nil || zombie(t.pid) })
		return
	}
	<-e.processes[t.name].Ended
	actor, host, _ := strings.Cut(t.name, "/")
	e.begin(actor, host)
}

// zombie reports whether a process has ended and its parent has not collected its exit code yet.
func zombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
