package boottime

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTimersGoOnWhileTheMachineSleeps checks that the kernel made the timer for CLOCK_BOOTTIME (7), the clock that
// goes on during sleep.
func TestTimersGoOnWhileTheMachineSleeps(t *testing.T) {
	timer := NewTimer(func() {})
	defer timer.Close()
	timer.Reset(time.Hour)
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", timer.fd))
	if err != nil || !strings.Contains(string(info), "clockid: 7\n") {
		t.Errorf("%v: %s", err, info)
	}
}

func TestTimerGoesOffAsItWasLastSet(t *testing.T) {
	ended := make(chan time.Duration, 4)
	timer := NewTimer(func() { ended <- Now() })
	timer.Reset(time.Hour)
	began := Now()
	timer.Reset(5 * time.Millisecond)
	if at := <-ended; at-began < 5*time.Millisecond {
		t.Errorf("after %v", at-began)
	}
	timer.Reset(0)
	<-ended // fires at once
	timer.Reset(time.Hour)
	timer.Stop()
	timer.Close()
	timer.Reset(time.Nanosecond) // fires before Stop
	if len(ended) != 0 {
		t.Error("it went off after its end")
	}
}
