package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// measuring is how far the measuring is of what a running task keeps on the disk.
type measuring struct {
	underWay bool
	next     time.Time // not before
	unread   bool      // the last measure did not see everything
	bytes    int64     // what the last measure found in its own directory
	shared   int64     // and in the temporary directories that it shares
}

// measureShare is the part of a processor's time for which a task is measured at most: one in as
// many.
const measureShare = 5

// restAfter is how long a task is not measured after a measure that took some time, and used some
// of a processor's. A measure that had to wait, for the disk or a processor, delays the next one
// no longer than that: a task could fill the disk meanwhile.
func restAfter(took, used time.Duration) time.Duration { return max(took, (measureShare-1)*used) }

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startMeasuring has the task's directories measured, by a goroutine of its own: large ones
// are not to delay what bounds other tasks. t.mu is held.
func (t *process) startMeasuring() {
	m, dir := &t.measuring, ""
	if t.lane != nil && t.lane.dir && t.task.Program.Dir == "" {
		dir = t.lane.base + dirEnding
	}
	if dir == "" && t.room == nil || m.underWay || time.Now().Before(m.next) {
		return
	}
	m.underWay = true
	go t.measure(dir, t.processes())
}

// measureAgain has the task's directories measured unless they were just now.
func (t *process) measureAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child.pid != 0 && !t.over {
		t.startMeasuring()
	}
}

// measure measures what a running task keeps on the disk, in a directory of its own if it has
// one and in those of its room, and ends the task if that is too much.
func (t *process) measure(dir string, processes []int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadTime()
	runs := func() bool { // it has not been forgotten
		select {
		case <-t.ended:
			return false
		default:
			return true
		}
	}
	own := tree.NewMeter(t.runner.config.DirLimit, runs)
	shared := tree.NewMeter(t.runner.config.DirLimit, runs)
	if t.room != nil {
		shared.Add(t.room.temp)
	}
	nameless := shared
	if dir != "" {
		own.Add(dir)
		nameless = own
	}
	for _, p := range processes {
		nameless.AddOpen(p)
	}
	if t.judge(own.Usage(), shared.Usage(), restAfter(time.Since(began), threadTime()-used)) {
		t.end(messages.OutOfDisk, t.runner.config.Grace)
	}
}

// judge notes what was measured, and when to measure again, and reports whether that is too much.
// What cannot be read is too much at the second time in a row: at the first, the task may be
// moving it.
func (t *process) judge(own, shared tree.Usage, rest time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, limit := t.measuring.unread, t.runner.config.DirLimit
	unread := errors.Join(own.Unread, shared.Unread)
	t.measuring = measuring{next: time.Now().Add(rest), unread: unread != nil, bytes: own.Bytes, shared: shared.Bytes}
	switch {
	case t.over || t.exceeds != "":
		return false
	case own.Bytes > limit:
		t.exceeds = tooMuch(own, limit)
	case shared.Bytes > limit:
		t.runner.rooms.replace(t.room)
		t.exceeds = fmt.Sprintf("ended by its disk limit of %d MiB: the temporary directories that it shares hold more", limit>>20)
	case before && unread != nil:
		t.exceeds = tooMuch(tree.Usage{Unread: unread}, limit)
	}
	return t.exceeds != ""
}

// tooMuch says what is wrong with what is in a task's directory, which has a limit in bytes.
func tooMuch(u tree.Usage, limit int64) string {
	if u.Bytes > limit {
		return fmt.Sprintf("ended by its disk limit of %d MiB: its directory holds more", limit>>20)
	}
	return "ended because what is in its directory cannot be measured: " + u.Unread.Error()
}

// settleDir bounds what an ended task left in its directory: nothing is kept of what is
// too much, or cannot be measured though the directory's owner was given all rights on it.
func (p *Processes) settleDir(dir string, f *messages.Finished) {
	limit := p.config.DirLimit
	meter := tree.NewMeter(limit, func() bool { return true })
	meter.Mend = true
	meter.Add(dir)
	u := meter.Usage()
	if u.Bytes <= limit && u.Unread == nil {
		p.store.noteLeft(f.Attempt.Task.Job, u.Bytes)
		if p.config.Mapped == MappedRange { // the agent, which is in no namespace, stores it
			_ = tree.Give(dir, os.Getuid(), os.Getgid())
		}
		return
	}
	p.store.discard(dir)
	if f.Outcome == messages.Exited {
		f.Outcome, f.Detail = messages.OutOfDisk, tooMuch(u, limit)
	}
}

// processes lists the task's processes; where the machine has no control groups, the first
// one alone: to find the others would mean to look at all processes each time. t.mu is held.
func (t *process) processes() []int {
	if inside, known := t.cell.Processes(); known {
		return inside
	}
	return []int{t.child.pid}
}
