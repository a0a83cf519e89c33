package nodeagent

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// uptime is the time since the machine was started. It goes on while the
// machine sleeps, as the leader's does, and nobody sets it.
func uptime() messages.Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return sinceStart()
	}
	return messages.Time(time.Duration(t.Nano()) / time.Microsecond)
}
