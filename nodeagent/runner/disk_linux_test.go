package runner

import (
	"runtime"
	"testing"
	"time"
)

// TestAStalledDiskHidesNoTask checks the pause after a measurement. If the measurement waited for the disk, the pause
// is as long as the measurement. Otherwise the pause is four times the processor time of the measurement. A pause of
// four times the whole measurement would be too long: once a disk stalled for five seconds, and then the files of a
// task were not measured for twenty seconds.
func TestAStalledDiskHidesNoTask(t *testing.T) {
	for _, c := range []struct{ took, used, rest time.Duration }{
		{5 * time.Second, time.Millisecond, 5 * time.Second},
		{time.Second, time.Second, 4 * time.Second},
		{3 * time.Second, time.Second, 4 * time.Second},
		{time.Millisecond, 0, time.Millisecond},
	} {
		if rest := restAfter(c.took, c.used); rest != c.rest {
			t.Errorf("after %v, of which %v on a processor: %v, want %v", c.took, c.used, rest, c.rest)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	for began := time.Now(); threadTime() == before && time.Since(began) < 10*time.Second; {
	}
	if threadTime() == before {
		t.Error("the time of the thread does not pass")
	}
}
