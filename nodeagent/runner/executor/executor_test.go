package executor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// If the first argument is "executor", TestMain runs the test binary as an executor, and not as a test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "executor" {
		if err := executor.Main(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// patience bounds every wait; a test that passes never waits so long.
const patience = await.Patience

func open(t *testing.T, dir string) *executor.Client {
	t.Helper()
	return openAs(t, runner.Config{Site: "home", Node: "n1", Dir: dir})
}

func openAs(t *testing.T, c runner.Config) *executor.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k, err := executor.Open(ctx, executor.Config{
		Command: []string{os.Args[0], "executor"},
		Runner:  c,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func attempt(i int) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: 7, Stage: uint32(i)}, Number: 1}
}

// begin starts task i, which runs a script. The report of the task's end is sent to the returned channel.
func begin(k *executor.Client, i int, script string) (runner.Process, chan agentmsg.Finished) {
	done := make(chan agentmsg.Finished, 4)
	p := &agentmsg.Program{Job: 7, Stage: uint32(i), Account: "ann", Class: "cpu", Width: i, Script: script}
	return k.Start(runner.Task{Grant: agentmsg.Grant{Attempt: attempt(i)}, Program: p}, func(f agentmsg.Finished) { done <- f }), done
}

func wait(t *testing.T, done chan agentmsg.Finished) agentmsg.Finished {
	t.Helper()
	select {
	case f := <-done:
		return f
	case <-time.After(patience):
		t.Fatal("the task does not end")
		panic("unreachable")
	}
}

// output waits until task i has written something, and returns the written text.
func output(t *testing.T, k *executor.Client, i int) string {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		r, err := k.ReadLog(context.Background(), agentmsg.LogsRequest{Attempt: attempt(i), Wait: messages.Duration(time.Second)})
		if err == nil && len(r.Data) > 0 {
			return string(r.Data)
		}
	}
	t.Fatal("the task says nothing")
	return ""
}

func pidOf(t *testing.T, s string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func gone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
	}
	t.Fatalf("process %d goes on", pid)
}

func TestRunsTasks(t *testing.T) {
	k := open(t, t.TempDir())
	_, done := begin(k, 1, "echo $CANDOR_NODE; exit 3")
	if f := wait(t, done); f.ExitCode != 3 || f.Attempt != attempt(1) {
		t.Errorf("%+v", f)
	}
	if got := output(t, k, 1); got != "n1\n" {
		t.Errorf("%q", got)
	}
	if who, err := k.Owner(7); who != "ann" || err != nil {
		t.Errorf("%q, %v", who, err)
	}
	if _, err := k.Owner(8); messages.KindOf(err) != messages.NotFound {
		t.Errorf("%v", err)
	}
	_, done = begin(k, 3, "grep NoNewPrivs /proc/self/status")
	wait(t, done)
	if got := strings.Fields(output(t, k, 3)); len(got) != 2 || got[1] != "1" {
		t.Errorf("%q: tasks can gain privileges", got)
	}
	p, done := begin(k, 2, "exec sleep 1000")
	p.Suspend(true)
	p.Stop(0)
	if f := wait(t, done); f.Outcome != agentmsg.Stopped {
		t.Errorf("%+v", f)
	}
}

// TestAgentRestarts checks that the next agent finds the running tasks, and the ends of tasks that ended meanwhile.
func TestAgentRestarts(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	_, ended := begin(k, 1, "exit 5")
	wait(t, ended) // do not confirm the end: the leader does not know it yet
	_, told := begin(k, 2, "exit 6")
	wait(t, told)
	k.Confirm(attempt(2))
	begin(k, 3, "echo $$; exec sleep 1000")
	pid := pidOf(t, output(t, k, 3))
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}

	k = open(t, dir)
	done := make(chan agentmsg.Finished, 4)
	adopted := map[messages.Attempt]runner.Adopted{}
	for _, a := range k.Adopt(func(f agentmsg.Finished) { done <- f }) {
		adopted[a.Attempt] = a
	}
	if len(adopted) != 2 || adopted[attempt(3)].Class != "cpu" || adopted[attempt(3)].Width != 3 {
		t.Fatalf("adopted %v", adopted)
	}
	if f := wait(t, done); f.Attempt != attempt(1) || f.ExitCode != 5 {
		t.Errorf("%+v", f)
	}
	if got := output(t, k, 3); pidOf(t, got) != pid {
		t.Errorf("another process than before: %s", got)
	}
	adopted[attempt(3)].Process.Stop(0)
	if f := wait(t, done); f.Attempt != attempt(3) || f.Outcome != agentmsg.Stopped {
		t.Errorf("%+v", f)
	}
}

