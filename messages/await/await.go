// Package await is how tests wait for what other goroutines, processes or hosts bring
// about. Only tests import it.
package await

import (
	"testing"
	"time"
)

// Patience is for how long a test waits before it fails. It is far above what anything takes, also
// on a busy machine with a slow disk, so that only what never comes runs into it.
const Patience = 3 * time.Minute

// Until returns once a condition holds, which it polls, and fails the test if that is
// not so within Patience.
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
