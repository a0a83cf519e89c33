package runner

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
)

// TestAllAreSuspendedWhileItIsMeasuredWhoFillsTheDisk runs two tasks on a small disk. One of them almost fills the
// disk. The runner suspends both tasks while it measures how much each has written. Only the task that filled the disk
// must be ended.
func TestAllAreSuspendedWhileItIsMeasuredWhoFillsTheDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	p, err := NewProcesses(Config{Site: "home", Node: "n1", Dir: dir, KeepFree: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	done := make(chan agent.Finished, 2)
	start := func(stage uint32, script string) {
		a := messages.Attempt{Task: messages.TaskRef{Job: 7, Stage: stage}, Number: 1}
		p.Start(Task{Grant: agent.Grant{Attempt: a}, Program: &agent.Program{Job: 7, Stage: stage, Account: "ann", Class: "cpu", Command: []string{"sh", "-c", script}}},
			func(f agent.Finished) { done <- f })
	}
	file := func(name string) string { return filepath.Join(dir, "jobs", "ann", "7", name) }
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(file(name)); return err == nil }
	}
	start(0, "trap '>../resumed' CONT; >../ready; while ! [ -e ../goes-on ]; do sleep .01; done")
	await.Until(t, "the first runs", there("ready"))
	start(1, "head -c 54525952 /dev/zero >file; sleep 1000")
	if f := <-done; f.Attempt.Task.Stage != 1 || f.Outcome != agent.OutOfDisk {
		t.Fatalf("%+v", f)
	}
	await.Until(t, "the first was suspended, and goes on", there("resumed"))
	await.Until(t, "the space is free", func() bool { return freeBytes(dir) > 48<<20 })
	if err := os.WriteFile(file("goes-on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := <-done; f.Attempt.Task.Stage != 0 || f.Outcome != agent.Exited {
		t.Errorf("%+v", f)
	}
}
