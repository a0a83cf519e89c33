package launch

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/await"
)

// TestForgeClosesItsBellOnce checks that a forge closes its descriptor only once. The system may give the same number
// to a file that is opened later, and a second close would close that file.
func TestForgeClosesItsBellOnce(t *testing.T) {
	f, err := NewForge(Rules{})
	if err != nil {
		t.Fatal(err)
	}
	bell := uintptr(f.bell)
	f.post(func(*anvil) { f.Close() })
	await.Until(t, "the bell is closed", func() bool {
		_, err := unix.FcntlInt(bell, unix.F_GETFD, 0)
		return err == unix.EBADF
	})
	await.Until(t, "nobody watches the thread", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.watching
	})
	if f.thread != 0 {
		t.Error("another thread took the place of one that had ended, and closed the bell again")
	}
}
