package runner

import (
	"bytes"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A task starts with limits, priority and rank for the kernel's killer that do not depend on who started the
// site, and how: a shell with `ulimit`, a unit with Nice and OOMScoreAdjust. What a task may ask for at most
// stays as the node has it.

// limited is a limit that a task is to have in place of this process's.
type limited struct {
	resource uintptr
	limit    unix.Rlimit
}

// usualLimits are those that a login has. A task may have more files open if it asks the kernel: there are
// programs that look at each possible number.
var usualLimits = []limited{
	{unix.RLIMIT_CPU, unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{unix.RLIMIT_FSIZE, unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{unix.RLIMIT_DATA, unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{unix.RLIMIT_STACK, unix.Rlimit{Cur: 8 << 20}},
	{unix.RLIMIT_CORE, unix.Rlimit{Cur: 0}},
	{unix.RLIMIT_RSS, unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{unix.RLIMIT_AS, unix.Rlimit{Cur: unix.RLIM_INFINITY}},
	{unix.RLIMIT_NOFILE, unix.Rlimit{Cur: 1024}},
}

// taken are the limits of this process that a task is not to have, with what it has instead.
var taken = sync.OnceValue(func() (found []*limited) {
	for _, l := range usualLimits {
		var own unix.Rlimit
		if unix.Getrlimit(int(l.resource), &own) != nil {
			continue
		}
		if l.limit.Cur, l.limit.Max = min(l.limit.Cur, own.Max), own.Max; l.limit != own || l.resource == unix.RLIMIT_NOFILE { // which the Go runtime raises, when it likes
			found = append(found, &l)
		}
	}
	return found
})

// ranks is what rank has to undo.
var ranks = sync.OnceValue(func() (found struct{ nice, killer bool }) {
	const noNice = 20 // as the kernel counts
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	found.nice = err == nil && nice != noNice
	killer, err := os.ReadFile("/proc/self/oom_score_adj")
	// Only a child that has given up the node's files knows the number of the file that it opens.
	found.killer = err == nil && !bytes.Equal(killer, []byte("0\n")) && unix.CloseRange(1<<30, 1<<30, 0) == nil
	return found
})

var (
	killerFile = append([]byte("/proc/self/oom_score_adj"), 0)
	noKiller   = []byte("0")
)

// rank gives the child the usual priority and rank, as far as this process may; it has given up the node's files.
func (p *plan) rank() {
	r := ranks()
	if r.nice {
		p.may(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 0)
	}
	if r.killer {
		const opened = 3 // after input, output and error
		at := unix.AT_FDCWD
		p.may(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&killerFile[0])), unix.O_WRONLY, 0)
		p.may(unix.SYS_WRITE, opened, uintptr(unsafe.Pointer(&noKiller[0])), 1)
		p.may(unix.SYS_CLOSE, opened)
	}
}
