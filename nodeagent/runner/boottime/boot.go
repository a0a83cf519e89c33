package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel gives each boot an identifier of 36 characters. Boot returns the identifier of the present boot, or "" if
// there is none. The time that [Now] returns counts from this boot.
func Boot() string {
	const size = 36
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name := strings.TrimSpace(string(text))
	if err != nil || len(name) != size || unix.ClockGettime(unix.CLOCK_BOOTTIME, new(unix.Timespec)) != nil {
		return ""
	}
	return name
}
