package runner

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLeftoversAreEndedByHandle: the sessions noted by a runner that was killed
// are ended by the next, and nobody else's.
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
	h := openHandles(dir)
	if h.data == nil {
		t.Fatal("no handles")
	}
	h.note(left.Process.Pid)
	h.forget(h.note(over.Process.Pid))
	at := h.note(reused.Process.Pid) // as if its number had been another's before
	record := h.data[bootSize+at*handleSize+8:]
	binary.LittleEndian.PutUint64(record, binary.LittleEndian.Uint64(record)-100*sameStart)
	if err := h.close(); err != nil {
		t.Fatal(err)
	}

	if err := openHandles(dir).close(); err != nil {
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

// TestHandlesOfAnotherBoot are not touched.
func TestHandlesOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	h := openHandles(dir)
	h.note(cmd.Process.Pid)
	h.data[0]++
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	h = openHandles(dir)
	defer h.close()
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, handlesFile)); err != nil || info.Size() != handlesSize {
		t.Errorf("%v, %v", info, err)
	}
}
