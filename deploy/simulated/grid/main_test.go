package grid

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection rarer. With the default setting, these studies would take 1.5 times as long.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
