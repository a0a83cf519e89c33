package room

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
)

// inside describes what the process that holds a room sets up in it.
type inside struct {
	Hide    []string            // directories to hide from tasks
	Show    []string            // parts of Hide that tasks may see
	Temp    string              // directory with a subdirectory for each of access.Temporary
	As      *syscall.Credential // the user of tasks; nil means this process's user
	Network bool                // the room has its own network
	// Namespaces is true if tasks may make user namespaces.
	Namespaces bool
	Shared     int64 // limit of the room's shared memory, in bytes; 0 means the kernel's default
}

// sharedMemory is where a room mounts a file system for the shared memory of its tasks.
const sharedMemory = "/dev/shm"

// These constants are for the room's own terminals. Their file system has a limit, so that no task can use up the
// terminals of the machine.
const (
	ptsDir        = "/dev/pts"
	terminalsMost = "ptmxmode=0666,mode=0620,max=256"
)

// coverLimits are the mount options of the file system that covers a hidden directory. They limit its size, because
// tasks with this process's user could write there.
const coverLimits = "mode=0755,size=64k,nr_inodes=16384"

// roomReady is the message that the holder of a room sends when the room is set up.
const roomReady = "ready"

// Inside is a separate program, which Config.Inside starts in new namespaces. The first line of its standard input says
// how it must set up these namespaces. It keeps them until that input ends.
func Inside(args []string) error {
	if os.Getpid() != 1 || len(args) > 0 {
		return messages.Errorf(messages.Invalid, "is started by an executor, in namespaces, not by hand")
	}
	var what inside
	if err := json.NewDecoder(os.Stdin).Decode(&what); err != nil {
		return messages.Errorf(messages.Invalid, "is started by an executor, not by hand (%v)", err)
	}
	if err := what.setUp(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, unix.SIGCHLD)
	go reapOrphans(orphans)
	if _, err := os.Stdout.WriteString(roomReady); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err // when this process ends, the kernel ends all other processes of the room
}

// reapOrphans waits for processes whose parents ended before them.
func reapOrphans(came <-chan os.Signal) {
	for range came {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err != unix.EINTR && (err != nil || pid == 0) {
				break
			}
		}
	}
}

func (w *inside) setUp() error {
	// Mounts that are made outside later become visible inside. Mounts that are made inside do not become visible
	// outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	self, lacks := cloneSelf()
	if err := enterCopy(w.Temp, w.Namespaces); err != nil {
		return err
	}
	shown := map[string]int{}
	for _, path := range w.Show {
		fd, err := clone(path)
		if err != nil {
			return err
		}
		shown[path] = fd
	}
	if err := w.coverTemp(); err != nil {
		return err
	}
	if lacks == nil {
		_ = showCommands(self) // the error does not matter: tasks run without these commands, and a script without srun reports an error
	}
	if err := w.pin(); err != nil {
		return err
	}
	if err := w.cover(); err != nil {
		return err
	}
	for _, path := range w.Show {
		if err := show(path, shown[path], w.As); err != nil {
			return err
		}
	}
	if w.Network {
		loopbackUp() // an error does not matter: tasks can work without the loopback network
	}
	w.boundIPC()
	protectGroups()
	return mount("proc", "/proc", "")
}

// boundIPC bounds the objects in the room's IPC namespace that can stay after tasks have ended. All segments of shared
// memory together are limited to the same size as the room's other shared memory. If the other shared memory has no
// limit, the segments are limited to half of the machine's memory. Queues get 16 MiB, and semaphores 32,000. If a limit
// cannot be set, the kernel's default applies.
func (w *inside) boundIPC() {
	most := w.Shared
	if most == 0 {
		var info unix.Sysinfo_t
		if unix.Sysinfo(&info) != nil {
			return
		}
		most = int64(info.Totalram) * int64(info.Unit) / 2
	}
	for setting, value := range map[string]string{
		"shmall": strconv.FormatInt(most/int64(os.Getpagesize()), 10), "shmmax": strconv.FormatInt(most, 10),
		"msgmni": "1024", "msgmnb": "16384", "sem": "250 32000 100 128",
	} {
		_ = os.WriteFile("/proc/sys/kernel/"+setting, []byte(value), 0)
	}
}

// enterCopy mounts a copy of all mounts at a directory, and makes the copy the root of this process. The kernel lets a
// process make a user namespace only if its root is the root of the mount namespace. If tasks may not make user
// namespaces, the two roots stay different. If tasks may make them, the copy becomes the root of the mount namespace
// too.
func enterCopy(at string, namespaces bool) error {
	fd, err := clone("/")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move mount", err)
	}
	if namespaces {
		return pivot(at)
	}
	if err := unix.Chroot(at); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir("/"))
}

// pivot makes the mount at a directory the root of the mount namespace, and unmounts the old root.
func pivot(at string) error {
	if err := unix.Chdir(at); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("unmount", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir("/"))
}

