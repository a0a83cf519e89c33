package runner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// check bounds what a running task writes and how many processes it has, and
// notes its peak memory.
func (t *process) check() {
	if t.look() != "" {
		t.end(messages.Exceeded, t.runner.config.Grace)
	}
}

// look notes and returns what the task has too much of, nothing as a rule.
func (t *process) look() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child.pid == 0 || t.over { // its files are being opened, or are settled as it leaves its lane
		return ""
	}
	t.settle()
	t.peak = max(t.peak, peakOf(t.child.pid))
	limit := &t.runner.config
	switch {
	case t.exceeds != "":
	case t.lane != nil && t.lane.dir && t.task.Program.Dir == "" && sizeOf(t.lane.base+dirEnding) > limit.DirLimit:
		t.exceeds = fmt.Sprintf("ended for filling its directory with more than %d MiB", limit.DirLimit>>20)
	case limit.Limits.Pids == 0 && t.cell.Count() > cell.DefaultPids:
		t.exceeds = fmt.Sprintf("ended for having more than %d processes", cell.DefaultPids)
	}
	return t.exceeds
}

// maxEntries bounds how many files of a directory are added up at a look; a task
// with more is judged by those.
const maxEntries = 20_000

// sizeOf adds up what the files below a directory take of the disk, in bytes.
func sizeOf(dir string) (size int64) {
	left := maxEntries
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if left--; left == 0 || err != nil {
			return filepath.SkipAll
		}
		if info, err := e.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				size += stat.Blocks * 512
			}
		}
		return nil
	})
	return size
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
