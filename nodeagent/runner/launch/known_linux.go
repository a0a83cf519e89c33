package launch

import (
	"bytes"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A task starts with the limits, the priorities and the out-of-memory score of a systemd service. It does not matter
// how the site was started. The site may have been started from a shell with `ulimit`, `chrt` or `ionice`, or by a unit
// with Nice and OOMScoreAdjust. There are two exceptions. First, the task keeps the node's hard limits. But it does not
// keep the hard limits of priorities, because a task with a high priority could stop the node from running. Second, the
// task keeps the node's set of processors, because an operator may give a node only a part of a machine.

// limited is a limit that a task gets from the kernel. This process itself has a different limit.
type limited struct {
	resource uintptr
	limit    unix.Rlimit
	hard     bool // tasks cannot raise the limit
}

// usualLimits are the limits of a login session. The limit of open files is low, because some programs close every
// possible descriptor. A task may ask the kernel for more.
var usualLimits = []limited{
	{resource: unix.RLIMIT_CPU, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_FSIZE, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_DATA, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_STACK, limit: unix.Rlimit{Cur: 8 << 20}},
	{resource: unix.RLIMIT_CORE, limit: unix.Rlimit{Cur: 0}},
	{resource: unix.RLIMIT_RSS, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_AS, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_NOFILE, limit: unix.Rlimit{Cur: 1024}},
	{resource: unix.RLIMIT_LOCKS, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_NPROC, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}}, // the task's cell limits the number of processes
	{resource: unix.RLIMIT_MEMLOCK, limit: unix.Rlimit{Cur: 8 << 20}},
	{resource: unix.RLIMIT_SIGPENDING, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_MSGQUEUE, limit: unix.Rlimit{Cur: 800 << 10}},
	{resource: unix.RLIMIT_RTTIME, limit: unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{resource: unix.RLIMIT_RTPRIO, limit: unix.Rlimit{Cur: 0}, hard: true},
	{resource: unix.RLIMIT_NICE, limit: unix.Rlimit{Cur: 0}, hard: true},
}

// Tasks must not inherit some resource limits of this process. The function in the variable `taken` returns these
// limits, each with the value that tasks get.
var taken = sync.OnceValue(func() (found []*limited) {
	for _, l := range usualLimits {
		var own unix.Rlimit
		if unix.Getrlimit(int(l.resource), &own) != nil {
			continue
		}
		l.limit.Cur, l.limit.Max = min(l.limit.Cur, own.Max), own.Max
		if l.hard {
			l.limit.Max = l.limit.Cur
		}
		if l.limit != own || l.resource == unix.RLIMIT_NOFILE { // the Go runtime can raise this limit at any time
			found = append(found, &l)
		}
	}
	return found
})

// A child inherits properties from this process, such as its priority. ranks finds out which of them are unusual here,
// so that the function rank must reset them. It does this only once.
var ranks = sync.OnceValue(func() (found struct{ nice, killer, policy, disk, persona bool }) {
	const noNice = 20 // the value for nice 0 in the kernel's form
	policy, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	found.policy = errno == 0 && policy != usualPolicy
	disk, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, ofProcess, 0, 0)
	found.disk = errno == 0 && disk>>diskClass != 0
	persona, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, askPersona, 0, 0)
	found.persona = errno == 0 && persona != 0
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	found.nice = err == nil && nice != noNice
	killer, err := os.ReadFile("/proc/self/oom_score_adj")
	// The calls of a child are fixed before the child runs: one call opens oom_score_adj, and the next call writes to
	// this file. So this program must know the number of the open file in advance. It knows the number if the child
	// first closes all files of the node, because the kernel gives the lowest free number. This needs close_range.
	found.killer = err == nil && !bytes.Equal(killer, []byte("0\n")) && unix.CloseRange(1<<30, 1<<30, 0) == nil
	return found
})

// Constants of the kernel that package unix lacks.
const (
	usualPolicy = 0          // SCHED_OTHER
	ofProcess   = 1          // IOPRIO_WHO_PROCESS
	diskClass   = 13         // bits below the class in a disk priority; class 0 means to follow the processor priority
	askPersona  = 0xffffffff // argument of the system call personality that only reads the value
)

var (
	killerFile = append([]byte("/proc/self/oom_score_adj"), 0)
	noKiller   = []byte("0")
)

// rank adds steps that give the child the usual priority and scheduling rank, as far as this process has the right to
// set them. Steps that close the node's files must come before these steps.
func (p *plan) rank() {
	r := ranks()
	if r.persona { // this process has a personality that was set with setarch
		p.may(unix.SYS_PERSONALITY, 0)
	}
	if r.policy { // before the priority: afterwards the process may belong to another user
		p.may(unix.SYS_SCHED_SETSCHEDULER, 0, usualPolicy, uintptr(unsafe.Pointer(&p.priority)))
	}
	if r.disk {
		p.may(unix.SYS_IOPRIO_SET, ofProcess, 0, 0)
	}
	if r.nice {
		p.may(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 0)
	}
	if r.killer {
		const opened = 3 // the number after standard input, output and error
		at := unix.AT_FDCWD
		p.may(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&killerFile[0])), unix.O_WRONLY, 0)
		p.may(unix.SYS_WRITE, opened, uintptr(unsafe.Pointer(&noKiller[0])), 1)
		p.may(unix.SYS_CLOSE, opened)
	}
}
