package runner_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// Memory in MiB: the limit of a task in these tests, and what each task leaves behind.
const (
	mayHave = 192 // memory limit of a task; the race detector needs much of it
	leaves  = 96
	margin  = 64 // memory of an account, above the limits of its tasks
)

// leaving has programs that leave memory behind: this memory still exists when the program has ended.
var leaving = map[string]func() error{
	"segment": func() error { // shared memory of System V
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, leaves*mib, unix.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		data, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
		return nil
	},
	"memfd": func() error { // a running task keeps this memory
		fd, err := unix.MemfdCreate("left", 0)
		if err != nil {
			return err
		}
		for range leaves {
			if _, err := unix.Write(fd, make([]byte, mib)); err != nil {
				return err
			}
		}
		return passOn(fd)
	},
	"buffers": func() error { // buffers of connections, kept by a running task
		fds, err := fillBuffers(leaves*mib, 120)
		if err != nil {
			return err
		}
		return passOn(fds...)
	},
	"keep": func() error { // the task that keeps what the other tasks pass on
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: passed, Net: "unix"})
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return err
			}
			if _, _, _, _, err := conn.ReadMsgUnix(make([]byte, 1), make([]byte, 4096)); err != nil {
				return err
			}
			_, _ = conn.Write([]byte("x"))
		}
	},
	"give": give, "take": take, "empty": makeEmpty,
	"zombies": func() error {
		for n := range 2 * 4096 {
			if _, err := syscall.ForkExec("/bin/true", []string{"true"}, nil); err != nil {
				fmt.Println(n)
				return nil
			}
		}
		return fmt.Errorf("as many processes as it wants")
	},
}

func passOn(fds ...int) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: passed, Net: "unix"})
	if err != nil {
		return err
	}
	if _, _, err = conn.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// fillBuffers sends bytes through at most `most` connections from which nobody reads, and returns both ends of each.
func fillBuffers(bytes, most int) (fds []int, err error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(listener, 1)); err != nil {
		return nil, err
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		return nil, err
	}
	piece := make([]byte, mib)
	for range most {
		from, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Connect(from, at)
		}
		if err != nil {
			return nil, err
		}
		to, _, err := unix.Accept(listener)
		if err != nil {
			return nil, err
		}
		fds = append(fds, from, to)
		for n := 0; err == nil; bytes -= max(n, 0) {
			n, err = unix.SendmsgN(from, piece, nil, nil, unix.MSG_DONTWAIT)
		}
		if bytes <= 0 {
			return fds, nil
		}
	}
	return nil, fmt.Errorf("the kernel does not take %d bytes more", bytes)
}

// attackerDir returns a directory with the attacker that tasks can see.
func attackerDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "candor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o777), os.Rename(filepath.Join(openDir(t), "attack"), filepath.Join(dir, "attack"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The map `leaving` has programs that leave memory behind. The method `leave` runs one of them, `what`, in a task of
// ann, and reports whether the program succeeded. The task also leaves a process behind. So its cell is not used again,
// and continues to count the memory that the program left.
func (b *bench) leave(dir, what string) bool {
	s := b.start(of("ann", 7, agent.Program{Dir: dir, Command: []string{"sh", "-c", "sleep 1000 >/dev/null 2>&1 & exec " + dir + "/attack delay " + what}}))
	f := s.wait()
	if f.Outcome == agent.Unstartable {
		b.t.Fatalf("%+v", f)
	}
	return f.ExitCode == 0
}

// TestMemoryThatOutlivesItsTaskCounts checks memory that a task leaves behind. It must count as memory of the task's
// account until the task's room is gone.
func TestMemoryThatOutlivesItsTaskCounts(t *testing.T) {
	for what, most := range map[string]int{
		"segment": mayHave / leaves,              // shared memory: a room may have as much as one task
		"memfd":   (2*mayHave + margin) / leaves, // two tasks, and the margin of the account
		"buffers": (2*mayHave + margin) / leaves,
	} {
		t.Run(what, func(t *testing.T) {
			b := strangers(t, func(c *runner.Config) { c.Limits.Memory, c.CheckEvery = mayHave*mib, 10*time.Millisecond })
			if !b.can(agent.AbilityMemory) {
				t.Skip("nothing bounds memory here")
			}
			dir := attackerDir(t)
			if what != "segment" {
				keeper := b.start(of("ann", 8, agent.Program{Dir: dir, Command: []string{dir + "/attack", "delay", "keep"}}))
				b.read(keeper, false)
			}
			left := 0
			for range 6 {
				if b.leave(dir, what) {
					left++
				}
			}
			if left == 0 || left > most {
				t.Errorf("%d tasks left %d MiB each, and %d could do so", left, leaves, most)
			}
			other := b.start(of("bob", 9, agent.Program{Dir: dir, Command: []string{dir + "/attack", "delay", "segment"}}))
			if f := other.wait(); f.ExitCode != 0 || f.Outcome != agent.Exited {
				t.Errorf("another account's task ended as %+v", f)
			}
		})
	}
}

// TestSegmentsOfARoomAreBounded runs tasks without control groups. The room itself must then bound the shared memory
// segments of its tasks.
func TestSegmentsOfARoomAreBounded(t *testing.T) {
	b := strangers(t, func(c *runner.Config) { c.Limits.Memory, c.NoCells = mayHave*mib, true })
	dir, left := attackerDir(t), 0
	for range 4 {
		s := b.start(of("ann", 7, agent.Program{Dir: dir, Command: []string{dir + "/attack", "delay", "segment"}}))
		if f := s.wait(); f.Outcome == agent.Exited && f.ExitCode == 0 {
			left++
		}
	}
	if left == 0 || left > mayHave/leaves {
		t.Errorf("%d tasks left %d MiB each in a room for %d MiB", left, leaves, mayHave)
	}
}

// A zombie is a process that has ended, but whose parent has not waited for it. TestZombiesCount checks that zombies
// count against the process limit of the account whose task left them.
func TestZombiesCount(t *testing.T) {
	b := strangers(t, nil)
	if !b.can(agent.AbilityPids) {
		t.Skip("nothing bounds processes here")
	}
	dir := attackerDir(t)
	if !b.leave(dir, "zombies") {
		t.Error("a task has more than twice as many processes as it may, none of which runs")
	}
	await.Until(t, "another task of the account runs", func() bool { return b.start(of("ann", 7, sh("true"))).wait().ExitCode == 0 })
}

func TestGroupsOfAccountsGo(t *testing.T) {
	before := accountGroups()
	b := strangers(t, nil)
	b.start(of("ann", 7, sh("true"))).wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "no more groups than before", func() bool { return accountGroups() <= before })
}

func accountGroups() (n int) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(_ string, d fs.DirEntry, _ error) error {
		if d != nil && strings.HasPrefix(d.Name(), "account-") {
			n++
		}
		return nil
	})
	return n
}
