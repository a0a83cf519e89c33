// Package await lets tests wait for what other goroutines, processes or hosts do. Only tests
// import it.
package await

import (
	"testing"
	"time"
)

// Patience is how long a test waits before it fails. It is far longer than anything takes, even on a busy machine
// with a slow disk. So a test that waits so long waits for something that never happens.
const Patience = 3 * time.Minute

// Until polls a condition and returns when it holds. It fails the test if that takes longer
// than Patience.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(Patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited %v in vain: %s", Patience, what)
		}
	}
}
