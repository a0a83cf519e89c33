package faults

import (
	"os"
	"runtime/debug"
	"testing"
)

// A run allocates much memory, and would take twice as long with more frequent garbage collections.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
