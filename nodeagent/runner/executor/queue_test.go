package executor

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// told has the messages that a client got about a task that waited for the slot of another task.
type told struct {
	turned  chan agent.Finished // the end of the earlier task
	done    chan agent.Finished
	process runner.Follower
}

// followWith makes task i wait for the slot of a task that has not ended. Task i runs the given script.
func followWith(t *testing.T, k *Client, i uint32, script string) *told {
	t.Helper()
	w := &told{turned: make(chan agent.Finished, 4), done: make(chan agent.Finished, 4)}
	began := boottime.Now()
	p, ok := k.Follow(task7(i, script), func(f agent.Finished) { w.done <- f }, func(f agent.Finished, at time.Duration) {
		if at < began || at > boottime.Now() {
			t.Errorf("began at %v, not between %v and now", at, began)
		}
		w.turned <- f
	})
	if !ok {
		t.Fatal("tasks cannot follow")
	}
	w.process = p
	settled(t, k)
	return w
}

func task7(i uint32, script string) runner.Task {
	a := messages.Attempt{Task: messages.TaskRef{Job: 7, Index: i}, Number: 1}
	return runner.Task{Grant: agent.Grant{Attempt: a}, Program: &agent.Program{Job: 7, Stage: i, Account: "ann", Class: "cpu", Script: script}}
}

func heard(t *testing.T, what chan agent.Finished) agent.Finished {
	t.Helper()
	select {
	case f := <-what:
		return f
	case <-time.After(patience):
		t.Fatal("hears nothing")
		panic("unreachable")
	}
}

func silent(t *testing.T, what ...chan agent.Finished) {
	t.Helper()
	for _, c := range what {
		select {
		case f := <-c:
			t.Errorf("heard %+v", f)
		default:
		}
	}
}

// TestTaskFollows checks that a waiting task starts when a running task ends, without a message from the agent. One
// message to the agent must report both the end and the start.
func TestTaskFollows(t *testing.T) {
	k := openHere(t, t.TempDir())
	p, done := sleeper(t, k)
	first, second := followWith(t, k, 1, "exit 3"), followWith(t, k, 2, "exit 4")
	silent(t, first.turned, first.done)
	p.Stop(0)
	if f := heard(t, first.turned); f.Outcome != agent.Stopped || f.Attempt.Task.Index != 0 {
		t.Errorf("followed %+v", f)
	}
	if f := heard(t, second.turned); f.ExitCode != 3 {
		t.Errorf("followed %+v", f)
	}
	if f := heard(t, second.done); f.ExitCode != 4 {
		t.Errorf("%+v", f)
	}
	silent(t, done, first.done, first.turned, second.turned)
}

// TestEndsAreToldSoon checks that an end is reported soon, even if many tasks wait and the running tasks take long.
func TestEndsAreToldSoon(t *testing.T) {
	k := openHere(t, t.TempDir())
	p, _ := sleeper(t, k)
	first := followWith(t, k, 1, "exec sleep 1000")
	for i := range uint32(20) {
		followWith(t, k, 2+i, "exit 1")
	}
	p.Stop(0)
	heard(t, first.turned)
}

// TestWithdrawnNeverBegins withdraws a waiting task. The end of the running task must be reported as usual.
func TestWithdrawnNeverBegins(t *testing.T) {
	k := openHere(t, t.TempDir())
	p, done := sleeper(t, k)
	w := followWith(t, k, 1, "exit 3")
	w.process.Withdraw()
	if f := heard(t, w.done); f.Outcome != agent.Stopped || f.Attempt.Task.Index != 1 {
		t.Errorf("%+v", f)
	}
	p.Stop(0)
	heard(t, done)
	w = followWith(t, k, 2, "exec sleep 1000")
	p = k.Start(task7(2, "exec sleep 1000"), func(f agent.Finished) { done <- f }) // started by an order of the agent
	w.process.Withdraw()
	p.Stop(0)
	if f := heard(t, done); f.Attempt.Task.Index != 2 {
		t.Errorf("%+v", f)
	}
	silent(t, w.done, w.turned)
}

// A task waits for the slot of an earlier task. TestNothingFollows checks that the waiting task does not start by
// itself in four cases. The earlier task was suspended, was of another class, or has files, or the lease has ended.
func TestNothingFollows(t *testing.T) {
	for name, happens := range map[string]func(k *Client, p runner.Process){
		"a suspended task":     func(k *Client, p runner.Process) { p.Suspend(true); p.Stop(0) },
		"the end of the lease": func(k *Client, p runner.Process) { k.Keep(boottime.Now() + time.Millisecond) },
		"another class":        func(k *Client, p runner.Process) { p.Stop(0) },
		"files":                func(k *Client, p runner.Process) { p.Stop(0) },
	} {
		t.Run(name, func(t *testing.T) {
			k := openHere(t, t.TempDir())
			first, done := task7(0, "exec sleep 1000"), make(chan agent.Finished, 1)
			switch name {
			case "another class":
				first.Program.Class = "gpu"
			case "files":
				first.Program.Outputs = []string{"*.csv"}
			}
			p := k.Start(first, func(f agent.Finished) { done <- f })
			w := followWith(t, k, 1, "exit 3")
			happens(k, p)
			heard(t, done)
			w.process.Withdraw()
			if f := heard(t, w.done); f.Outcome != agent.Stopped {
				t.Errorf("%+v", f)
			}
			silent(t, w.turned)
		})
	}
}

// TestFollowersAreOneAgents breaks an agent's connection to the executor while a task of this agent waits there. The
// waiting task must not start, and the agent must learn this.
func TestFollowersAreOneAgents(t *testing.T) {
	k := openHere(t, t.TempDir())
	p, done := sleeper(t, k)
	w := followWith(t, k, 1, "exit 3")
	cut(t, k, func() { w.process.Withdraw() })
	if f := heard(t, w.done); f.Outcome != agent.Stopped {
		t.Errorf("%+v", f)
	}
	p.Stop(0)
	heard(t, done)
	silent(t, w.turned)
}

// TestEarlierExecutor checks that no task waits in an executor of a version that does not support waiting tasks.
func TestEarlierExecutor(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "executor.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		agent := newConn(c.(*net.UnixConn))
		agent.send(&frame{Kind: hello})
		agent.send(&frame{Kind: ready})
		for err == nil { // until the executor is told to end
			var f *frame
			if f, err = agent.receive(); err == nil && f.Kind == end {
				break
			}
		}
		agent.finish()
	}()
	if p, ok := openHere(t, dir).Follow(task7(1, "exit 3"), nil, nil); ok {
		t.Errorf("follows as %v", p)
	}
}

// TestExecutorOfALaterRelease checks that an agent does not use an executor of the release after the next one.
func TestExecutorOfALaterRelease(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "executor.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			newConn(c.(*net.UnixConn)).send(&frame{Kind: hello, Number: uint64(messages.Level + 2)})
		}
	}()
	_, err = Open(t.Context(), Config{Command: []string{os.Args[0], Argument}, Runner: runner.Config{Site: "home", Node: "n1", Dir: dir}})
	if messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "the executor that runs this node's tasks has level") {
		t.Errorf("opened with %v", err)
	}
}
