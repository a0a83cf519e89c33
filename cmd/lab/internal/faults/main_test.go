package faults

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection rarer. A run makes much garbage, and would take twice as long.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
