package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestTheStartDoesNotWaitForRemovals checks that a runner starts although temporary files of an earlier run cannot be
// removed, because something is mounted there.
func TestTheStartDoesNotWaitForRemovals(t *testing.T) {
	var left, busy string
	b := strangers(t, func(c *runner.Config) {
		left, busy = filepath.Join(c.Dir, "rooms", "1", "0"), filepath.Join(c.Dir, "rooms", "2", "0")
		for _, dir := range []string{left, busy} {
			if err := os.MkdirAll(filepath.Join(dir, "files"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Mount("none", busy, "tmpfs", 0, ""); err != nil {
			t.Skip("cannot mount: ", err)
		}
	})
	t.Cleanup(func() {
		found, _ := filepath.Glob(filepath.Join(b.dir, "jobs", ".removed-*", "2", "0"))
		for _, at := range append(found, busy) {
			_ = unix.Unmount(at, unix.MNT_DETACH)
		}
	})
	if f := b.start(of("ann", 7, sh("echo >/tmp/file"))).wait(); f.ExitCode != 0 {
		t.Errorf("%+v", f)
	}
	await.Until(t, "what can be removed is removed", func() bool {
		rest, _ := filepath.Glob(filepath.Join(b.dir, "jobs", ".removed-*", "1"))
		_, err := os.Lstat(left)
		return os.IsNotExist(err) && len(rest) == 0
	})
}