// TestExecutorIsKilled kills an executor. The next executor must end the tasks of the killed one and report them.
func TestExecutorIsKilled(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	_, done := begin(k, 1, "echo $PPID; echo $$ >pid.new; mv pid.new "+filepath.Join(dir, "pid")+"; exec sleep 1000")
	executorPid := pidOf(t, output(t, k, 1))
	var b []byte
	for len(b) == 0 {
		b, _ = os.ReadFile(filepath.Join(dir, "pid"))
	}
	if err := unix.Kill(executorPid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if f := wait(t, done); f.Outcome != agentmsg.Stopped || !strings.Contains(f.Detail, "executor") {
		t.Errorf("%+v", f)
	}
	gone(t, pidOf(t, string(b)))
	_, done = begin(k, 2, "exit 4")
	if f := wait(t, done); f.ExitCode != 4 {
		t.Errorf("%+v", f)
	}
}

// TestExecutorIsTerminated sends SIGTERM to an executor. Its tasks must end with it, and the next executor must report
// their ends.
func TestExecutorIsTerminated(t *testing.T) {
	for _, agent := range []bool{true, false} {
		dir := t.TempDir()
		k := open(t, dir)
		_, done := begin(k, 1, "echo $PPID $$; exec sleep 1000")
		pids := strings.Fields(output(t, k, 1))
		if !agent {
			if err := k.Detach(); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Kill(pidOf(t, pids[0]), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			gone(t, pidOf(t, pid))
		}
		if !agent {
			again := make(chan agentmsg.Finished, 1)
			if all := open(t, dir).Adopt(func(f agentmsg.Finished) { again <- f }); len(all) != 1 {
				t.Fatalf("adopted %+v", all)
			}
			done = again
		}
		if f := wait(t, done); f.Outcome != agentmsg.Stopped {
			t.Errorf("with an agent %v: %+v", agent, f)
		}
	}
}

// An agent connects to an executor that ends at this moment. The agent must start another executor.
func TestAgentMeetsADyingExecutor(t *testing.T) {
	dir := t.TempDir()
	dying, err := net.Listen("unix", filepath.Join(dir, "executor.sock"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := dying.Accept()
		if err := errors.Join(err, dying.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
	}()
	_, done := begin(open(t, dir), 1, "exit 3")
	if f := wait(t, done); f.ExitCode != 3 {
		t.Errorf("%+v", f)
	}
}

func TestLeaseEndsWithoutAgent(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	begin(k, 1, "echo $$; exec sleep 1000")
	pid := pidOf(t, output(t, k, 1))
	k.Keep(boottime.Now() + time.Hour)
	k.Keep(boottime.Now() + 50*time.Millisecond)
	if err := k.Detach(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	k = open(t, dir)
	done := make(chan agentmsg.Finished, 1)
	if all := k.Adopt(func(f agentmsg.Finished) { done <- f }); len(all) != 1 {
		t.Fatalf("adopted %v", all)
	}
	if f := wait(t, done); f.Outcome != agentmsg.Stopped {
		t.Errorf("%+v", f)
	}
}

func TestAttemptHasOneLife(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	file := filepath.Join(dir, "lives")
	_, first := begin(k, 1, "echo x >>"+file)
	_, second := begin(k, 1, "echo x >>"+file)
	select {
	case <-first:
	case <-second:
	case <-time.After(patience):
		t.Fatal("the task does not end")
	}
	_, last := begin(k, 2, "cat "+file)
	wait(t, last)
	if got := output(t, k, 2); got != "x\n" {
		t.Errorf("%q", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := executor.Open(context.Background(), executor.Config{}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("%v", err)
	}
	_, err := executor.Open(context.Background(), executor.Config{Command: []string{"/does/not/exist"},
		Runner: runner.Config{Site: "home", Node: "n1", Dir: t.TempDir()}})
	if messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}

// TestPrivateTask checks that a private task has no network, and sees no other task's files.
func TestPrivateTask(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("namespaces need root")
		return
	}
	state, err := os.MkdirTemp("/var/tmp", "candor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	if err := os.WriteFile(filepath.Join(state, "credentials"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"nobody", "100000-165535"} {
		dir := filepath.Join(state, "node"+user)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		k, err := executor.Open(ctx, executor.Config{Command: executor.Self(), Runner: runner.Config{
			Site: "home", Node: "n1", Dir: dir, User: user, Private: true, Hide: []string{state}, Inside: executor.Inside()}})
		if err != nil {
			t.Fatal(err)
		}
		_, done := begin(k, 1, "ls "+state+"; ls /tmp | wc -l; echo mine >file && cat file; tail -n +3 /proc/net/dev | cut -d: -f1; id -u")
		if f := wait(t, done); f.ExitCode != 0 {
			t.Errorf("%+v", f)
		}
		got := strings.Fields(output(t, k, 1))
		uid, _ := strconv.Atoi(got[len(got)-1])
		if want := filepath.Base(dir) + " 0 mine lo"; strings.Join(got[:len(got)-1], " ") != want {
			r, _ := k.ReadLog(ctx, agentmsg.LogsRequest{Attempt: attempt(1), Stderr: true})
			t.Errorf("%q, want %q and a user; %s", got, want, r.Data)
		}
		if inRange := uid >= 100000 && uid <= 165535; inRange == (user == "nobody") || !inRange && uid != 65534 {
			t.Errorf("tasks of user %s run as %d", user, uid)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// escapes returns a script that leaves a process in a new session and prints the number of this process. The text `how`
// stands before the command that starts the process, for example to change its environment.
func escapes(how string) string {
	return how + ` setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' & while ! [ -e pid ]; do sleep 0.01; done; cat pid; rm pid`
}

// TestEscapeeEndsWithoutGroups runs tasks without control groups and namespaces. A process that leaves its session must
// end with its task or, if it hides its environment, with the last task.
func TestEscapeeEndsWithoutGroups(t *testing.T) {
	k := openAs(t, runner.Config{Site: "home", Node: "n1", Dir: t.TempDir(), NoCells: true})
	other, ended := begin(k, 1, "echo $$; exec sleep 1000")
	stays := pidOf(t, output(t, k, 1))
	_, done := begin(k, 2, escapes(""))
	wait(t, done)
	gone(t, pidOf(t, output(t, k, 2)))
	_, done = begin(k, 3, escapes("env -i"))
	wait(t, done)
	hidden := pidOf(t, output(t, k, 3))
	if err := unix.Kill(stays, 0); err != nil {
		t.Fatalf("the other task: %v", err)
	}
	other.Stop(0)
	if f := wait(t, ended); f.Outcome != agentmsg.Stopped {
		t.Errorf("%+v", f)
	}
	gone(t, hidden)
}
