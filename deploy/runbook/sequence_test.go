package runbook

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// operator carries out commands of the runbook on a site of one process.
type operator struct {
	*testing.T
	binary, dir string
}

// begin starts a process of the program, and returns when it has printed what is
// awaited. It is interrupted when the test ends.
func (o *operator) begin(awaited string, arguments ...string) {
	o.Helper()
	command := exec.Command(o.binary, arguments...)
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		o.Fatal(err)
	}
	found, ended := make(chan struct{}), make(chan struct{})
	go func() {
		once := found
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if once != nil && strings.Contains(lines.Text(), awaited) {
				close(once)
				once = nil
			}
		}
	}()
	go func() {
		_ = command.Wait() // how it ends is not what is looked at
		_ = write.Close()
		close(ended)
	}()
	o.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended before
		<-ended
	})
	select {
	case <-found:
	case <-ended:
		o.Fatalf("candor %s ended", strings.Join(arguments, " "))
	case <-time.After(patience):
		o.Fatalf("candor %s did not say %q", strings.Join(arguments, " "), awaited)
	}
}

// do runs a command against the site, and wants it to print all of that.
func (o *operator) do(command string, wants ...string) string {
	o.Helper()
	c := exec.CommandContext(o.Context(), o.binary, strings.Fields(command)...)
	c.Dir, c.Env = o.dir, append(os.Environ(), "NO_COLOR=1", "CANDOR_STATE="+filepath.Join(o.dir, "state"))
	out, err := c.CombinedOutput()
	if err != nil {
		o.Fatalf("candor %s: %v\n%s", command, err, out)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			o.Errorf("candor %s does not print %q, but\n%s", command, want, out)
		}
	}
	return string(out)
}

// addAndDrain carries out what the runbook says of nodes, and looks through the
// books as it does.
func addAndDrain(t *testing.T, binary string) {
	o := &operator{T: t, binary: binary, dir: t.TempDir()}
	state := filepath.Join(o.dir, "state")
	o.begin("site west is up", "up", "--nodes", "2", "--listen", "127.0.0.1:0", "--state", state)
	configuration := o.do("config show --nodes 4")
	if err := os.WriteFile(filepath.Join(o.dir, "agents.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	o.do("config check agents.yaml", "agents.yaml: nothing is wrong: site west")
	creds := strings.TrimSpace(o.do("user add node4 --node --config agents.yaml --keys state/keys --state node4-creds", "node4.creds"))
	o.begin("registered", "nodeagent", "--config", filepath.Join(o.dir, "agents.yaml"), "--node", "node4", "--server", o.server(),
		"--creds", filepath.Join(o.dir, "node4-creds", "creds", "nodes", filepath.Base(creds)), "--state", filepath.Join(o.dir, "node4"))
	o.do("nodes", "node1  Up", "node2  Up", "node4  Up")
	o.do("node drain node2 --notice 10m", "Node node2 takes no more work; 0 tasks may go on there until ")
	o.do("nodes", "node1  Up", "node2  Draining")
	o.do("node drain node2 --undo", "Node node2 takes work again")
	o.do("nodes", "node2  Up")
	o.do("books --full", "The books balance", "the balances sum to what was issued")
	o.do("bank verify", "The books verify")
}

// server is where the site listens.
func (o *operator) server() string {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, "state", "site.json"))
	if err != nil {
		o.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"server"`)
	fields := strings.Split(rest, `"`)
	if len(fields) < 2 {
		o.Fatalf("site.json names no server: %s", text)
	}
	return fields[1]
}
