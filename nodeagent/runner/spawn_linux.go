package runner

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// child is a started process that has not been reaped.
type child struct {
	pid int
	// fd becomes readable when the process exits; nil where the kernel has no
	// process file descriptors.
	fd *os.File
}

// spawn executes a program, as sys says. files are its standard
// input, output and error.
func spawn(path string, argv, env []string, dir string, files []uintptr, sys *syscall.SysProcAttr) (child, error) {
	fd := -1
	sys.PidFD = &fd
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: dir, Env: env, Files: files, Sys: sys})
	if err != nil {
		return child{}, err
	}
	c := child{pid: pid}
	if fd >= 0 {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK) // so that the runtime polls it
		c.fd = os.NewFile(uintptr(fd), "pidfd")
	}
	return c, nil
}

// await returns when the process has exited, and leaves it to be reaped.
func (c child) await() {
	if c.fd != nil {
		defer c.fd.Close()
		conn, err := c.fd.SyscallConn()
		if err == nil && conn.Read(func(fd uintptr) bool { return exited(unix.P_PIDFD, int(fd), unix.WNOHANG) }) == nil {
			return
		}
	}
	exited(unix.P_PID, c.pid, 0)
}

// exited reports whether a process has exited; without WNOHANG it waits.
func exited(kind, id, options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if err != unix.EINTR {
			return err != nil || info.Signo != 0
		}
	}
}

// reap collects the status of a process that has exited, and frees its number.
func (c child) reap() (status unix.WaitStatus, usage unix.Rusage) {
	for {
		if _, err := unix.Wait4(c.pid, &status, 0, &usage); err != unix.EINTR {
			return status, usage
		}
	}
}

// signalSession signals the processes of a session that left its first
// process group; the session's first process must not have been reaped.
func signalSession(session int, signals ...unix.Signal) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if group, of := sessionOf(name); of == session && group != session {
			signalMember(pid, session, signals)
		}
	}
}

// signalMember signals a process if it is of a session still: its number may
// have passed to another since it was read.
func signalMember(pid, session int, signals []unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if _, of := sessionOf(strconv.Itoa(pid)); of == session {
		for _, s := range signals {
			unix.PidfdSendSignal(fd, s, nil, 0)
		}
	}
}

// sessionOf reads a process's group and session, zeros if it is gone.
func sessionOf(pid string) (group, session int) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0
	}
	// pid (name) state parent group session …, where the name may hold anything.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 4 {
		return 0, 0
	}
	group, _ = strconv.Atoi(fields[2])
	session, _ = strconv.Atoi(fields[3])
	return group, session
}
