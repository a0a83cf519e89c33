package runner

import (
	"runtime"
	"testing"
	"time"
)

// TestAStalledDiskHidesNoTask: a measure that waited for the disk is repeated after the same time,
// and one that used a processor after four times what it used. (Once five seconds of a stalled disk
// hid for twenty seconds what a task wrote.)
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
