package runner

import (
	"fmt"
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// The last line of a task that its time limit, its owner or its market ends says so, as under Slurm. It goes to where the first process of the
// task writes its errors, because a script may have sent its output to a file. A write can hang, for example on a
// file system that does not answer. So a process of its own writes the line: only that process opens the file, it is
// in no cell and no room, and it has the rights of the task's user.

const (
	// lineWithin is how long the end of a task may wait for its last line.
	lineWithin = time.Second
	// lineWriters bounds the lines that are being written for one account. If they hang, its other tasks end without.
	lineWriters = 4
)

// endWithLine writes the last line of a task, and then ends the task. A task without output files has no such line. The
// caller holds t.mu.
func (t *process) endWithLine(grace time.Duration, words string) {
	first, err := -1, error(unix.EBADF)
	if t.stream == nil && !t.task.holds() && t.child.fd >= 0 {
		first, err = unix.FcntlInt(uintptr(t.child.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		t.ask(grace)
		return
	}
	as, line := t.program.as, []byte(t.lastLine(words))
	go func() {
		t.runner.writeLine(t.task.Program.Account, first, as, line)
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			t.ask(grace)
		}
	}()
}

// lastLine returns the last line of the task. Programs search for Slurm's words in it.
func (t *process) lastLine(words string) string {
	p, job := t.task.Program, t.task.Attempt.Task.Job.String()
	if p.Tasks > 1 && !p.Allocation {
		job += fmt.Sprintf("_%d", t.task.Array)
	}
	return fmt.Sprintf("candor: error: *** JOB %s ON %s CANCELLED AT %s %s\n",
		job, t.runner.config.Node, t.runner.config.Clock().Std().Local().Format("2006-01-02T15:04:05"), words)
}

// writeLine writes a line to the standard error of a task's first process. first is a descriptor of that process, which
// writeLine closes. It returns after lineWithin even if the write hangs.
func (p *Processes) writeLine(account messages.Name, first int, as *syscall.Credential, line []byte) {
	found, _ := p.lines.LoadOrStore(account, make(chan struct{}, lineWriters))
	writers, late := found.(chan struct{}), time.NewTimer(lineWithin)
	defer late.Stop()
	select {
	case writers <- struct{}{}:
	case <-late.C:
		_ = unix.Close(first)
		return
	}
	l, written := newLaunch(), make(chan struct{})
	p.forks.add(l)
	go cell.OnThread(func() { // not a thread of the forge: those may not look into processes
		defer func() { <-writers }()
		defer close(written)
		defer p.forks.remove(l)
		c, err := l.try(newLinePlan(first, as, line), new(syscall.SysProcAttr))
		if l.drop(); err == nil {
			_, _ = c.reap()
			_ = unix.Close(c.fd)
		}
		_ = unix.Close(first)
	})
	select {
	case <-written:
	case <-late.C:
		l.kill()
	}
}

// newLinePlan returns the steps of the process that writes a line. It gets a copy of the task's descriptor, and so
// writes at the place where the task's output ends. It takes the copy with the rights of the node or, if the node may
// not look into processes of others, with those of the user.
func newLinePlan(first int, as *syscall.Credential, line []byte) *plan {
	const task, output = 0, 1 // after the other files are closed, the kernel gives the copy the lowest free number
	p := &plan{steps: make([]step, 0, 16), line: line, header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}}
	take := func() { p.may(unix.SYS_PIDFD_GETFD, task, uintptr(unix.Stderr), 0) }
	p.must(unix.SYS_DUP3, uintptr(first), task, 0)
	p.must(unix.SYS_CLOSE_RANGE, output, math.MaxUint32, 0)
	p.must(unix.SYS_SETSID)
	take()
	p.become(as)
	p.must(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&p.header)), uintptr(unsafe.Pointer(&p.powers)))
	take()
	p.must(unix.SYS_LSEEK, output, 0, unix.SEEK_CUR) // fails for a pipe or a terminal
	p.must(unix.SYS_WRITE, output, uintptr(unsafe.Pointer(&p.line[0])), uintptr(len(line)))
	return p
}
