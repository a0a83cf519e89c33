package session

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// Handles is a file that lists the running sessions. It is mapped into memory, so recording a session needs no system
// call, and the file outlives this process. On a machine without control groups, the next process with this state
// directory reads the file and ends the sessions that are left.
type Handles struct {
	mu   sync.Mutex
	data []byte // nil if the file cannot be mapped; then nothing is recorded
	free []int  // positions of unused records
	next int    // position of the first record that was never used
}

// A record is one session: the number of its first process, and when that process began, in ticks since boot; 0 means
// no session. The identifier of the boot comes before the records.
const (
	bootSize    = 36
	handleSize  = 16
	maxHandles  = 1 << 16
	handlesSize = bootSize + maxHandles*handleSize
	handlesFile = "running"
	ticks       = 100 // clock ticks in a second; the kernel reports times in ticks
	// A session is recorded a moment after its first process began. sameStart is the largest difference between the
	// recorded time and the time at which the kernel says that the process began.
	sameStart = 2 * ticks
)

// OpenHandles opens the file in which the node's runner records the sessions of its tasks. If an earlier run of the
// node left sessions in the file, OpenHandles ends them, and empties the file. Every task of the node has the variables
// `marks` in its environment. A process with these variables belongs to a task.
func OpenHandles(dir string, marks ...string) *Handles {
	h := new(Handles)
	boot := boottime.Boot()
	if boot == "" {
		return h
	}
	fd, err := unix.Open(filepath.Join(dir, handlesFile), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, access.PrivateFiles)
	if err != nil {
		return h
	}
	defer unix.Close(fd)
	if unix.Ftruncate(fd, handlesSize) != nil { // the file grows without using disk space
		return h
	}
	data, err := unix.Mmap(fd, 0, handlesSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return h
	}
	if string(data[:bootSize]) == boot {
		endAll(data[bootSize:], marks)
	}
	copy(data, boot)
	clear(data[bootSize:])
	h.data = data
	return h
}

// endAll kills the recorded sessions that still exist. A session exists if its first process has the recorded start
// time. If that process has ended, the kernel may have given its number to another session, such as a daemon's. So
// among the processes with that session number, only those with a task's environment are killed.
func endAll(records []byte, marks []string) {
	left := map[int]int64{}
	for ; len(records) > 0; records = records[handleSize:] {
		if pid := binary.LittleEndian.Uint64(records); pid != 0 {
			left[int(pid)] = int64(binary.LittleEndian.Uint64(records[8:]))
		}
	}
	if len(left) == 0 {
		return
	}
	for pid, began := range left {
		switch now, alive := startOf(strconv.Itoa(pid)); {
		case !alive:
			endOrphans(pid, marks)
		case now > began || now < began-sameStart: // another process has the number now
		default:
			unix.Kill(-pid, unix.SIGKILL)
			Signal(pid, unix.SIGKILL)
		}
	}
}

// endOrphans looks at the processes of a session whose first process has ended. It kills each process that has all of
// the given `marks` in its environment.
func endOrphans(session int, marks []string) {
	if len(marks) == 0 {
		return
	}
	SignalWhere(session, func(env []string) bool { return bears(env, marks) }, unix.SIGKILL)
}

// Note records a session until Forget is called, and returns its position.
func (h *Handles) Note(session int) (at int) {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n := len(h.free); {
	case n > 0:
		at = h.free[n-1]
		h.free = h.free[:n-1]
	case h.data == nil || h.next == maxHandles:
		return -1
	default:
		at = h.next
		h.next++
	}
	record := h.data[bootSize+at*handleSize:]
	binary.LittleEndian.PutUint64(record[8:], uint64(now.Nano()/(1e9/ticks))+1)
	binary.LittleEndian.PutUint64(record, uint64(session))
	return at
}

func (h *Handles) Forget(at int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at < 0 || h.data == nil {
		return
	}
	binary.LittleEndian.PutUint64(h.data[bootSize+at*handleSize:], 0)
	h.free = append(h.free, at)
}

func (h *Handles) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.data == nil {
		return nil
	}
	data := h.data
	h.data = nil
	return unix.Munmap(data)
}
