package launch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Child is a started process that has not been reaped.
type Child struct {
	PID int
	FD  int // becomes readable when the process exits; -1 if the kernel has no such descriptors
}

// exited waits until a process has exited. It does not reap the process.
func exited(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// Reap collects the status of a process that has exited, and frees its number.
func (c Child) Reap() (status unix.WaitStatus, usage unix.Rusage) {
	for {
		if _, err := unix.Wait4(c.PID, &status, 0, &usage); err != unix.EINTR {
			return status, usage
		}
	}
}

// CloseAll closes files, such as the files with which a process was started.
func CloseAll(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
