package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Boot returns an identifier of the machine's present boot, of 36 letters; [Now] counts from that
// boot. It returns "" if the kernel does not tell it.
func Boot() string {
	const size = 36
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name := strings.TrimSpace(string(text))
	if err != nil || len(name) != size || unix.ClockGettime(unix.CLOCK_BOOTTIME, new(unix.Timespec)) != nil {
		return ""
	}
	return name
}
