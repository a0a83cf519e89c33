package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// delay is the body of a hostile process. It tries to delay other processes of the same user when they start, in one of
// several ways, and prints a line when it does.
func delay(how string, args []string) {
	if do := leaving[how]; do != nil {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	switch how {
	case "stop":
		fmt.Println("begun")
		for {
			_ = unix.Kill(-1, unix.SIGSTOP)
		}
	case "lease":
		signal.Ignore(unix.SIGIO)
		f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err == nil {
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		}
		fmt.Println("begun", err)
	case "serve":
		listener, err := net.Listen("tcp", args[0])
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("begun at", listener.Addr().(*net.TCPAddr).Port)
		if c, err := listener.Accept(); err == nil {
			_ = listener.Close() // it accepts one connection
			_, _ = c.Write([]byte("of the task"))
			defer c.Close()
		}
		time.Sleep(time.Hour)
	case "backlog":
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		raw, _ := listener.(*net.TCPListener).SyscallConn()
		_ = raw.Control(func(fd uintptr) { _ = unix.Listen(int(fd), 0) })
		for range 3 {
			go net.DialTimeout("tcp4", listener.Addr().String(), time.Hour)
		}
		for { // until the backlog is full
			if c, err := net.DialTimeout("tcp4", listener.Addr().String(), 100*time.Millisecond); err != nil {
				break
			} else {
				defer c.Close()
			}
		}
		fmt.Println("begun at", listener.Addr().(*net.TCPAddr).Port)
	}
	select {}
}

// waits are the ways in which processes of an account can delay a start or other work for the account.
var waits = []struct {
	name string
	// The function attack makes the node do some work that the task `holder` delays. `said` is the line that this task
	// has printed. `dir` is the directory of the task's account.
	attack func(b *bench, dir string, holder *started, said string)
	delay  func(dir string) string // command of the holder
	limits cell.Limits
}{
	{"stop between the change of user and the execution", stopStarts, func(string) string { return "stop" }, cell.Limits{}},
	{"the same with a thread for each cell", stopStarts, func(string) string { return "stop" }, cell.Limits{Memory: 1 << 30}},
	{"lease on the program", func(b *bench, dir string, _ *started, _ string) {
		for range 3 {
			b.start(of("mallory", 66, agent.Program{Dir: dir, Command: []string{dir + "/leased"}}))
		}
	}, func(dir string) string { return "lease " + dir + "/leased" }, cell.Limits{}},
	{"lease on the interpreter", func(b *bench, dir string, _ *started, _ string) {
		b.start(of("mallory", 66, agent.Program{Dir: dir, Script: "#!" + dir + "/leased\n"}))
	}, func(dir string) string { return "lease " + dir + "/leased" }, cell.Limits{}},
	{"lease on a command beside a task", func(b *bench, dir string, holder *started, _ string) {
		f := b.follow(holder.attempt, "a", "one")
		f.request.Begin = &agent.StreamBegin{Command: []string{dir + "/leased"}}
		go b.Stream(context.Background(), f.request)
	}, func(dir string) string { return "lease " + dir + "/leased" }, cell.Limits{}},
	{"port whose backlog is full", func(b *bench, _ string, holder *started, said string) {
		f := b.follow(holder.attempt, "a", "one")
		f.request.Begin = new(agent.StreamBegin)
		if _, err := fmt.Sscanf(said, "begun at %d", &f.request.Begin.Port); err != nil {
			b.t.Fatalf("%q: %v", said, err)
		}
		go b.Stream(context.Background(), f.request)
	}, func(string) string { return "backlog" }, cell.Limits{}},
}

// A task of an attacker stops all processes of the attacker's account. stopStarts starts more tasks of this account, so
// that some process is stopped half-way through its start.
func stopStarts(b *bench, dir string, _ *started, _ string) {
	for range 60 {
		b.start(of("mallory", 66, agent.Program{Command: []string{"true"}}))
	}
}

// TestNobodyWaitsForAnotherAccount lets processes of one account delay starts and other work. The list `waits` has the
// ways in which they do this. Meanwhile a task of another account must start at once.
func TestNobodyWaitsForAnotherAccount(t *testing.T) {
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			b := strangers(t, func(c *runner.Config) { c.Limits = w.limits })
			dir, err := os.MkdirTemp("/var/tmp", "candor")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := errors.Join(os.Chmod(dir, 0o777), os.Rename(filepath.Join(openDir(t), "attack"), filepath.Join(dir, "attack"))); err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf("cp /bin/true %s/leased; chmod 755 %s/leased; exec %s/attack delay %s", dir, dir, dir, w.delay(dir))
			hold := of("mallory", 66, sh(script))
			hold.Dir = dir
			holder := b.start(hold)
			said := b.read(holder, false)
			if !strings.HasPrefix(said, "begun") || strings.Contains(said, "error") {
				t.Fatalf("%q %q", said, b.read(holder, true))
			}
			w.attack(b, dir, holder, said)
			for range 5 {
				within(t, "another account's task", func() {
					if f := b.start(of("alice", 7, agent.Program{Command: []string{"true"}})).wait(); f.ExitCode != 0 {
						t.Errorf("%+v", f)
					}
				})
			}
			within(t, "an order to its own task", func() { holder.Suspend(true); holder.Suspend(false); holder.Stop(0) })
			within(t, "the end of all", func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// within fails the test if the function `do` takes 5 s or longer. A task that delays `do` by a lease on a file would
// delay it by 45 s.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	const soon = 5 * time.Second // enough on a busy machine; a lease delays for 45 s
	done := make(chan struct{})
	began := time.Now()
	go func() { defer close(done); do() }()
	select {
	case <-done:
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	case <-time.After(soon):
		t.Fatalf("%s waits", what)
	}
}

// TestAStartHoldsNoFileOfTheNode delays the execution of a program. While the child waits, its only open files must be
// its input, output and error output. It must have none of this process's locks and sockets.
func TestAStartHoldsNoFileOfTheNode(t *testing.T) {
	b := strangers(t, nil)
	dir, err := os.MkdirTemp("/var/tmp", "candor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o777), os.Rename(filepath.Join(openDir(t), "attack"), filepath.Join(dir, "attack"))); err != nil {
		t.Fatal(err)
	}
	hold := of("mallory", 66, sh(fmt.Sprintf("cp /bin/true leased; exec %s/attack delay lease %s/leased", dir, dir)))
	hold.Dir = dir
	holder := b.start(hold)
	if said := b.read(holder, false); !strings.HasPrefix(said, "begun <nil>") {
		t.Fatalf("%q %q", said, b.read(holder, true))
	}
	waits := b.start(of("mallory", 66, agent.Program{Dir: dir, Command: []string{dir + "/leased"}}))
	own, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var open []os.DirEntry
	await.Until(t, "a child that has not executed the program is there", func() bool {
		children, _ := filepath.Glob("/proc/self/task/*/children")
		for _, file := range children {
			text, _ := os.ReadFile(file)
			for _, pid := range strings.Fields(string(text)) {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				status, _ := os.ReadFile("/proc/" + pid + "/status")
				if string(line) == string(own) && !strings.Contains(string(status), "\nUid:\t0\t") {
					open, err = os.ReadDir("/proc/" + pid + "/fd")
					return err == nil
				}
			}
		}
		return false
	})
	if len(open) != 3 {
		t.Errorf("it has %d files: %v", len(open), open)
	}
	holder.Stop(0)
	waits.Stop(0)
	holder.wait()
	waits.wait()
}

// TestTasksIgnoreNoSignal starts a site with ignored and blocked signals. Its tasks must start with no signal ignored
// or blocked.
func TestTasksIgnoreNoSignal(t *testing.T) {
	const mark = "CANDOR_TEST_IGNORES"
	if os.Getenv(mark) == "" {
		again := exec.Command("sh", "-c", `trap "" HUP USR1; exec "$0" -test.run '^TestTasksIgnoreNoSignal$'`, os.Args[0])
		again.Env = append(os.Environ(), mark+"=yes")
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	for _, noCells := range []bool{false, true} {
		b := newBench(t, func(c *runner.Config) { c.NoCells = noCells })
		said := b.read(b.start(agent.Program{Command: []string{"grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"}}), false)
		if said != "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" {
			t.Errorf("without cells: %v: %q", noCells, said)
		}
	}
}

// TestNobodysEndWaitsForAStart runs without control groups and rooms. So the process itself must distinguish two kinds
// of its child processes: orphans of tasks, and tasks that it has started. The start of one task is delayed. Meanwhile
// the task of another account must end without delay. Orphans of the ended task must be killed.
func TestNobodysEndWaitsForAStart(t *testing.T) {
	const mark = "CANDOR_TEST_ADOPTS"
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if os.Getenv(mark) == "" { // in another process: this one would adopt the orphans of other tests
		again := exec.Command(os.Args[0], "-test.run", "^TestNobodysEndWaitsForAStart$")
		again.Env = append(os.Environ(), mark+"=yes")
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	state, err := os.MkdirTemp("/var/tmp", "candor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	if err := errors.Join(os.Chmod(state, 0o777), os.Rename(filepath.Join(openDir(t), "attack"), filepath.Join(state, "attack"))); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *runner.Config) {
		c.User, c.NoCells, c.Alone, c.Dir = "100000-165535", true, true, filepath.Join(state, "node")
	})
	hold := of("mallory", 66, sh(fmt.Sprintf("cp /bin/true leased; exec %s/attack delay lease %s/leased", state, state)))
	hold.Dir = state
	if said := b.read(b.start(hold), false); !strings.HasPrefix(said, "begun <nil>") {
		t.Fatalf("%q", said)
	}
	b.start(of("mallory", 66, agent.Program{Dir: state, Command: []string{state + "/leased"}}))
	ends := of("alice", 7, sh("setsid sleep 1000 & echo $!"))
	soonest := time.Hour
	for range 5 {
		began := time.Now()
		s := b.start(ends)
		if f := s.wait(); f.ExitCode != 0 {
			t.Errorf("%+v", f)
		}
		soonest = min(soonest, time.Since(began))
		orphan := strings.TrimSpace(b.read(s, false))
		await.Until(t, "what its task left is ended", func() bool { return unix.Access("/proc/"+orphan, unix.F_OK) != nil })
	}
	if soonest > time.Second {
		t.Errorf("another account's task takes %v while a start waits", soonest)
	}
}
