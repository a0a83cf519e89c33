package netlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// insideVariable is the variable with which Enter marks the processes that it starts.
const insideVariable = "CANDOR_NETLAB_INSIDE"

// Inside reports whether this process is the first process in namespaces that Enter has made.
func Inside() bool { return os.Getenv(insideVariable) != "" && os.Getpid() == 1 }

// spaces are the kinds of namespaces of a lab. Everything in them disappears when their last process ends. When their
// first process ends, the kernel kills all others.
const spaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC

// Enter runs this program again, with the same arguments, as the first process in new namespaces. It passes interrupts
// on and returns the exit code. An error of kind Unavailable means that the machine does not permit this. If the
// calling process is killed, all processes in the namespaces are killed too.
func Enter(ctx context.Context) (int, error) {
	var failed []error
	for _, more := range []uintptr{0, unix.CLONE_NEWUSER} {
		if err := tryEnter(more); err != nil {
			failed = append(failed, err)
			continue
		}
		return enter(ctx, more)
	}
	return 0, messages.Errorf(messages.Unavailable, "network namespaces: %v", errors.Join(failed...))
}

// probe is a command line argument. To find out whether the machine allows everything, Enter first runs this program
// with the argument probe in new namespaces.
const probe = "probe-namespaces"

// Probed tries the network and exits, if the process was started with the argument probe. A program must call Probed
// before Enter.
func Probed() {
	if len(os.Args) != 2 || os.Args[1] != probe {
		return
	}
	if err := tryNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func tryNetwork() error {
	if err := Settle(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "netlab-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n, err := Namespaces(dir)
	if err != nil {
		return err
	}
	if err := n.Add(1, 1); err != nil {
		return err
	}
	return errors.Join(n.Command(1, 1, "true").Run(), n.Close())
}

func tryEnter(more uintptr) error {
	c := command(more, probe)
	output, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w %s", err, output)
	}
	return nil
}

func command(more uintptr, arguments ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", arguments...)
	c.Env = append(os.Environ(), insideVariable+"=yes")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: spaces | more, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if more&unix.CLONE_NEWUSER != 0 {
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return c
}

func enter(ctx context.Context, more uintptr) (int, error) {
	// The child gets a signal when its parent dies, and for Linux the parent is the thread that started the child. So
	// this thread must not end earlier than this process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := command(more, os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err := c.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return 0, err
	}
	return c.ProcessState.ExitCode(), nil
}

// Settle completes the new namespaces of the lab. Later mounts are visible only inside these namespaces, and /proc
// shows only their processes.
func Settle() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}
