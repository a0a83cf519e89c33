package runner

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Without control groups, nothing keeps a list of a task's processes that have left its session. But when a parent
// ends, its children become children of the room's holder, or of this process. When the task ends, its orphans are
// found there by their environment. Orphans that hide their environment are ended when no task runs that could have
// started them.

// orphanRounds bounds the number of searches for orphans: a process that ends can leave new orphans.
const orphanRounds = 100

// endOrphansOf ends the orphans of an ended task.
func (p *Processes) endOrphansOf(t *process) {
	if !p.loose {
		return
	}
	marks := append([]string{"CANDOR_SITE=" + p.config.Site, "CANDOR_NODE=" + p.config.Node, "CANDOR_JOB=" + t.task.Attempt.Task.Job.String(),
		"CANDOR_STAGE=" + t.task.Program.StageName}, taskEnv(nil, false, &t.task, "", "")[:2]...)
	list := p.adopted
	if t.room != nil {
		list = func() []int { return childrenOf(t.room.holder) }
	} else if !p.adopts {
		return
	}
	endMarked(list, marks)
}

// endMarked ends the processes of list whose environment has a task's marks. A process that is executing a program
// has no environment for a moment, so endMarked looks at it again, a few times. It does not find orphans that hide
// their environment.
func endMarked(list func() []int, marks []string) {
	const looks, pause = 10, time.Millisecond
	for range looks {
		bare := false
		endEach(list, func(pid int) bool {
			env, err := variablesOf(pid)
			bare = bare || err == nil && len(env) == 0
			return bears(env, marks)
		})
		if !bare {
			return
		}
		time.Sleep(pause)
	}
}

// endHidden ends all orphans of this process, if no task runs.
func (p *Processes) endHidden() {
	if !p.adopts {
		return
	}
	left := func() []int {
		found := p.adopted()
		if len(p.tasksNow()) > 0 { // the orphans may belong to these tasks
			return nil
		}
		return found
	}
	endEach(left, func(int) bool { return true })
}

// adopted returns the orphans that the kernel made children of this process. This process must reap them.
func (p *Processes) adopted() []int {
	children := childrenOf(os.Getpid()) // list children before forks: then every listed child that this process forked is in forks
	forked, known := p.forks.pids()
	if !known {
		return nil // the end of a later task finds them
	}
	_, session := sessionOf(strconv.Itoa(os.Getpid()))
	return slices.DeleteFunc(children, func(pid int) bool {
		if _, of := sessionOf(strconv.Itoa(pid)); forked[pid] || of == session { // a process that this process started for itself
			return true
		}
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err != nil || reaped == pid // it has ended meanwhile
	})
}

// forks are the children that this process makes for tasks, from before the kernel makes them until they are reaped.
// All other children were given to it by the kernel. No method waits for a start, because the start of one account's
// task may take long.
type forks struct {
	mu  sync.Mutex
	all map[*launch]bool
}

func (f *forks) add(l *launch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*launch]bool{}
	}
	f.all[l] = true
}

func (f *forks) remove(l *launch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, l)
}

// pids returns the numbers of the children. known is false if the kernel does not tell one of them.
func (f *forks) pids() (all map[int]bool, known bool) {
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

// number returns the process number of the child as soon as the kernel has made it; 0 if there is no child. The
// kernel writes the descriptor before it lists the child, and opens it a moment later.
func (l *launch) number() (pid int, known bool) {
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
			return max(pid, 0), err == nil // -1: it was reaped already
		}
		time.Sleep(pause)
	}
	return 0, false
}

// endEach ends the processes that list returns and which accepts, until list returns none. Processes that they leave
// behind are found in the next round.
func endEach(list func() []int, which func(pid int) bool) {
	for range orphanRounds {
		chosen := slices.DeleteFunc(list(), func(pid int) bool { return !which(pid) })
		if len(chosen) == 0 {
			return
		}
		for _, pid := range chosen {
			endProcess(pid, which)
		}
	}
}

// killedWithin is how long endProcess waits for the end of a killed process.
const killedWithin = time.Second

// endProcess kills a process, unless its number belongs to another process by now, and waits for its end.
func endProcess(pid int, which func(pid int) bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if which(pid) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(killedWithin.Milliseconds()))
	}
}

// childrenOf returns the children of all threads of a process. It returns none if the kernel does not list children.
func childrenOf(pid int) (all []int) {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, err := os.ReadDir(threads)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		text, err := os.ReadFile(threads + e.Name() + "/children")
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
