package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
	"github.com/candor-grid/candor/nodeagent/runner/room"
)

// Argument is the argument with which a program that calls [Main] is started.
const Argument = "executor"

// argumentInside is the second argument of a process that sets up a task's namespaces.
const argumentInside = "inside"

// Self returns the command that starts this program as an executor. If the path of the program is unknown, the command
// is empty.
func Self() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, Argument}
}

// Inside returns the command that starts this program to set up the namespaces of a task.
func Inside() []string {
	if self := Self(); self != nil {
		return append(self, argumentInside)
	}
	return nil
}

// Config configures [Open].
type Config struct {
	// Command is the command line with which the executor is started. Its program must call the function [Main] of this
	// package. Example: the path of this binary, and a word that makes it call Main.
	Command []string
	// Runner configures how tasks are run. The executor's socket is in the directory Runner.Dir.
	Runner runner.Config
	Log    *zap.Logger // nil means none

	waits waits // zero means usualWaits
}

// Validate checks the configuration and fills in the defaults.
func (c *Config) Validate() error {
	if len(c.Command) == 0 {
		return messages.Errorf(messages.Invalid, "executor: the field Command is empty; give the command that starts an executor")
	}
	c.Log, c.waits = cmp.Or(c.Log, zap.NewNop()), cmp.Or(c.waits, usualWaits)
	return c.Runner.Validate()
}

// maxSocketPath is the longest path of a socket, in bytes. Its address has room for one more byte, the final zero.
const maxSocketPath = 107

func (c *Config) socket() string { return filepath.Join(c.Runner.Dir, "executor.sock") }
func (c *Config) lock() string   { return filepath.Join(c.Runner.Dir, "executor.lock") }
func (c *Config) log() string    { return filepath.Join(c.Runner.Dir, "executor.log") }

// reach connects to the executor, and starts one if there is none. The result `silence` is how long the caller must
// wait for the executor's first message before it gives up.
func reach(ctx context.Context, c *Config) (_ *net.UnixConn, silence time.Duration, _ error) {
	if err := os.MkdirAll(c.Runner.Dir, 0o711); err != nil {
		return nil, 0, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	if runner.NoExec(c.Runner.Dir) {
		c.Log.Warn("the state directory is mounted with noexec: tasks can run scripts, but not programs that they bring along or build; use a state directory on another file system (--state)", zap.String("dir", c.Runner.Dir))
	}
	lock, err := os.OpenFile(c.lock(), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, 0, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	defer lock.Close()
	const pause = 20 * time.Millisecond
	for until := time.Now().Add(c.waits.ends); ; {
		if socket, err := dial(c.socket()); err == nil {
			return socket, c.waits.found, nil
		}
		// A process that has the lock is an executor, which will soon listen or end.
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			socket, err := launch(c, lock)
			return socket, c.waits.begun, err
		}
		if time.Now().After(until) {
			return nil, 0, c.silent(c.waits.ends)
		}
		select {
		case <-ctx.Done():
			return nil, 0, errSearchEnded
		case <-time.After(pause):
		}
	}
}

// dial connects to a socket. If the path of the socket is too long for an address, dial uses a short path.
func dial(path string) (*net.UnixConn, error) {
	short, release, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer release()
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"})
}

// The address of a socket has a maximum length. If the path is longer, shorten opens the directory, and returns a short
// path that begins with /proc and the descriptor of the directory. The function `release` closes this descriptor.
func shorten(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// launch starts an executor, which inherits the lock, and the socket on which it must listen.
func launch(c *Config, lock *os.File) (*net.UnixConn, error) {
	_ = os.Remove(c.socket())
	short, release, err := shorten(c.socket())
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	defer release()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "socket: %v", err)
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	if err := os.Chmod(c.socket(), 0o600); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "socket: %v", err)
	}
	if err := begin(c, listener, lock); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "executor: %v", err)
	}
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"})
}

func begin(c *Config, listener *net.UnixListener, lock *os.File) error {
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer socket.Close()
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	data, err := json.Marshal(c.Runner)
	if err != nil {
		return err
	}
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), log, log
	cmd.ExtraFiles = []*os.File{socket, lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := startMapped(cmd, c.Runner.Mapped); err != nil {
		return err
	}
	if err := noteHolder(lock, cmd.Process.Pid); err != nil {
		c.Log.Warn("cannot write the number of the executor's process into executor.lock", zap.Error(err))
	}
	go func() { _ = cmd.Wait() }() // when the executor ends, its connection breaks
	return nil
}

// slack is how long the kernel may delay the timers of an executor, in nanoseconds. Without it, a thread of the Go
// runtime wakes ten thousand times a second while tasks come and go.
const slack = 1_000_000

// beginAnew takes away a right from this process, and from all processes that it starts: the right to gain more
// privileges. It also sets how late the kernel may fire timers (slack). The kernel keeps both settings for each thread.
// If a thread executes a program, the new program keeps the settings of this thread. So beginAnew sets both on one
// thread, and then executes this program again on this thread.
func beginAnew() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	has, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || has == 1 && hasSlack() {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0); has == 1 && !hasSlack() { // a thread of real-time priority has no slack
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.NewSyscallError("exec", unix.Exec(self, os.Args, os.Environ()))
}

func hasSlack() bool {
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return err == nil && now == slack
}

// garbage says how much the memory of an executor may grow before it collects garbage, in percent. It is large, because
// an executor has only a few megabytes of memory, and the tasks need the processors.
const garbage = 800

// leastProcessors is the least number of threads that an executor lets run at the same time. The thread that starts
// tasks counts even while it waits. With a smaller number, the Go runtime would look for waiting threads again and
// again.
const leastProcessors = 3

// Main is the executor's program. It reads the runner's configuration from standard input, and serves the socket that
// it inherited. `args` has the command line arguments after [Argument].
func Main(args []string) error {
	if len(args) > 0 && args[0] == argumentInside {
		return room.Inside(args[1:])
	}
	if err := awaitMapping(args); err != nil {
		return err
	}
	if err := beginAnew(); err != nil {
		return err
	}
	if err := dumps.Refuse(); err != nil {
		return err
	}
	debug.SetGCPercent(garbage)
	runtime.GOMAXPROCS(max(leastProcessors, runtime.GOMAXPROCS(0)))
	data, err := io.ReadAll(io.LimitReader(os.Stdin, wire.MaxPayload))
	if err != nil {
		return err
	}
	var c runner.Config
	if err := json.Unmarshal(data, &c); err != nil {
		return messages.Errorf(messages.Invalid, "executor: is started by an agent, not by hand (%v)", err)
	}
	is := inForceOf("/proc/self/exe", c)
	c.Alone = true
	socket := os.NewFile(3, "socket")
	listener, err := net.FileListener(socket)
	if err != nil {
		return messages.Errorf(messages.Invalid, "executor: is started by an agent, not by hand (%v)", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	return errors.Join(socket.Close(), serve(ctx, listener, c, is))
}
