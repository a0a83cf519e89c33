package launch

import (
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// A write to the output file of a task can hang, for example on a file system that does not answer. So a separate
// process opens the file and writes the last line. This process has the rights of the task's user, but is in no cell,
// and not in the namespaces of a room.

const (
	// lineWithin is how long the end of a task may wait for its last line.
	lineWithin = 3 * time.Second
	// lineWriters is the largest number of processes that write last lines for tasks of one account at the same time.
	// If so many writes hang, the other tasks of the account end without a last line.
	lineWriters = 4
)

// WriteLine writes a line to the standard error of a task's first process. The argument `first` is a descriptor of that
// process, which WriteLine closes. WriteLine returns after lineWithin even if the write hangs.
func (f *Forks) WriteLine(account messages.Name, first int, as *syscall.Credential, line []byte) {
	found, _ := f.lines.LoadOrStore(account, make(chan struct{}, lineWriters))
	writers, late := found.(chan struct{}), time.NewTimer(lineWithin)
	defer late.Stop()
	select {
	case writers <- struct{}{}:
	case <-late.C:
		_ = unix.Close(first)
		return
	}
	l, written := New(), make(chan struct{})
	f.Add(l)
	go cell.OnThread(func() { // not one of the threads that start tasks: those may not look into processes
		defer func() { <-writers }()
		defer close(written)
		defer f.Remove(l)
		c, err := l.try(newLinePlan(first, as, line), new(syscall.SysProcAttr))
		if l.Drop(); err == nil {
			_, _ = c.Reap()
			_ = unix.Close(c.FD)
		}
		_ = unix.Close(first)
	})
	select {
	case <-written:
	case <-late.C:
		l.Kill()
	}
}

// newLinePlan returns the steps of the process that writes a line to a task's output. The process copies the descriptor
// of the output from the task, so that the line comes after what the task has written. It makes the copy with the
// rights of the node. If the node may not look into processes of other users, it makes the copy with the rights of the
// task's user.
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
