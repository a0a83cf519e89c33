package runner

import (
	"os"
	"strconv"
	"strings"
)

// check bounds the output of a running task and notes its peak memory.
func (t *process) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
	if t.child.pid != 0 && !t.over {
		t.peak = max(t.peak, peakOf(t.child.pid))
	}
}

// peakOf reads the peak memory of a process in bytes, 0 if it is gone.
func peakOf(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kibibytes, _ := strconv.ParseInt(number, 10, 64)
	return kibibytes << 10
}
