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

// Without control groups, nothing keeps track of a task's processes that have left its session. But
// a process whose parent has ended becomes a child of the room's holder, or of this process. There
// a task's orphans are found by their environment when the task ends. Orphans that hide their
// environment are found when nothing else runs that could have started them.

// orphanRounds bounds the number of searches for orphans: a process that ends can leave new ones.
const orphanRounds = 100

// endOrphansOf ends the processes that an ended task left behind.
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

// endMarked ends the processes of list whose environment has a task's marks. A process that is
// executing a program has no environment for a moment, so it is looked at again, a few times.
// Orphans that hide their environment are not found.
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
		if len(p.tasksNow()) > 0 { // they may belong to these tasks
			return nil
		}
		return found
	}
	endEach(left, func(int) bool { return true })
}

// adopted returns the children of this process that it was handed, and has to reap.
func (p *Processes) adopted() []int {
	children := childrenOf(os.Getpid()) // list children before forks: then each listed child of a fork is known there
	forked, known := p.forks.pids()
	if !known {
		return nil // a later end finds them
	}
	_, session := sessionOf(strconv.Itoa(os.Getpid()))
	return slices.DeleteFunc(children, func(pid int) bool {
		if _, of := sessionOf(strconv.Itoa(pid)); forked[pid] || of == session { // a helper of this process's
			return true
		}
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err != nil || reaped == pid // it has ended by itself
	})
}

// forks are the children that this process makes for tasks, from before the kernel makes them until they are
// reaped. All other children were handed to it. Nobody waits for a start here: one account's may take long.
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

// pids returns the children's numbers; known is false if the kernel does not tell one of them.
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

// number returns the number of the child, as soon as the kernel has made it; 0 if there is none.
// The kernel writes the descriptor before it lists the child, and opens it a moment later.
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
			return max(pid, 0), err == nil // -1: it was reaped
		}
		time.Sleep(pause)
	}
	return 0, false
}

// endEach ends the processes that list finds and which selects, until list finds none. Processes that they leave behind
// are found in the next round.
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

// killedWithin is how long the end of a process is awaited that was killed.
const killedWithin = time.Second

// endProcess kills a process, unless another process has its number by now, and waits for its end.
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

// childrenOf returns the processes whose parent is one of a process's threads; none on a kernel
// that does not say so.
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
