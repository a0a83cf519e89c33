package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Boot returns the kernel's identifier of the present boot, which has 36 characters, or "" if there is none. The time
// that [Now] returns counts from this boot.
func Boot() string {
	const size = 36
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name := strings.TrimSpace(string(text))
	if err != nil || len(name) != size || unix.ClockGettime(unix.CLOCK_BOOTTIME, new(unix.Timespec)) != nil {
		return ""
	}
	return name
}
