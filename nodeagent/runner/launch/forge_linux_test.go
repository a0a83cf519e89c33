package launch

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/await"
)

// TestForgeClosesItsBellOnce: a second close of the descriptor could close a file that was opened meanwhile with the
// same number.
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
