// Package await lets tests wait for what other goroutines, processes or hosts do. Only tests
// import it.
package await

import (
	"testing"
	"time"
)

// Patience is how long a test waits before it fails. It is far longer than anything takes on a busy machine with a slow
// disk.
const Patience = 3 * time.Minute

// Until polls a condition and returns when it holds. It fails the test after Patience. If checking a condition takes
// long, for example because a new process must be started, Until checks it less often. So the processors are free for
// the thing that the test waits for.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.After(Patience)
	for {
		began := time.Now()
		if holds() {
			return
		}
		select {
		case <-time.After(min(max(2*time.Millisecond, 2*time.Since(began)), 200*time.Millisecond)):
		case <-end:
			t.Fatalf("waited %v, but this did not happen: %s", Patience, what)
		}
	}
}
