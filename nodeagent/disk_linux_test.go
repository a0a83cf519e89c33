package nodeagent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/nodeagent"
)

// TestNodeTakesNothingOnAFullDisk checks that a node with an almost full disk claims no task, and tells the leader why.
func TestNodeTakesNothingOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, make([]byte, 54<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, func(c *nodeagent.Config) { c.Dir, c.Tasks.KeepFree = dir, 16<<20 })
	job := l.submit(agent.Program{Tasks: 1, Command: []string{"true"}})
	await.Until(t, "the node has heard of the work several times", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seq > 5
	})
	if !l.told(agent.AbilityFull) {
		t.Error("the leader does not hear why")
	}
	freed := messages.TimeOf(time.Now())
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	l.until("the task ends", func() bool { return len(l.finished) == 1 })
	if f := l.finished[messages.TaskRef{Job: job}]; f.Outcome != agent.Exited || f.Started < freed {
		t.Errorf("ended as %+v, and there was space from %v on", f, freed)
	}
	await.Until(t, "the leader hears that the disk has space again", func() bool { return !l.told(agent.AbilityFull) })
}

// TestNodeThatRunsTellsOfAFullDisk checks that a node with running tasks tells the leader of an almost full disk, and
// goes on.
func TestNodeThatRunsTellsOfAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	network := bus.NewMemory()
	l := newLeader(t, network, time.Hour)
	begin(t, network, func(c *nodeagent.Config) { c.Dir, c.Tasks.KeepFree = dir, 16<<20 })
	work, other := t.TempDir(), filepath.Join(dir, "other")
	job := l.submit(agent.Program{Tasks: 1, Dir: work, Command: []string{"sh", "-c", "touch begun; while ! test -e end; do sleep 0.05; done"}})
	await.Until(t, "the task runs", func() bool { _, err := os.Stat(filepath.Join(work, "begun")); return err == nil })
	if l.told(agent.AbilityFull) {
		t.Error("the leader hears that the disk is full")
	}
	session := l.session()
	if err := os.WriteFile(other, make([]byte, 54<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the leader hears that the disk is full", func() bool { return l.told(agent.AbilityFull) })
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the leader hears that the disk has space again", func() bool { return !l.told(agent.AbilityFull) })
	if err := os.WriteFile(filepath.Join(work, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.until("the task ends", func() bool { return len(l.finished) == 1 })
	if f := l.finished[first(job)]; f.Outcome != agent.Exited || f.ExitCode != 0 || l.session() != session {
		t.Errorf("the task ended as %+v, in session %x; it began in %x", f, l.session(), session)
	}
}
