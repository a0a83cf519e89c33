package grid

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection rarer. Studies make much garbage, and would take half as long again.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
