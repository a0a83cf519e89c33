package runner_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

const mib = 1 << 20

// keptOf returns how many bytes the directories of an account take on the disk.
func (b *bench) keptOf(account string) (sum int64) {
	_ = filepath.WalkDir(filepath.Join(b.dir, "jobs", account), func(path string, d os.DirEntry, _ error) error {
		var info unix.Stat_t
		if d != nil && !d.IsDir() && unix.Lstat(path, &info) == nil {
			sum += info.Blocks * 512
		}
		return nil
	})
	return sum
}

// passed is the socket through which a task passes its open log and directory to another task of its account.
const passed = "/tmp/passed"

// give sends two open descriptors to another task: one of this task's log, and one of its directory. The files stay
// where they are.
func give() error {
	dir, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: passed, Net: "unix"})
	if err != nil {
		return err
	}
	_, _, err = conn.WriteMsgUnix([]byte("x"), unix.UnixRights(1, dir), nil)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// take receives the log and the directory of another task, and writes to them after that task has ended.
func take() error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: passed, Net: "unix"})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	conn, err := listener.AcceptUnix()
	if err != nil {
		return err
	}
	rights := make([]byte, 64)
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return err
	}
	all, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1)) // wait until the other task has ended
	file, err := unix.Openat(fds[1], "more", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, fd := range []int{fds[0], file} {
		for range 5 {
			if _, err := unix.Write(fd, make([]byte, mib)); err != nil {
				return err
			}
		}
	}
	fmt.Println("written")
	select {}
}

func bounded(limit int64) func(*runner.Config) {
	return func(c *runner.Config) { c.KeptLimit, c.CheckEvery = limit, 10*time.Millisecond }
}

// TestAccountKeepsNoMoreThanItsSum lets an account leave more files than it may keep. The account's oldest files must
// be removed, but no file of another account.
func TestAccountKeepsNoMoreThanItsSum(t *testing.T) {
	b := newBench(t, bounded(3*mib))
	other := b.start(of("bob", 99, sh("echo mine; head -c 2000000 /dev/urandom >file")))
	other.wait()
	var all []*started
	for job := range messages.JobID(5) {
		s := b.start(of("ann", 10+job, sh("echo out; head -c 1000000 /dev/urandom >file")))
		s.wait()
		all = append(all, s)
	}
	await.Until(t, "ann keeps no more than 3 MiB", func() bool { return b.keptOf("ann") <= 3*mib })
	_, err := b.ReadLog(context.Background(), agent.LogsRequest{Attempt: all[0].attempt})
	if messages.KindOf(err) != messages.NotFound || !strings.Contains(err.Error(), "its account kept too much") {
		t.Errorf("the output of the oldest: %v", err)
	}
	for _, s := range []*started{all[4], other} {
		if _, err := os.Stat(store.KeptDir(b.dir, map[bool]string{true: "bob", false: "ann"}[s == other], s.attempt)); err != nil {
			t.Errorf("what is within the bound: %v", err)
		}
	}
}

// TestRunningJobKeepsNoMoreThanTheSum checks that files of a job's ended tasks are removed although other tasks of the
// job run.
func TestRunningJobKeepsNoMoreThanTheSum(t *testing.T) {
	b := newBench(t, bounded(3*mib))
	long := b.start(sh("echo ready; exec sleep 600"))
	b.read(long, false)
	var last *started
	for range 5 {
		last = b.start(sh("head -c 1000000 /dev/urandom >file"))
		last.wait()
	}
	await.Until(t, "ann keeps no more than 3 MiB", func() bool { return b.keptOf("ann") <= 3*mib })
	if _, err := os.Stat(store.KeptDir(b.dir, "ann", last.attempt)); err != nil {
		t.Errorf("the latest: %v", err)
	}
	if b.read(long, false) != "ready\n" {
		t.Error("the output of a task that runs is gone")
	}
	long.Stop(0)
}

// TestLaterTaskCannotFillWhatAnEarlierLeft lets a task write into the directory and the log of an ended task. The bytes
// in the directory and the bytes in the log must both count for the account.
func TestLaterTaskCannotFillWhatAnEarlierLeft(t *testing.T) {
	const limit = mib / 2
	for name, keeps := range map[string]int64{"the sum": 3 * mib, "the log": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			b := strangers(t, func(c *runner.Config) {
				c.KeptLimit, c.DirLimit, c.OutputLimit, c.CheckEvery = keeps, 1<<40, limit, 10*time.Millisecond
			})
			dir := attackerDir(t)
			second := b.start(of("ann", 8, agent.Program{Dir: dir, Command: []string{dir + "/attack", "delay", "take"}}))
			b.read(second, false)
			first := b.start(of("ann", 7, sh("echo out; echo left >file; exec "+dir+"/attack delay give")))
			if f := first.wait(); f.ExitCode != 0 {
				t.Fatalf("%+v, %q", f, b.read(first, true))
			}
			await.Until(t, "the second has written", func() bool { return strings.Contains(b.read(second, false), "written") })
			if name == "the sum" {
				await.Until(t, "ann keeps no more than 3 MiB", func() bool { return b.keptOf("ann") <= keeps })
			} else {
				log := strings.TrimSuffix(store.KeptDir(b.dir, "ann", first.attempt), ".dir") + ".out"
				await.Until(t, "the log of the first is within its limit", func() bool {
					var info unix.Stat_t
					return unix.Lstat(log, &info) == nil && info.Blocks*512 <= limit+64<<10
				})
			}
			second.Stop(0)
			second.wait()
		})
	}
}

