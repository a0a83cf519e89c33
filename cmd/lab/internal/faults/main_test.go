package faults

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collections less frequent. A run allocates much memory, and would otherwise take twice as
// long.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
