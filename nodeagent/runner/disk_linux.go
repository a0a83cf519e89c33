package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

type measuring struct {
	underWay bool
	next     time.Time // earliest time of the next measurement
	unread   bool      // the last measurement did not see everything
	bytes    int64     // bytes in the task's own directory, as last measured
	shared   int64     // bytes in the task's shared temporary directories, as last measured
	// Surveys measure all tasks. The field grew is the difference of the field bytes between the last two surveys, and
	// sharedGrew is the difference of the field shared.
	grew, sharedGrew int64
}

// measureShare bounds the cost of measuring a task: the measuring takes at most 1/measureShare of a processor's time.
const measureShare = 5

// After a measurement of a task, restAfter returns the pause until the next one. The pause is so long that measurements
// take at most a fifth of a processor's time. `took` is how long the last measurement took, and `used` is its processor
// time. If the measurement mostly waited for the disk or a processor, the pause is only as long as the measurement,
// because a task could fill the disk in a longer pause.
func restAfter(took, used time.Duration) time.Duration { return max(took, (measureShare-1)*used) }

func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startMeasuring measures the task's directories in a separate goroutine, because large directories must not delay the
// checks of other tasks. The caller holds t.mu.
func (t *process) startMeasuring() {
	m, dir := &t.measuring, t.ownDir()
	if dir == "" && t.room == nil || m.underWay || time.Now().Before(m.next) {
		return
	}
	m.underWay = true
	go t.measure(dir, t.processes())
}

// ownDir returns the working directory that the runner made for the task; "" if it has none. The caller holds t.mu.
func (t *process) ownDir() string {
	if t.task.Program.Dir != "" {
		return ""
	}
	return t.files.OwnDir()
}

// measureAgain measures the task's directories. It does nothing if they were measured just before.
func (t *process) measureAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child.PID != 0 && !t.over {
		t.startMeasuring()
	}
}

// measure measures the disk space that a running task uses: its own directory and the files of its room. It ends the
// task if it uses too much.
func (t *process) measure(dir string, processes []int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, used := time.Now(), threadTime()
	runs := func() bool { // reports whether the task is still known
		select {
		case <-t.ended:
			return false
		default:
			return true
		}
	}
	own, shared := t.usage(dir, processes, runs, func() tree.Usage { return t.room.Usage(t.runner.config.DirLimit, runs) })
	if t.judge(own, shared, restAfter(time.Since(began), threadTime()-used)) {
		t.end(agent.OutOfDisk, t.runner.config.Grace)
	}
}

// usage measures what the task keeps on the disk. It stops early when the function `goOn` returns false. It calls the
// function `temporary` to measure the temporary directories that the tasks of a room share.
func (t *process) usage(dir string, processes []int, goOn func() bool, temporary func() tree.Usage) (own, shared tree.Usage) {
	meter := tree.NewMeter(t.runner.config.DirLimit, goOn)
	switch {
	case dir != "":
		meter.Add(dir)
	case t.room != nil:
		meter.On(t.room.Temp)
	}
	for _, p := range processes {
		meter.AddOpen(p)
	}
	own = meter.Usage()
	if t.room != nil {
		shared = temporary()
		if dir == "" {
			shared.Bytes, own = shared.Bytes+own.Bytes, tree.Usage{}
		}
	}
	return own, shared
}

// judge records a measurement, and sets the time of the next one. It returns true if the task must be ended because its
// directories have more bytes than the limit. If a directory cannot be read once, the task may be moving it. If it
// cannot be read twice in a row, judge also returns true.
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
		t.runner.rooms.Replace(t.room)
		t.exceeds = fmt.Sprintf("ended by its disk limit of %d MiB: the shared temporary directories of the task hold more", limit>>20)
	case before && unread != nil:
		t.exceeds = tooMuch(tree.Usage{Unread: unread}, limit)
	}
	return t.exceeds != ""
}

// tooMuch returns the sentence for a task whose directory exceeds its limit in bytes, or could not be measured.
func tooMuch(u tree.Usage, limit int64) string {
	if u.Bytes > limit {
		return fmt.Sprintf("ended by its disk limit of %d MiB: its directory holds more", limit>>20)
	}
	return "ended because the size of its directory cannot be measured: " + u.Unread.Error()
}

// settleDir decides about the directory of an ended task. It removes the files in three cases: the task was ended
// because of its disk space, the files exceed the limit, or they cannot be measured.
func (p *Processes) settleDir(dir string, f *agent.Finished) {
	limit := p.config.DirLimit
	if f.Outcome == agent.OutOfDisk { // the task was ended to free the space
		p.store.Discard(dir)
		return
	}
	meter := tree.NewMeter(limit, func() bool { return true })
	meter.Mend = true
	meter.Add(dir)
	u := meter.Usage()
	if u.Bytes <= limit && u.Unread == nil {
		p.store.NoteLeft(f.Attempt.Task.Job, u.Bytes)
		// the files must belong to the agent, which stores them from outside of the namespace
		if p.config.Mapped == MappedRange {
			_ = tree.Give(dir, os.Getuid(), os.Getgid())
		}
		return
	}
	p.store.Discard(dir)
	if f.Outcome == agent.Exited {
		f.Outcome, f.Detail = agent.OutOfDisk, tooMuch(u, limit)
	}
}

// processes lists the task's processes. Without control groups it lists only the first one: it would have to look at
// all processes of the machine. The caller holds t.mu.
func (t *process) processes() []int {
	if inside, known := t.cell.Processes(); known {
		return inside
	}
	return []int{t.child.PID}
}