// coverTemp mounts the room's own temporary directories over the machine's temporary directories. The room's
// directories may themselves lie below the machine's temporary directories. So coverTemp opens all of them before it
// covers any directory.
func (w *inside) coverTemp() error {
	own := make([]int, len(access.Temporary))
	for i := range access.Temporary {
		var err error
		if own[i], err = clone(filepath.Join(w.Temp, strconv.Itoa(i))); err != nil {
			return err
		}
		defer unix.Close(own[i])
	}
	for i, dir := range access.Temporary {
		err := unix.MoveMount(own[i], "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "mount", Path: dir, Err: err}
		}
	}
	return nil
}

// pin mounts a directory on itself if it is on the way to a hidden directory and tasks could move or replace it. A
// mount point cannot be renamed or removed. Without this, a task could rename the directory and make another one in its
// place. The next room would then hide the new directory, and show the state of the site under the renamed one.
func (w *inside) pin() error {
	for _, hidden := range w.Hide {
		for at := 1; at < len(hidden); at++ {
			if hidden[at] != filepath.Separator {
				continue
			}
			dir := hidden[:at]
			if !launch.MayWrite(filepath.Dir(dir), w.As) {
				continue
			}
			fd, err := clone(dir)
			if errors.Is(err, unix.ENOENT) {
				break // the directory is inside a temporary directory, which the room replaces
			}
			if err != nil {
				return err
			}
			err = unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
			_ = unix.Close(fd)
			if err != nil {
				return &os.PathError{Op: "mount", Path: dir, Err: err}
			}
		}
	}
	return nil
}

func (w *inside) cover() error {
	if _, err := os.Stat(sharedMemory); err == nil {
		limits := "mode=1777"
		if w.Shared > 0 {
			limits += ",size=" + strconv.FormatInt(w.Shared, 10)
		}
		if err := mount("tmpfs", sharedMemory, limits); err != nil {
			return err
		}
	}
	ownTerminals()
	for _, dir := range w.Hide {
		if err := mount("tmpfs", dir, coverLimits); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// ownTerminals gives the room its own terminals. They belong to the group "tty", which has the number 5. A user
// namespace with only one user has no such group. In this case, ownTerminals tries again without the group. If this
// fails too, the machine's terminals stay visible.
func ownTerminals() {
	if mount("devpts", ptsDir, terminalsMost+",gid=5") != nil {
		_ = mount("devpts", ptsDir, terminalsMost)
	}
}

func mount(kind, at, data string) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if kind == "devpts" { // files in such a file system are devices, so MS_NODEV would make them unusable
		flags = unix.MS_NOSUID | unix.MS_NOEXEC
	}
	if kind == "proc" {
		flags |= unix.MS_NOEXEC
	}
	if err := unix.Mount(kind, at, kind, flags, data); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	return nil
}

// protectGroups makes the files of control groups read-only. On an unprivileged node the tasks' user may own them.
func protectGroups() {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	_ = unix.MountSetattr(unix.AT_FDCWD, "/sys/fs/cgroup", unix.AT_RECURSIVE, &attr)
}

// clone opens a copy of the mount of a directory. The copy can be mounted anywhere.
func clone(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// cloneOpen does the same as [clone] for an open directory.
func cloneOpen(dir int) (int, error) {
	fd, err := unix.OpenTree(dir, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	return fd, os.NewSyscallError("open tree", err)
}

// show mounts fd, which [clone] returned, at a path where the user of the tasks can see it, and closes fd. If the user
// may not enter a directory on the way, show covers that directory with an empty file system.
func show(path string, fd int, as *syscall.Credential) error {
	defer unix.Close(fd)
	if sameAs(path, fd, as) {
		return nil
	}
	if err := coverClosed(path, as); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	return os.NewSyscallError("move mount", err)
}

// coverClosed checks the directories on the way to a path, beginning at the root. It mounts an empty file system over
// the first directory that the user may not enter. If a directory is missing, an earlier such mount already hides it,
// and coverClosed does nothing.
func coverClosed(path string, as *syscall.Credential) error {
	for at := 1; at < len(path); at++ {
		if path[at] != filepath.Separator {
			continue
		}
		dir := path[:at]
		err := launch.MayEnter(dir, as)
		if err == unix.ENOENT {
			return nil // the empty file system is already mounted here
		}
		if err != nil {
			return mount("tmpfs", dir, coverLimits)
		}
	}
	return nil
}

// sameAs reports whether a path leads to the file that is open as the descriptor fd. It opens the path with the rights
// of the given user.
func sameAs(path string, fd int, as *syscall.Credential) bool {
	var want, have unix.Stat_t
	if unix.Fstat(fd, &want) != nil {
		return false
	}
	err := launch.AsUser(as, func() error { return unix.Stat(path, &have) })
	return err == nil && have.Dev == want.Dev && have.Ino == want.Ino
}

func loopbackUp() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if r, err := unix.NewIfreq("lo"); err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		_ = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
	}
}
