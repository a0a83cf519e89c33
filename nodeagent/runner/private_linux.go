package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// inside is what a process does, in namespaces of its own, before it becomes the
// task's program.
type inside struct {
	Hide []string // directories that it is not to see
	Keep []string // what it is to see of them
	Path string
	As   *syscall.Credential
}

// private turns a program into one that runs in namespaces of its own.
func (c *Config) private(p *program, dir string, sys *syscall.SysProcAttr) (path string, argv []string, err error) {
	keep := []string{dir}
	if p.script != "" {
		keep = append(keep, p.script)
	}
	what, err := json.Marshal(inside{Hide: c.Hide, Keep: keep, Path: p.path, As: sys.Credential})
	if err != nil {
		return "", nil, err
	}
	sys.Credential = nil
	sys.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	argv = append(append([]string{}, c.Inside...), string(what))
	return c.Inside[0], append(argv, p.argv...), nil
}

// notSetUp is the exit code of a task whose namespaces could not be set up.
const notSetUp = 126

// Inside is the program of Config.Inside: the arguments are what [Processes] gave.
// It returns only if it failed.
func Inside(args []string) error {
	var what inside
	if len(args) < 2 {
		return messages.Errorf(messages.Invalid, "is started by an executor, not by hand")
	}
	if err := json.Unmarshal([]byte(args[0]), &what); err != nil {
		return messages.Errorf(messages.Invalid, "is started by an executor, not by hand (%v)", err)
	}
	if err := what.setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "candor: namespaces of the task:", err)
		os.Exit(notSetUp)
	}
	return os.NewSyscallError("exec "+what.Path, unix.Exec(what.Path, args[1:], os.Environ()))
}

func (w *inside) setUp() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	kept, err := open(w.Keep)
	if err != nil {
		return err
	}
	for _, dir := range append([]string{os.TempDir()}, w.Hide...) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "mount", Path: dir, Err: err}
		}
	}
	for path, file := range kept {
		if err := put(file, path); err != nil {
			return err
		}
	}
	if err := os.Chdir(here); err != nil {
		return err
	}
	loopbackUp() // a task may do without
	return become(w.As)
}

// open holds on to files that are about to be hidden.
func open(paths []string) (map[string]*os.File, error) {
	files := map[string]*os.File{}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		files[path] = os.NewFile(uintptr(fd), path)
	}
	return files, nil
}

// put makes a file appear where it was before, unless it can still be seen there.
func put(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(path); err == nil && os.SameFile(info, now) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(path, privateDirs)
	} else {
		err = os.WriteFile(path, nil, privateFiles)
	}
	if err != nil {
		return err
	}
	from := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	return os.NewSyscallError("mount", unix.Mount(from, path, "", unix.MS_BIND, ""))
}

// loopbackUp lets the processes of the task talk to one another.
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

// become gives up what this process may.
func become(as *syscall.Credential) error {
	if as == nil {
		return nil
	}
	groups := make([]int, len(as.Groups))
	for i, g := range as.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := unix.Setresgid(int(as.Gid), int(as.Gid), int(as.Gid)); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	return os.NewSyscallError("setresuid", unix.Setresuid(int(as.Uid), int(as.Uid), int(as.Uid)))
}
