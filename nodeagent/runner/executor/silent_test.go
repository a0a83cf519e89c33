package executor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// impatient returns a configuration whose client waits only a short time for an existing executor.
func impatient(dir string) Config {
	return Config{Command: []string{os.Args[0], Argument}, Runner: runner.Config{Site: "home", Node: "n1", Dir: dir},
		waits: waits{found: 100 * time.Millisecond, begun: patience, ends: 100 * time.Millisecond, tell: time.Millisecond, beat: time.Hour, beats: time.Hour}}
}

// TestAStoppedExecutorIsNamed opens a client while the executor's process is stopped. Open must fail in time with an
// error that names the process, and start no other executor.
func TestAStoppedExecutorIsNamed(t *testing.T) {
	dir := t.TempDir()
	k := openHere(t, dir)
	sleeper(t, k)
	holder := readHolder(t, k.config)
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}
	stopProcess(t, holder)
	for range 2 {
		_, err := Open(context.Background(), impatient(dir))
		if messages.KindOf(err) != messages.Unavailable {
			t.Fatalf("with a stopped executor: %v", err)
		}
		for _, part := range []string{"node n1", "is stopped", fmt.Sprintf("kill -CONT %d", holder), fmt.Sprintf("kill -KILL %d", holder), os.Args[0]} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
	if err := unix.Kill(holder, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if all := openHere(t, dir).Adopt(func(agent.Finished) {}); len(all) != 1 {
		t.Errorf("adopted %v, want the task", all)
	}
}

// TestAnExecutorThatStandsStillIsNoticed stops an executor while its agent runs. The node must claim no tasks until the
// process continues.
func TestAnExecutorThatStandsStillIsNoticed(t *testing.T) {
	dir := t.TempDir()
	said, written := observer.New(zap.ErrorLevel)
	c := Config{Command: []string{os.Args[0], Argument}, Runner: runner.Config{Site: "home", Node: "n1", Dir: dir}, Log: zap.New(said)}
	c.waits = usualWaits
	c.waits.beat, c.waits.beats = 10*time.Millisecond, 2*time.Second
	k, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	var able atomic.Bool
	k.Notify(able.Store)
	holder := readHolder(t, c)
	if !able.Load() {
		t.Fatal("no tasks can be started")
	}
	stopProcess(t, holder)
	await.Until(t, "the node takes no tasks", func() bool { return !able.Load() })
	if !slices.Contains(k.Abilities(), agent.AbilityStalled) {
		t.Error("the node does not say that its executor does not answer")
	}
	for _, part := range []string{"is stopped", fmt.Sprintf("kill -CONT %d", holder)} {
		if all := written.All(); len(all) == 0 || !strings.Contains(fmt.Sprint(all[0].ContextMap()), part) {
			t.Errorf("%q is not in the log: %v", part, all)
		}
	}
	if err := unix.Kill(holder, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the node takes tasks", able.Load)
	if slices.Contains(k.Abilities(), agent.AbilityStalled) {
		t.Error("the node still says that its executor does not answer")
	}
	stopProcess(t, holder)
	await.Until(t, "the node takes no tasks again", func() bool { return !able.Load() })
	if err := unix.Kill(holder, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the node has another executor", able.Load)
}

// The error about a stopped executor advises the user to kill the executor's process.
// TestAKilledStoppedExecutorMakesRoom does this. A new executor must then start.
func TestAKilledStoppedExecutorMakesRoom(t *testing.T) {
	dir := t.TempDir()
	k := openHere(t, dir)
	sleeper(t, k)
	holder := readHolder(t, k.config)
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}
	stopProcess(t, holder)
	if err := unix.Kill(holder, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := openHere(t, dir)
	if all := next.Adopt(func(agent.Finished) {}); len(all) != 0 {
		t.Errorf("adopted %v of an executor that was killed", all)
	}
	if readHolder(t, next.config) == holder {
		t.Error("the lock file names the executor before")
	}
}

// TestALockThatNobodyServes holds the executor's lock, but does not listen on its socket. The client must give up after
// the time that an executor has for its own end.
func TestALockThatNobodyServes(t *testing.T) {
	dir := t.TempDir()
	c := impatient(dir)
	lock, err := os.OpenFile(c.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), c); err == nil || !strings.Contains(err.Error(), "fuser "+c.lock()) {
		t.Errorf("of a lock without a number: %v", err)
	}
	if err := noteHolder(lock, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), c); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d (%s", os.Getpid(), os.Args[0])) {
		t.Errorf("of this process's lock: %v", err)
	}
}

func readHolder(t *testing.T, c Config) (pid int) {
	t.Helper()
	b, err := os.ReadFile(c.lock())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return pid
}

func stopProcess(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) })
	await.Until(t, "the executor stands", func() bool {
		state, _ := stateOf(pid)
		return state == "T"
	})
}
