package launch

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Launch is one start of a program. Before the child executes the program, other processes of the account can stop the
// child, and a lease on the program's file can delay it. So a waiting start holds only its own thread, and no file or
// lock of this process. (Package syscall would hold one lock for all starts.) The assembler function vfork reads the
// first fields of Launch, up to errno, by their offsets: do not move these fields.
type Launch struct {
	call  [6]uintptr // the system call that makes the child, with its arguments
	steps *step
	count uintptr // number of steps of the child
	errno uintptr // error of the step that failed

	pidfd atomic.Int32 // the kernel writes this descriptor when it makes the child
	pid   atomic.Int32 // process number of the child that executed the program; 0 means none
	mu    sync.Mutex
	ended bool // the child has executed the program, or failed
	late  bool // the child was told to end before it had started

	noClone3 bool         // the call clone3 must fail in the program
	affinity *unix.CPUSet // the program's processors; nil means all

	// The kernel and the child get the addresses of the fields args and stack. So these fields are on the heap:
	// variables on the stack of a goroutine may move.
	args  cloneArgs
	stack [childStack]byte // stack of the child
}

type step struct {
	call [7]uintptr
	must uintptr // if not 0, the child ends when the call fails
}

// vfork makes a child that shares the memory of this process until the child executes a program. Until then, the Go
// runtime treats the calling thread as blocked in a system call. The result is negative if no child could be made.
func vfork(l *Launch) (pid uintptr)

func New() *Launch {
	l := new(Launch)
	l.pidfd.Store(-1)
	return l
}

// errLate is the error of a start that took too long, or that was no longer wanted.
var errLate = errors.New("the program was not executed in time: a process of the same account stopped the program, or has a lease on its file, or the file system does not answer")

// Kill ends the child, unless the child already runs the program.
func (l *Launch) Kill() {
	const pause = time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = true
	switch fd := l.pidfd.Load(); {
	case l.ended:
	case fd < 0: // the child will be made in a moment
		time.AfterFunc(pause, l.Kill)
	default:
		_ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0)
	}
}

// Drop cancels a launch whose child will not be made.
func (l *Launch) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// childStack is the size of a child's stack, in bytes. It is small, because the child calls no functions.
const childStack = 4096

// kernelSignals is the number of signals that the kernel has. signalSetSize is the size of a set of signals in bytes.
const (
	kernelSignals = 64
	signalSetSize = 8
)

// Spawn executes a program. The argument `sys` has the user of the new process. It also says whether the process gets a
// new session, a terminal or a control group. The argument `files` has the process's standard input, output and error.
func (l *Launch) Spawn(path string, argv, env []string, dir string, umask uint32, files []uintptr, sys *syscall.SysProcAttr) (Child, error) {
	p, err := l.newPlan(path, argv, env, dir, umask, files, sys)
	if err != nil {
		return Child{FD: -1}, err
	}
	c, err := l.try(p, sys)
	for tries := 0; err == unix.ETXTBSY && tries < busyTries; tries++ {
		time.Sleep(busyPause)
		c, err = l.try(p, sys)
	}
	l.Drop()
	return c, err
}

// The kernel refuses to execute a script that is open for writing. While the node writes a script, the child of another
// start inherits the open file, and keeps it open for a moment. So a refused start is tried again.
const (
	busyTries = 50
	busyPause = 2 * time.Millisecond
)

// try makes a child that carries out the plan.
func (l *Launch) try(p *plan, sys *syscall.SysProcAttr) (Child, error) {
	low := (uintptr(unsafe.Pointer(&l.stack[0])) + 15) &^ 15
	const flags = unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD
	l.args = cloneArgs{flags: flags | unix.CLONE_CLEAR_SIGHAND, pidfd: uint64(uintptr(unsafe.Pointer(&l.pidfd))), exitSignal: uint64(unix.SIGCHLD), stack: uint64(low), stackSize: childStack - 16}
	if sys.UseCgroupFD {
		l.args.flags |= unix.CLONE_INTO_CGROUP
		l.args.cgroup = uint64(sys.CgroupFD)
		l.call = [6]uintptr{unix.SYS_CLONE3, uintptr(unsafe.Pointer(&l.args)), unsafe.Sizeof(l.args)}
	} else {
		l.call = [6]uintptr{unix.SYS_CLONE, flags | uintptr(unix.SIGCHLD), low + childStack - 16, uintptr(unsafe.Pointer(&l.pidfd))}
	}
	l.steps, l.count = &p.steps[0], uintptr(len(p.steps))
	pid := int(l.run())
	runtime.KeepAlive(p)
	return l.outcome(pid)
}

// run starts the child. For a short time, the child shares this process's memory. A signal handler of this process that
// ran in the child would change this memory. So all signals are blocked until the child has its own memory.
func (l *Launch) run() uintptr {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, before := ^uint64(0), uint64(0)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&before)), signalSetSize, 0, 0)
	pid := vfork(l)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&before)), 0, signalSetSize, 0, 0)
	return pid
}

