package launch

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes from the calling thread all rights that no task may have; this cannot be undone. A process that the
// thread starts cannot gain privileges and has no capabilities. It can make only the system calls that the filter
// allows. The thread itself keeps the capabilities that it needs to start tasks as other users: an exec does not pass
// them on.
func confine(may Rules) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no new privileges", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return filterCalls(may)
}

// The first two constants are bits of PR_SET_SECUREBITS. If they are set, an exec as the super-user gives no
// capabilities, and nobody can clear the bits.
const (
	secureNoRoot       = 1 << 0
	secureNoRootLocked = 1 << 1
	lastCapability     = 63 // larger than the last capability of any kernel
)

// dropCapabilities empties the sets from which an exec takes capabilities: bounding, ambient and inheritable. If the
// thread has no capabilities, dropCapabilities does nothing.
func dropCapabilities() error {
	sets, err := capabilities()
	if err != nil {
		return err
	}
	if sets[0].Permitted|sets[1].Permitted == 0 {
		return nil
	}
	// A kernel without ambient capabilities returns an error here. There is then nothing to clear, so the error is
	// ignored.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := setCapabilities(sets); err != nil {
		return err
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL { // this kernel has no more capabilities
			break
		}
		if err != nil {
			// The process has no right to drop these capabilities from the bounding set. The set matters only for
			// programs of the super-user: after an exec they could have these capabilities.
			return mayKeepBounding(err)
		}
	}
	return os.NewSyscallError("securebits", unix.Prctl(unix.PR_SET_SECUREBITS, secureNoRoot|secureNoRootLocked, 0, 0, 0))
}

// capSets are the sets of capabilities of a thread, as two halves of 32 bits.
type capSets [2]unix.CapUserData

func capabilities() (sets capSets, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err = os.NewSyscallError("capget", unix.Capget(&header, &sets[0]))
	return sets, err
}

func setCapabilities(sets capSets) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return os.NewSyscallError("capset", unix.Capset(&header, &sets[0]))
}

// mayKeepBounding decides whether a task may start although its bounding set of capabilities could not be emptied.
// `err` is the error of this step. If this process does not run as the super-user, mayKeepBounding returns nil: the
// flag no_new_privs already keeps tasks of other users from getting capabilities by an exec. For the super-user, it
// returns an error.
func mayKeepBounding(err error) error {
	if unix.Geteuid() != 0 {
		return nil
	}
	return errKeepsBounding{err}
}

// errKeepsBounding says that the bounding set of capabilities could not be emptied. Only a task that runs as the
// super-user could gain by that.
type errKeepsBounding struct{ error }

func (e errKeepsBounding) Error() string {
	return "capabilities cannot be taken from the super-user's tasks here (CAP_SETPCAP): " + e.error.Error()
}

// filterCalls installs the filter of system calls on the calling thread.
func filterCalls(may Rules) error {
	filter := callFilter(may)
	if filter == nil {
		return nil
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	if err == unix.EINVAL { // this kernel has no filters of system calls
		return nil
	}
	return os.NewSyscallError("seccomp", err)
}
