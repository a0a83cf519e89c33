package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Boot names the machine's present boot, since which [Now] counts, in 36 letters; "" where the kernel
// does not.
func Boot() string {
	const size = 36
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name := strings.TrimSpace(string(text))
	if err != nil || len(name) != size || unix.ClockGettime(unix.CLOCK_BOOTTIME, new(unix.Timespec)) != nil {
		return ""
	}
	return name
}
