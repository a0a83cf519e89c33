package faults

import (
	"os"
	"runtime/debug"
	"testing"
)

// A run allocates much memory. With the usual frequency of garbage collections it would take twice as long. So garbage
// is collected less often here.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