// outcome returns the child if the child has executed the program. Otherwise it returns the error, and no child is
// left.
func (l *Launch) outcome(pid int) (Child, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Child{PID: pid, FD: int(l.pidfd.Load())}
	if pid < 0 {
		return Child{FD: -1}, syscall.Errno(-pid)
	}
	err := error(nil)
	switch {
	case l.errno != 0:
		err, l.errno = syscall.Errno(l.errno), 0
	case l.late:
		err = errLate
		_ = unix.Kill(pid, unix.SIGKILL)
	default:
		l.ended = true
		l.pid.Store(int32(pid))
		return c, nil
	}
	_, _ = c.Reap()
	if c.FD >= 0 {
		l.pidfd.Store(-1)
		_ = unix.Close(c.FD)
	}
	return Child{FD: -1}, err
}

type cloneArgs struct {
	flags, pidfd, childTid, parentTid, exitSignal, stack, stackSize, tls, setTid, setTidSize, cgroup uint64
}

// plan is the list of the steps that a child takes before it runs the program. It also has the data that the steps
// read, because the child must not allocate memory.
type plan struct {
	steps     []step
	path, dir *byte
	argv, env []*byte
	groups    []uint32
	action    [4]uint64 // the default action for a signal
	mask      uint64    // empty set of signals
	priority  int32     // 0, the priority for the usual policy

	// The fields from here on are for the process that writes the last line of a task's output.
	line   []byte
	header unix.CapUserHeader
	powers capSets // empty: the process has no capabilities
}

func (l *Launch) newPlan(path string, argv, env []string, dir string, umask uint32, files []uintptr, sys *syscall.SysProcAttr) (p *plan, err error) {
	p = &plan{steps: make([]step, 0, 16)}
	var errs [4]error
	p.path, errs[0] = syscall.BytePtrFromString(path)
	p.dir, errs[1] = syscall.BytePtrFromString(dir)
	p.argv, errs[2] = syscall.SlicePtrFromStrings(argv)
	p.env, errs[3] = syscall.SlicePtrFromStrings(env)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, syscall.EINVAL
	}
	p.own(files, sys)
	if l.affinity != nil { // needed because no control group may limit the processors
		p.may(unix.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(*l.affinity), uintptr(unsafe.Pointer(l.affinity)))
	}
	p.may(unix.SYS_UMASK, uintptr(umask))
	p.become(sys.Credential)
	if l.noClone3 {
		if filter := noClone3(); filter != nil {
			p.must(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(filter)), 0, 0)
		}
	}
	p.must(unix.SYS_CHDIR, uintptr(unsafe.Pointer(p.dir)))
	p.may(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&p.mask)), 0, signalSetSize)
	p.must(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)), uintptr(unsafe.Pointer(&p.argv[0])), uintptr(unsafe.Pointer(&p.env[0])))
	return p, nil
}

func (p *plan) add(must uintptr, call ...uintptr) {
	s := step{must: must}
	copy(s.call[:], call)
	p.steps = append(p.steps, s)
}

func (p *plan) must(call ...uintptr) { p.add(1, call...) }
func (p *plan) may(call ...uintptr)  { p.add(0, call...) }

// own adds the steps that the process must make with the node's rights, before it takes the rights of the task. The
// first of these steps closes the node's files.
func (p *plan) own(files []uintptr, sys *syscall.SysProcAttr) {
	for to, fd := range files {
		p.must(unix.SYS_DUP3, fd, uintptr(to), 0)
	}
	p.may(unix.SYS_CLOSE_RANGE, uintptr(len(files)), math.MaxUint32, 0) // if an older kernel lacks this call, the exec closes the files
	if sys.Setsid {
		p.must(unix.SYS_SETSID)
	}
	if sys.Setctty {
		p.must(unix.SYS_IOCTL, uintptr(sys.Ctty), unix.TIOCSCTTY, 1)
	}
	signals := ignored()
	if !sys.UseCgroupFD { // not needed after clone3, which resets the signals that have handlers
		signals = allSignals
	}
	for _, s := range signals {
		p.may(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&p.action)), 0, signalSetSize)
	}
	p.rank() // must come first, because the new limits could forbid it
	for _, l := range taken() {
		p.may(unix.SYS_PRLIMIT64, 0, l.resource, uintptr(unsafe.Pointer(&l.limit)))
	}
}

// become adds the steps that make the child the task's user.
func (p *plan) become(as *syscall.Credential) {
	if as == nil {
		return
	}
	if !as.NoSetGroups {
		var first uintptr
		if p.groups = as.Groups; len(p.groups) > 0 {
			first = uintptr(unsafe.Pointer(&p.groups[0]))
		}
		p.must(unix.SYS_SETGROUPS, uintptr(len(p.groups)), first)
	}
	p.must(unix.SYS_SETGID, uintptr(as.Gid))
	p.must(unix.SYS_SETUID, uintptr(as.Uid))
}

// allSignals are the signals that a process can handle.
var allSignals = func() (all []uintptr) {
	for s := uintptr(1); s <= kernelSignals; s++ {
		if s != uintptr(unix.SIGKILL) && s != uintptr(unix.SIGSTOP) {
			all = append(all, s)
		}
	}
	return all
}()

// ignored returns the signals that this process was started to ignore. Tasks must not ignore them.
var ignored = sync.OnceValue(func() (found []uintptr) {
	const ignore = 1
	for _, s := range allSignals {
		var action [4]uint64
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&action)), signalSetSize, 0, 0)
		if action[0] == ignore {
			found = append(found, s)
		}
	}
	return found
})
