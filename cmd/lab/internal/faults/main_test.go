package faults

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage seldom: a run leaves much behind, and takes twice as long otherwise.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
