package runbook

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience limits the wait for something that must happen. It is a number of tries. A try takes at least a tenth of a
// second, and runs the program once, so the wait is longer on a busy machine.
const patience = 400

// turns calls the function `done` every 100 ms until it returns true, but at most `most` times. It reports whether
// `done` returned true.
func (o *operator) turns(most int, done func() bool) bool {
	o.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for range most {
		if done() {
			return true
		}
		<-every.C
		_ = exec.Command(o.binary, "--version").Run() // each try takes at least as long as a command
	}
	return done()
}

// happens waits until one of the two channels is closed, but checks at most `most` times. It reports whether a channel
// was closed.
func (o *operator) happens(most int, one, other <-chan struct{}) bool {
	o.Helper()
	return o.turns(most, func() bool {
		select {
		case <-one:
		case <-other:
		default:
			return false
		}
		return true
	})
}

// operator carries out commands of the runbook on a site in one process.
type operator struct {
	*testing.T
	binary, dir string
}

// begin starts a process of the program, and returns when it has printed a text. The process is interrupted at the end
// of the test.
func (o *operator) begin(awaited string, arguments ...string) (kill func()) {
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
		_ = command.Wait() // the exit code of the process does not matter
		_ = write.Close()
		close(ended)
	}()
	o.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // an error does not matter: the process may have ended already
		<-ended
	})
	o.happens(patience, found, ended)
	select {
	case <-found:
	default:
		o.Fatalf("candor %s ended, or did not say %q", strings.Join(arguments, " "), awaited)
	}
	return func() {
		_ = command.Process.Kill()
		<-ended
	}
}

// do runs a command of candor against the site. Its output must contain all texts in `wants`.
func (o *operator) do(command string, wants ...string) string {
	o.Helper()
	out, err := o.run(command)
	if err != nil {
		o.Fatalf("candor %s: %v\n%s", command, err, out)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			o.Errorf("candor %s does not print %q, but\n%s", command, want, out)
		}
	}
	return out
}

// addAndDrain carries out the steps of the runbook that add and drain nodes, and the runbook's check of the books.
func addAndDrain(t *testing.T, binary string) {
	o := &operator{T: t, binary: binary, dir: t.TempDir()}
	state := filepath.Join(o.dir, "state")
	o.begin("site west is up", "up", "--nodes", "2", "--listen", "127.0.0.1:0", "--state", state)
	configuration := o.do("config show --nodes 4")
	if err := os.WriteFile(filepath.Join(o.dir, "agents.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	o.do("config check agents.yaml", "agents.yaml: nothing is wrong: site west")
	o.token("node4", "node4.token")
	o.begin("registered", "nodeagent", "--config", filepath.Join(o.dir, "agents.yaml"), "--node", "node4",
		"--join-file", filepath.Join(o.dir, "node4.token"), "--state", filepath.Join(o.dir, "node4"))
	o.do("nodes", "node1  Up", "node2  Up", "node4  Up")
	o.do("node tokens", "node4  Used")
	creds := strings.TrimSpace(o.do("user add node3 --node --config agents.yaml --keys state/keys --state node3-creds", "node3.creds"))
	o.begin("registered", "nodeagent", "--config", filepath.Join(o.dir, "agents.yaml"), "--node", "node3", "--server", o.server(),
		"--creds", filepath.Join(o.dir, "node3-creds", "creds", "nodes", filepath.Base(creds)), "--state", filepath.Join(o.dir, "node3"))
	o.do("nodes", "node3  Up", "node4  Up")
	o.do("node drain node2 --notice 10m", "Node node2 takes no more work; 0 tasks may run there until ")
	o.do("nodes", "node1  Up", "node2  Draining")
	o.do("node drain node2 --undo", "Node node2 takes work again")
	o.do("nodes", "node2  Up")
	o.do("books --full", "The books balance", "the balances sum to what was issued")
	o.do("bank verify", "The books verify")
}

// until repeats a command until it prints all of the texts. The width of columns does not matter.
func (o *operator) until(command string, wants ...string) string {
	o.Helper()
	var out, missing string
	printed := o.turns(patience, func() bool {
		out, missing = strings.Join(strings.Fields(o.try(command)), " "), ""
		for _, want := range wants {
			if !strings.Contains(out, want) {
				missing = want
			}
		}
		return missing == ""
	})
	if !printed {
		o.Fatalf("candor %s never prints %q, but\n%s", command, missing, out)
	}
	return out
}

func (o *operator) try(command string) string {
	out, err := o.run(command)
	if err != nil {
		return out + "\n" + err.Error()
	}
	return out
}

// run runs a command. If an ordinary user may not run it, run repeats it as the operator.
func (o *operator) run(command string) (string, error) {
	out, err := o.runAs("", command)
	if strings.Contains(out, "this command is for operators") {
		return o.runAs("operator", command)
	}
	return out, err
}

// commandEnds is the time after which a command counts as hung.
const commandEnds = 10 * time.Minute

// runAs runs a command as an account; with "", the command chooses the account. It kills a command that hangs.
func (o *operator) runAs(account, command string) (string, error) {
	bounded, cancel := context.WithTimeout(o.Context(), commandEnds)
	defer cancel()
	c := exec.CommandContext(bounded, o.binary, strings.Fields(command)...)
	c.WaitDelay = time.Second
	c.Dir, c.Env = o.dir, append(os.Environ(), "NO_COLOR=1", "CANDOR_STATE="+filepath.Join(o.dir, "state"), "CANDOR_ACCOUNT="+account)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (o *operator) token(node, file string) {
	o.Helper()
	c := exec.CommandContext(o.Context(), o.binary, "node", "token", node, "--expires", "1h")
	c.Env = append(os.Environ(), "CANDOR_STATE="+filepath.Join(o.dir, "state"), "CANDOR_ACCOUNT=operator")
	token, err := c.Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(o.dir, file), token, 0o600)
	}
	if err != nil {
		o.Fatal(err)
	}
}

// peerThatOwes carries out two procedures of the runbook, for the operators of both sites: what to do when a peer does
// not pay, and how two peers part by agreement.
func peerThatOwes(t *testing.T, binary string) {
	o := &operator{T: t, binary: binary, dir: t.TempDir()}
	o.begin("Stop with", "up", "--sites", "west,east", "--nodes", "1", "--listen", "127.0.0.1:0", "--state", filepath.Join(o.dir, "state"))
	o.do("--at east remit bob@west 120", "The bank has set aside 120 credits")
	o.until("account --account bob", "Available 1120 credits")
	o.until("peer list", "east 0 120 1000")
	o.do("peer reconcile east", "Instructions of east: 1 here, 1 at east; the books agree")
	o.do("peer limit east 0", "may owe up to 0 credits")
	o.do("--at east remit bob@west 10", "The bank has set aside 10 credits")
	o.until("--at east peer list", "west 120 0 1000 0 1000 3") // the instruction was answered, and no credits are held for it
	o.do("account --account bob", "Available      1120 credits")
	o.try("--at east settle --cycle 7")
	o.try("settle --cycle 7")
	o.until("settle", "Cycle 7 is complete", "east pays 120 credits to west")
	o.do("grant clearing--east 120", "Granted 120 credits")
	o.do("peer limit east 5000", "may owe up to 5000 credits")
	o.until("peer list", "east 0 0 5000")
	partByAgreement(o)
}

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
