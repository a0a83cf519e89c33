package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/candor-grid/candor/messages"
)

// check bounds the output of a running task, and what it keeps in its directory,
// and notes its peak memory.
func (t *process) check() {
	if t.look() {
		t.end(messages.Exceeded, t.runner.config.Grace)
	}
}

// look reports whether the task keeps too much.
func (t *process) look() (tooMuch bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
	if t.child.pid == 0 || t.over {
		return false
	}
	t.peak = max(t.peak, peakOf(t.child.pid))
	return t.lane != nil && t.lane.dir && t.task.Program.Dir == "" && sizeOf(t.lane.base+dirEnding) > t.runner.config.DirLimit
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
