package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWrongClockIsOffByItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(file, []byte("3600000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if wrongClock("") != nil {
		t.Error("without a file the clock is another than the machine's")
	}
	for name, want := range map[string]time.Duration{file: time.Hour, file + "-none": 0} {
		if off := time.Until(wrongClock(name)().Std()) - want; off > time.Second || off < -time.Minute {
			t.Errorf("a clock with the file %s is %v off what it says", name, off)
		}
	}
}
