package runner

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Without control groups nothing holds a task's processes together once they have left
// its session. But whose parent has ended is handed on to the holder of the room, or to
// this process: there a task's orphans are found by their environment when the task
// ends, and those that hide it when nothing else runs from which they could be.

// orphanRounds bounds how often orphans are looked for that come as others end.
const orphanRounds = 100

// endOrphansOf ends what a task left behind, which has ended itself.
func (p *Processes) endOrphansOf(t *process) {
	if !p.loose {
		return
	}
	marks := append([]string{"CANDOR_SITE=" + p.config.Site, "CANDOR_NODE=" + p.config.Node, "CANDOR_JOB=" + t.task.Attempt.Task.Job.String(),
		"CANDOR_STAGE=" + t.task.Program.StageName}, taskEnv(nil, false, &t.task, "", "")[:2]...)
	isOwn := func(pid int) bool { return marked(pid, marks) }
	if t.room != nil {
		endEach(func() []int { return childrenOf(t.room.holder) }, isOwn)
		return
	}
	if p.adopts && p.lockForks() {
		defer p.forking.Unlock()
		endEach(p.adopted, isOwn)
	}
}

// lockForks keeps tasks from being forked, and reports whether it could: a start that takes long delays
// no other, and what was left then ends with a later task.
func (p *Processes) lockForks() bool {
	const pause, within = time.Millisecond, time.Second
	for began := time.Now(); !p.forking.TryLock(); time.Sleep(pause) {
		if time.Since(began) > within {
			return false
		}
	}
	return true
}

// endHidden ends all that this process was handed, where no task runs.
func (p *Processes) endHidden() {
	if !p.adopts || !p.lockForks() {
		return
	}
	defer p.forking.Unlock()
	if len(p.tasksNow()) == 0 {
		endEach(p.adopted, func(int) bool { return true })
	}
}

// adopted are the children of this process that it was handed, and has to reap. Nothing
// may be forked meanwhile.
func (p *Processes) adopted() []int {
	own := map[int]bool{}
	for _, t := range p.tasksNow() {
		t.mu.Lock()
		own[t.child.pid] = !t.over
		t.mu.Unlock()
	}
	return slices.DeleteFunc(childrenOf(os.Getpid()), func(pid int) bool {
		if own[pid] {
			return true
		}
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err != nil || reaped == pid // it has ended by itself
	})
}

// endEach ends some of the processes that list finds, until it finds none of them. What
// they leave behind is found next.
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

// endProcess kills a process, if its number is not another's by now, and waits for it.
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

// childrenOf are the processes whose parent is one of a process's threads; none on a kernel
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
