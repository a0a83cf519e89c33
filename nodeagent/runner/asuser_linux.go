package runner

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/access"
)

// asUser calls f with the file permissions of a user, and without capabilities. nil means the user
// of this process.
func asUser(as *syscall.Credential, f func() error) error {
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
	// If this fails, the thread stays locked, and ends with its goroutine.
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

// mayEnter reports whether a user may go into a directory.
func mayEnter(dir string, as *syscall.Credential) error {
	return asUser(as, func() error {
		fd, err := unix.Open(dir+"/.", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
}

// mayWrite reports whether a user may make, move and remove files in a directory.
func mayWrite(dir string, as *syscall.Credential) bool {
	return asUser(as, func() error { return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) }) == nil
}

// showDir makes a job's working directory visible in the room. The user as whom the tasks run must
// be able to enter it from outside of the room, or the owner must have named that user in the
// directory's access list; in that case the permissions of the directories above do not matter.
func (c *Config) showDir(r *room, dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown[dir] {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // if it is missing, the start of the task says so
	}
	state := messages.Errorf(messages.PermissionDenied, "working directory %s holds the state of the site, or sockets of the user who runs it, which tasks must not reach; submit from another directory, or name one with --chdir", dir)
	if slices.ContainsFunc(c.Hide, func(hidden string) bool { return access.Beneath(real, hidden) }) {
		return state
	}
	found, err := openFor(real, r.as)
	if err != nil {
		return nil // if it is refused, the start of the task says so
	}
	defer unix.Close(found)
	fd, err := cloneOpen(found)
	if err != nil {
		return err
	}
	err = r.inside(func() error {
		// The present mount hides the state here; a new mount of the directory would show it.
		if !sameAs(real, fd, r.as) && slices.ContainsFunc(c.Hide, func(hidden string) bool { return access.Beneath(hidden, real) }) {
			_ = unix.Close(fd)
			return state
		}
		return show(real, fd, r.as)
	})
	r.shown[dir] = err == nil
	return err
}

// openFor opens a directory that a user may enter, that the user owns, or whose access list names
// the user. Its path has no links: a link that a task puts there in the meantime is not followed.
func openFor(real string, as *syscall.Credential) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	err = asUser(as, func() error {
		fd, err = unix.Openat2(unix.AT_FDCWD, real+"/.", &how)
		return err
	})
	if err == nil {
		return fd, nil
	}
	if fd, err = unix.Openat2(unix.AT_FDCWD, real, &how); err != nil {
		return -1, err
	}
	if named("/proc/self/fd/"+strconv.Itoa(fd), as) {
		return fd, nil
	}
	_ = unix.Close(fd)
	return -1, unix.EACCES
}

// named reports whether a directory belongs to a user, or its access list names the user.
func named(dir string, as *syscall.Credential) bool {
	var info unix.Stat_t
	if as == nil || unix.Stat(dir, &info) != nil {
		return false
	}
	return info.Uid == as.Uid || access.Named(dir, as.Uid)
}
