package launch

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Forks has the child processes that this process makes for tasks. A child is added before the kernel makes it, and is
// removed when it is reaped. This process can have other children: orphans that the kernel gave to it. The start of a
// child may take long, and no method of Forks waits for it.
type Forks struct {
	mu    sync.Mutex
	all   map[*Launch]bool
	lines sync.Map // by account: a channel with an element for each line that is being written for the account
}

func (f *Forks) Add(l *Launch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*Launch]bool{}
	}
	f.all[l] = true
}

func (f *Forks) Remove(l *Launch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, l)
}

// PIDs returns the process numbers of the children. The second result is false if the kernel does not tell the number
// of some child.
func (f *Forks) PIDs() (all map[int]bool, known bool) {
	f.mu.Lock()
	launches := slices.Collect(maps.Keys(f.all))
	f.mu.Unlock()
	all = make(map[int]bool, len(launches))
	for _, l := range launches {
		pid, known := l.number()
		if !known {
			return nil, false
		}
		all[pid] = true
	}
	return all, true
}

// number returns the process number of the child, or 0 if there is no child. It reads the number from
// /proc/self/fdinfo, by the child's descriptor. When the kernel makes the child, it first stores the descriptor in
// l.pidfd, then lists the child in /proc, and opens the descriptor last. So number waits until the descriptor is open.
func (l *Launch) number() (pid int, known bool) {
	const tries, pause = 100, time.Millisecond
	for range tries {
		if pid := l.pid.Load(); pid != 0 {
			return int(pid), true
		}
		fd := l.pidfd.Load()
		if fd < 0 {
			return 0, true
		}
		text, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(fd)))
		if _, after, found := strings.Cut(string(text), "\nPid:"); found {
			line, _, _ := strings.Cut(after, "\n")
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			return max(pid, 0), err == nil // -1 if the child was reaped already
		}
		time.Sleep(pause)
	}
	return 0, false
}
