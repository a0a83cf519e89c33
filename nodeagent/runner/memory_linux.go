package runner

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// look checks the task's limits. It records and returns the limit that the task exceeds, or "".
func (t *process) look() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child.PID == 0 || t.over { // the task's files are being opened, or renamed when it leaves its lane
		return ""
	}
	t.files.Settle()
	t.peak = max(t.peak, peakOf(t.child.PID))
	limit := &t.runner.config
	switch {
	case t.exceeds != "":
	case t.stream != nil && t.stream.Overdue(t.suspended) != "":
		t.exceeds = t.stream.Overdue(t.suspended)
	case limit.Limits.Pids == 0 && len(t.processes()) > cell.DefaultPids:
		t.exceeds = fmt.Sprintf("ended by its limit of %d processes", cell.DefaultPids)
	default:
		t.startMeasuring()
	}
	return t.exceeds
}

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
