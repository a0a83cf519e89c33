package session

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// TestLeftoversAreEndedByHandle kills a runner. The next runner must end the sessions that the killed runner recorded,
// and no other sessions.
func TestLeftoversAreEndedByHandle(t *testing.T) {
	dir := t.TempDir()
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	left, over, reused := start(), start(), start()
	defer func() {
		for _, cmd := range []*exec.Cmd{over, reused} {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	h := OpenHandles(dir)
	if h.data == nil {
		t.Fatal("no handles")
	}
	h.Note(left.Process.Pid)
	h.Forget(h.Note(over.Process.Pid))
	at := h.Note(reused.Process.Pid) // as if another process had had the number before
	record := h.data[bootSize+at*handleSize+8:]
	binary.LittleEndian.PutUint64(record, binary.LittleEndian.Uint64(record)-100*sameStart)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	if err := OpenHandles(dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("what was left: %v", left.ProcessState)
	}
	for name, cmd := range map[string]*exec.Cmd{"what was over": over, "another of that number": reused} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHandlesOfAnotherBoot checks that sessions recorded before the last boot are not ended.
func TestHandlesOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	h := OpenHandles(dir)
	h.Note(cmd.Process.Pid)
	h.data[0]++
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = OpenHandles(dir)
	defer h.Close()
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, handlesFile)); err != nil || info.Size() != handlesSize {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSessionOfADaemonIsNotEnded records a task's session whose first process has ended. Since then, a foreign process
// may have got the same process number, and may have left a daemon in a session with this number. So only processes
// with the task's environment may be ended.
func TestSessionOfADaemonIsNotEnded(t *testing.T) {
	dir := t.TempDir()
	mark := "CANDOR_NODE=" + filepath.Base(dir)
	orphan := func(env ...string) (session, pid int) {
		t.Helper()
		cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), env...), &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
		return cmd.Process.Pid, pid
	}
	daemons, daemon := orphan()
	tasks, task := orphan(mark)
	h := OpenHandles(dir, mark)
	h.Note(daemons)
	h.Note(tasks)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := OpenHandles(dir, mark).Close(); err != nil {
		t.Fatal(err)
	}
	if !aliveNow(daemon) {
		t.Error("the daemon was ended in place of a task")
	}
	await.Until(t, "the task that was killed is gone", func() bool { return !aliveNow(task) })
}

func aliveNow(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}
