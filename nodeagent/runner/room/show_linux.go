package room

import (
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
)

// Show makes a job's working directory visible in the room. The user of the tasks must be able to enter the directory
// from outside of the room, or must be in the directory's access list.
func (r *Rooms) Show(one *Room, dir string) error {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.shown[dir] {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // if the directory is missing, the start of the task reports this
	}
	state := messages.Errorf(messages.PermissionDenied, "working directory %s has the state of the site, or sockets of the user who runs the site, and tasks must not reach them; submit from another directory, or name another directory with --chdir", dir)
	if slices.ContainsFunc(r.config.Hide, func(hidden string) bool { return access.Beneath(real, hidden) }) {
		return state
	}
	found, err := openFor(real, one.as)
	if err != nil {
		return nil // if the directory is refused, the start of the task reports this
	}
	defer unix.Close(found)
	fd, err := cloneOpen(found)
	if err != nil {
		return err
	}
	err = one.Inside(func() error {
		// A directory that must stay hidden can be below the directory that is shown. It is hidden by a mount. A new
		// mount of the shown directory would not have this mount, and would make the hidden directory visible again.
		if !sameAs(real, fd, one.as) && slices.ContainsFunc(r.config.Hide, func(hidden string) bool { return access.Beneath(hidden, real) }) {
			_ = unix.Close(fd)
			return state
		}
		return show(real, fd, one.as)
	})
	one.shown[dir] = err == nil
	return err
}

// openFor opens a directory that a user may enter or owns, or whose access list names the user. The path `real` must
// have no symbolic links; openFor follows none.
func openFor(real string, as *syscall.Credential) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	err = launch.AsUser(as, func() error {
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