// TestOutputsStayUntilTheyAreStored checks that outputs which the agent has not stored yet are not removed, however
// large they are.
func TestOutputsStayUntilTheyAreStored(t *testing.T) {
	b := newBench(t, bounded(mib))
	p := sh("head -c 2000000 /dev/urandom >file")
	p.Outputs = []string{"file"}
	s := b.start(of("ann", 8, p))
	s.wait()
	b.start(of("ann", 9, sh("head -c 2000000 /dev/urandom >file"))).wait()
	await.Until(t, "what is not held goes", func() bool { return b.keptOf("ann") < 3*mib })
	if _, err := os.Stat(filepath.Join(store.KeptDir(b.dir, "ann", s.attempt), "file")); err != nil {
		t.Errorf("the output: %v", err)
	}
	b.Confirm(s.attempt)
	b.start(of("ann", 10, sh("true"))).wait()
	await.Until(t, "it goes when it is stored", func() bool { return b.keptOf("ann") <= mib })
}

// smallDisk returns a directory with a file system of 64 MiB and one inode for each 16 KiB.
func smallDisk(t *testing.T) (dir string, free func() int64) {
	t.Helper()
	dir = mounted(t, "size=64m,nr_inodes=4096")
	return dir, func() int64 {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		return int64(s.Bavail) * s.Bsize
	}
}

func mounted(t *testing.T, options string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestReserveOfTheDiskStaysFree fills the disk beyond the reserve. The account whose ended tasks left the most bytes
// must lose its oldest files. If that is not enough, the largest task must be ended.
func TestReserveOfTheDiskStaysFree(t *testing.T) {
	dir, free := smallDisk(t)
	b := newBench(t, func(c *runner.Config) { c.Dir, c.KeepFree, c.CheckEvery = dir, 24*mib, 10*time.Millisecond })
	b.start(of("bob", 50, sh("head -c 8388608 /dev/zero >file"))).wait()
	for job := range messages.JobID(4) {
		b.start(of("ann", 10+job, sh("head -c 10485760 /dev/zero >file"))).wait()
	}
	await.Until(t, "the reserve is free again", func() bool { return free() >= 24*mib })
	if b.keptOf("bob") < 8*mib {
		t.Error("bob, who keeps less, lost something")
	}
	full := b.start(of("eve", 90, sh("while :; do head -c 1048576 /dev/zero >>file || sleep .1; done")))
	if f := full.wait(); f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, "the node's disk is almost full") {
		t.Errorf("a task that fills the disk: %+v", f)
	}
	await.Until(t, "the reserve is free again", func() bool { return free() >= 24*mib })
}

// TestWhoDidNotFillTheDiskKeepsLogs checks that an account with few files loses none when other programs fill the disk.
func TestWhoDidNotFillTheDiskKeepsLogs(t *testing.T) {
	dir, free := smallDisk(t)
	b := newBench(t, func(c *runner.Config) { c.Dir, c.KeepFree, c.CheckEvery = dir, 24*mib, 10*time.Millisecond })
	b.start(of("bob", 50, sh("head -c 2097152 /dev/zero >file"))).wait()
	if err := os.WriteFile(filepath.Join(dir, "of-others"), make([]byte, 41*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	before := free()
	for job := range messages.JobID(2) { // twice, because the removal of the second file shows that the removal of the first is complete
		b.start(of("zed", 60+job, sh("head -c 17825792 /dev/zero >file"))).wait()
		await.Until(t, "what zed keeps is removed", func() bool { return b.keptOf("zed") < mib })
		// A removed file stops counting for its account before the kernel has freed the file's blocks. The next task
		// needs these blocks.
		await.Until(t, "its blocks are free", func() bool { return free() > before-mib })
	}
	if b.keptOf("bob") < 2*mib {
		t.Error("bob, who keeps 2 MiB, lost them")
	}
}

// TestDiskThatFillsFast sets the regular checks of tasks to once an hour. Only the check of the free space remains
// frequent. A disk that fills fast must still be relieved.
func TestDiskThatFillsFast(t *testing.T) {
	for name, c := range map[string]struct{ fill, says string }{
		"bytes":     {"while :; do head -c 1048576 /dev/zero >>file || sleep .1; done", "this task had the most data on the disk"},
		"inodes":    {"i=0; while i=$((i+1)); do mkdir $i && (cd $i && touch $(seq 60)) || sleep .1; done 2>/dev/null", "this task had the most data on the disk"},
		"temporary": {"while :; do head -c 1048576 /dev/zero >>/tmp/file || sleep .1; done", "the shared temporary directories of the task"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := smallDisk(t)
			b := strangers(t, func(c *runner.Config) { c.Dir, c.KeepFree, c.CheckEvery = dir, 24*mib, time.Hour })
			if name == "temporary" && !b.can(agent.AbilityApart) {
				t.Skip("nobody has temporary directories of their own here")
			}
			kept := b.start(of("bob", 90, sh("head -c 4194304 /dev/zero >file")))
			kept.wait()
			full := b.start(of("eve", 91, sh(c.fill)))
			if f := full.wait(); f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, c.says) {
				t.Errorf("%+v", f)
			}
			await.Until(t, "the disk has its reserve again", func() bool { return !runner.Full(dir, 32*mib, false) })
			if _, err := os.Stat(store.KeptDir(b.dir, "bob", kept.attempt)); err != nil {
				t.Errorf("what another account kept, who did not fill the disk: %v", err)
			}
		})
	}
}
