package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Boot returns the identifier that the kernel gave to the present boot, of 36 characters; "" if there is none. [Now]
// counts from that boot.
func Boot() string {
	const size = 36
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name := strings.TrimSpace(string(text))
	if err != nil || len(name) != size || unix.ClockGettime(unix.CLOCK_BOOTTIME, new(unix.Timespec)) != nil {
		return ""
	}
	return name
}
