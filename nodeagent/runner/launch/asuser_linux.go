package launch

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AsUser calls f with the file permissions of the user `as`, and without capabilities. If `as` is nil, the user is the
// user of this process.
func AsUser(as *syscall.Credential, f func() error) error {
	runtime.LockOSThread()
	had, err := capabilities()
	if err != nil {
		return err
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return os.NewSyscallError("getgroups", err)
	}
	if as != nil {
		if err := onFiles(as.Uid, as.Gid, as.Groups); err != nil {
			return err
		}
	}
	none := had
	none[0].Effective, none[1].Effective = 0, 0
	if err := setCapabilities(none); err != nil {
		return err
	}
	result := f()
	// If the capabilities cannot be restored, the thread stays locked, and ends with its goroutine.
	if err := setCapabilities(had); err != nil {
		return err
	}
	if as != nil {
		before := make([]uint32, len(groups))
		for i, g := range groups {
			before[i] = uint32(g)
		}
		if err := onFiles(uint32(unix.Geteuid()), uint32(unix.Getegid()), before); err != nil {
			return err
		}
		if err := setCapabilities(had); err != nil { // changing the user may have changed the capabilities
			return err
		}
	}
	runtime.UnlockOSThread()
	return result
}

// onFiles sets the user and groups that the kernel checks when the calling thread opens files. Other threads are not
// affected.
func onFiles(uid, gid uint32, groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); e != 0 {
		return os.NewSyscallError("setgroups", e)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0) // the call returns the previous value
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	return nil
}

// MayEnter reports whether a user may go into a directory.
func MayEnter(dir string, as *syscall.Credential) error {
	return AsUser(as, func() error {
		fd, err := unix.Open(dir+"/.", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
}

// MayWrite reports whether a user may make, move and remove files in a directory.
func MayWrite(dir string, as *syscall.Credential) bool {
	return AsUser(as, func() error { return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) }) == nil
}

// MaySetUsers reports whether this process may start tasks as other users.
func MaySetUsers() bool {
	sets, err := capabilities()
	if err != nil {
		return unix.Geteuid() == 0
	}
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN
	return sets[0].Effective&needed == needed
}
