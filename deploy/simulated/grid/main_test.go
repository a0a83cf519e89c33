package grid

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage seldom: studies leave much behind, and take half as long again otherwise.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
