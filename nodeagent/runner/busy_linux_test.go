package runner_test

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
)

func makeEmpty() error {
	for i := 0; ; i++ {
		dir := "d" + strconv.Itoa(i)
		err := unix.Mkdir(dir, 0o700)
		for k := 0; k < 1000 && err == nil; k++ {
			var fd int
			if fd, err = unix.Open(dir+"/"+strconv.Itoa(k), unix.O_CREAT|unix.O_WRONLY, 0o600); err == nil {
				_ = unix.Close(fd)
			}
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func busy(t *testing.T) {
	for range runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
}

// followFree watches a disk, and returns the function least. least returns the smallest free space, in bytes, from the
// call of followFree until the call of least. Free inodes count too: each one counts as many bytes as the disk has on
// average for an inode.
func followFree(dir string) (least func() int64) {
	stop, found := make(chan struct{}), make(chan int64)
	go func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for low := int64(math.MaxInt64); ; {
			var s unix.Statfs_t
			if unix.Statfs(dir, &s) == nil {
				low = min(low, int64(s.Bavail)*s.Bsize, int64(s.Ffree)*(int64(s.Blocks)*s.Bsize/int64(s.Files)))
			}
			select {
			case <-stop:
				found <- low
				return
			case <-ticker.C:
			}
		}
	}()
	return func() int64 { close(stop); return <-found }
}

// TestDiskIsNotFilledWhileProcessorsAreBusy runs a task that makes files as fast as it can while all processors are
// busy. The runner must end the task long before the disk is full, and must not end a neighbour that keeps much data.
// The test can fail on a machine with much other load.
func TestDiskIsNotFilledWhileProcessorsAreBusy(t *testing.T) {
	if os.Getenv("CANDOR_ATTACKS") != "all" {
		t.Skip("only in make attack")
	}
	for name, noCells := range map[string]bool{"groups": false, "signals": true} {
		t.Run(name, func(t *testing.T) {
			dir := mounted(t, "size=900m,nr_inodes=60000")
			b := strangers(t, func(c *runner.Config) { c.Dir, c.NoCells = dir, noCells })
			text, err := os.ReadFile(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			attacker := b.input("attacker", string(text))
			attacker.Executable = true
			neighbour := b.start(of("bob", 90, sh("head -c 104857600 /dev/zero >file; echo ready; exec sleep 1000")))
			b.read(neighbour, false)
			busy(t)
			least := followFree(dir)
			f := b.start(of("eve", 91, agent.Program{Command: []string{"./attacker", "delay", "empty"}, Inputs: []job.File{attacker}})).wait()
			await.Until(t, "the disk has its reserve again", func() bool { return !runner.Full(dir, runner.Reserve(dir, 0), true) })
			free := least()
			t.Logf("at least %d MiB were free", free/mib)
			if f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, "this task had the most data on the disk") {
				t.Errorf("%+v", f)
			}
			if free < 64*mib {
				t.Errorf("only %d MiB were free", free/mib)
			}
			neighbour.Stop(0)
			if f := neighbour.wait(); f.Outcome != agent.Stopped {
				t.Errorf("the neighbour: %+v", f)
			}
		})
	}
}
