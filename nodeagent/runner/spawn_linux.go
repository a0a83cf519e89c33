package runner

import "golang.org/x/sys/unix"

// child is a started process that has not been reaped.
type child struct {
	pid int
	fd  int // becomes readable when the process exits; -1 if the kernel has no such descriptors
}

// exited returns when a process has exited. The process must still be reaped.
func exited(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
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
