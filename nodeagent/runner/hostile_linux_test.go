package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// can reports whether this machine has an ability. If not, the test's log says what is not tested.
func (b *bench) can(ability messages.Name) bool {
	if slices.Contains(b.Abilities(), ability) {
		return true
	}
	b.t.Logf("this machine lacks %q", ability)
	return false
}

func TestForkBombIsContained(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.Limits.Pids = 32 })
	if !b.can(agent.AbilityPids) {
		return
	}
	s := b.start(sh("bomb() { bomb | bomb & }; sleep 1000 & (bomb); wait"))
	quiet := b.start(sh("echo well"))
	if f := quiet.wait(); f.ExitCode != 0 || b.read(quiet, false) != "well\n" {
		t.Errorf("its neighbour: %+v", f)
	}
	s.Stop(0)
	if f := s.wait(); f.Outcome != agent.Stopped {
		t.Errorf("%+v", f)
	}
}

func TestMemoryHogIsReported(t *testing.T) {
	b := newBench(t, nil)
	if !b.can(agent.AbilityMemory) {
		return
	}
	hog := sh("set -e; head -c 300000000 /dev/zero | tail -c 200000000 >/dev/null")
	hog.Memory = 32 << 20
	s := b.start(hog)
	if f := s.wait(); f.Outcome != agent.OutOfMemory || !strings.Contains(f.Detail, "ended by its memory limit of 32 MiB") {
		t.Errorf("%+v", f)
	}
}

// TestKilledProcessOfATaskThatEndsWell runs a script that ends with 0 although the memory limit killed one of its
// processes. The task's report must mention the killed process. With "oom: fail", the task must fail.
func TestKilledProcessOfATaskThatEndsWell(t *testing.T) {
	b := newBench(t, nil)
	if !b.can(agent.AbilityMemory) {
		return
	}
	hog := sh("head -c 300000000 /dev/zero | tail -c 200000000 >/dev/null; exit 0")
	hog.Memory = 32 << 20
	f := b.start(hog).wait()
	if f.Outcome != agent.Exited || f.ExitCode != 0 {
		t.Errorf("finished as %+v", f)
	}
	if !f.MemoryKilled || !strings.Contains(f.Detail, "lost a process to its memory limit of 32 MiB") {
		t.Errorf("the lost process is not reported: %+v", f)
	}
	hog.OOM = job.FailOOM
	f = b.start(hog).wait()
	if f.Outcome != agent.OutOfMemory || f.ExitCode != 137 || !strings.Contains(f.Detail, "lost a process to its memory limit of 32 MiB") {
		t.Errorf("with oom: fail: %+v", f)
	}
	well := sh("exit 0")
	well.Memory, well.OOM = hog.Memory, hog.OOM
	if f := b.start(well).wait(); f.Outcome != agent.Exited || f.MemoryKilled || f.Detail != "" {
		t.Errorf("the next task of the same cell: %+v", f)
	}
}

// The setting MostMemory of a class must limit a task for which no other memory limit is set.
func TestTheMostMemoryBoundsWhoAsksForNone(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.MostMemory = map[messages.Name]int64{"cpu": 32 << 20} })
	if !b.can(agent.AbilityMemory) {
		return
	}
	hog := sh("set -e; head -c 300000000 /dev/zero | tail -c 200000000 >/dev/null")
	hog.Class = "cpu"
	if f := b.start(hog).wait(); f.Outcome != agent.OutOfMemory || !strings.Contains(f.Detail, "ended by its memory limit of 32 MiB") {
		t.Errorf("%+v", f)
	}
}

func TestDirectoryIsBounded(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.DirLimit, c.CheckEvery = 1<<20, 10*time.Millisecond })
	s := b.start(sh("mkdir sub; head -c 4000000 /dev/urandom >sub/file; exec sleep 1000"))
	if f := s.wait(); f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, "its disk limit of 1 MiB: its directory holds more") {
		t.Errorf("%+v", f)
	}
	if f := b.start(sh("head -c 400000 /dev/urandom >file; sleep 0.1")).wait(); f.Outcome != agent.Exited {
		t.Errorf("%+v", f)
	}
}

// TestDirectoryLimitIsNotFooled checks that a task cannot hide files from the limit: in odd directories, without a
// name, or by ending before the first measurement.
func TestDirectoryLimitIsNotFooled(t *testing.T) {
	const fill = "head -c 3000000 /dev/zero"
	for name, c := range map[string]struct {
		script string
		unseen bool // the task ends before the first measurement
	}{
		"a path beyond PATH_MAX": {script: "n=$(printf '%0250d' 0); (for i in $(seq 30); do mkdir $n && cd -P $n; done) 2>/dev/null; mkdir z; " + fill + " >z/file; exec sleep 1000"},
		"many empty files":       {script: "for i in $(seq 30); do mkdir $i; touch $i/$(seq -s \" $i/\" 30 | tr -d '\"'); done; exec sleep 1000"},
		"a nameless file":        {script: "exec 3>file; rm file; " + fill + " >&3; exec sleep 1000"},
		"a closed directory":     {script: "mkdir d; " + fill + " >d/file; chmod 0 d; exec sleep 1000"},
		"an early end":           {script: "mkdir d; " + fill + " >d/file", unseen: true},
		"a closed, early end":    {script: "mkdir d; " + fill + " >d/file; chmod 0 d", unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *runner.Config) { c.DirLimit, c.CheckEvery = 2<<20, 10*time.Millisecond })
			if c.unseen {
				b = newBench(t, func(c *runner.Config) { c.DirLimit, c.CheckEvery = 2<<20, time.Hour })
			}
			s := b.start(sh(c.script))
			if f := s.wait(); f.Outcome != agent.OutOfDisk || !strings.Contains(f.Detail, "its directory") {
				t.Errorf("%+v %s", f, b.read(s, true))
			}
			if left, err := os.Stat(store.KeptDir(b.dir, "ann", s.attempt)); err == nil {
				t.Errorf("is kept: %v", left)
			}
		})
	}
}

// TestEscapeeEndsWithItsTask checks that a process ends with its task, even if it has left its session and its parents
// have ended.
func TestEscapeeEndsWithItsTask(t *testing.T) {
	b := newBench(t, nil)
	if !b.can(agent.AbilityFreeze) {
		return
	}
	s := b.start(sh("setsid sh -c 'setsid sh -c \"echo \\$\\$ >pid.new; mv pid.new pid; exec sleep 1000\" &' & while ! [ -e pid ]; do sleep 0.01; done; cat pid"))
	if f := s.wait(); f.ExitCode != 0 {
		t.Fatalf("%+v", f)
	}
	ends(t, pidOf(t, b.read(s, false)))
}

// TestEscapeeEndsWithItsRoom lets processes of tasks leave their session, in a room without control groups. Such a
// process must end with its task. A process is found by the variables of its task. If it hides them, it must end with
// the last task of the room.
func TestEscapeeEndsWithItsRoom(t *testing.T) {
	b := strangers(t, func(c *runner.Config) { c.NoCells = true })
	other := b.start(sh("exec sleep 1000"))
	escapes := func(how, seconds string) *started {
		return b.start(sh(how + " setsid sh -c 'touch there; exec sleep " + seconds + "' & while ! [ -e there ]; do sleep 0.01; done; rm there"))
	}
	if f := escapes("", "1234.5").wait(); f.ExitCode != 0 {
		t.Fatalf("%+v", f)
	}
	isGone(t, "1234.5")
	if f := escapes("env -i", "1234.6").wait(); f.ExitCode != 0 {
		t.Fatalf("%+v", f)
	}
	other.Stop(0)
	other.wait()
	isGone(t, "1234.6")
}

// isGone waits until no process has this argument.
func isGone(t *testing.T, argument string) {
	t.Helper()
	await.Until(t, "no process has the argument "+argument, func() bool {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(lines, func(line string) bool {
			text, _ := os.ReadFile(line)
			return strings.Contains(string(text), "sleep\x00"+argument)
		})
	})
}

// A task puts links to another file in place of its output and its directory. The node must not read or write that
// file.
func TestLinksInPlaceOfOutputAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("the secret of the site"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *runner.Config) { c.OutputLimit = 4 })
	s := b.start(sh("echo said; for f in ../*.out; do ln -sf " + secret + " $f; done; for i in 0 1 2; do ln -sf " + secret + " ../$i.script; done; ln -s " + outside + " ../out"))
	s.wait()
	for range 2 { // the second task uses the lane (the files) of the first
		reply, err := b.ReadLog(t.Context(), agent.LogsRequest{Attempt: s.attempt})
		if strings.Contains(string(reply.Data), "secret") {
			t.Errorf("the log is %q: %v", reply.Data, err)
		}
		s = b.start(sh("echo more than four bytes"))
		s.wait()
	}
	if root, err := store.OpenRoot(filepath.Join(b.dir, "jobs", "ann", "7", "out")); err == nil {
		root.Close()
		t.Error("a link to a directory elsewhere was opened")
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "the secret of the site" {
		t.Errorf("the file outside is %q: %v", text, err)
	}
}

func TestTasksInheritNoFiles(t *testing.T) {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY, 0) // without O_CLOEXEC, the file stays open after an exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := newBench(t, nil)
	s := b.start(sh(fmt.Sprintf("cat <&%d || echo closed", fd)))
	s.wait()
	if got := b.read(s, false); got != "closed\n" {
		t.Errorf("a task reads from descriptor %d: %.100q", fd, got)
	}
}

func TestTasksRunAsOthersWhoseFilesTheyCannotRead(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "candor") // a place through which other users may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	secret := filepath.Join(dir, "credentials")
	b := newBench(t, func(c *runner.Config) { c.Dir, c.User = dir, "100000-165535" })
	if !b.can(agent.AbilityUser) {
		return
	}
	if err := os.WriteFile(secret, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := sh("id -u; umask 022; echo mine >file; sleep 1000")
	first.Job, first.Account = 7, "ann"
	one := b.start(first)
	second := sh("id -u; cat " + secret + " || echo no; cat ../../7/*/file || echo no; ls " + dir + "/jobs || echo no")
	second.Job, second.Account = 8, "bob"
	two := b.start(second)
	if f := two.wait(); f.Outcome != agent.Exited {
		t.Fatalf("%+v", f)
	}
	its, rest, _ := strings.Cut(b.read(two, false), "\n")
	if n, err := strconv.Atoi(its); err != nil || n < 100000 || n > 165535 {
		t.Errorf("it runs as %q", its)
	}
	if its == strings.TrimSpace(b.read(one, false)) {
		t.Errorf("both run as %q", its)
	}
	if rest != "no\nno\nno\n" {
		t.Errorf("%q", rest)
	}
	one.Stop(0)
	one.wait()
}

func TestSuperUserIsRefused(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.User = "root" })
	if f := b.start(sh("id")).wait(); f.Outcome != agent.Unstartable || !strings.Contains(f.Detail, "cannot run as root") {
		t.Errorf("%+v", f)
	}
}

// TestHoldAndResume suspends and resumes a task a thousand times. Each number that the task prints must be in its
// output once.
func TestHoldAndResume(t *testing.T) {
	for _, l := range []cell.Limits{{}, {Pids: 100}} {
		holdsAndResumes(t, l)
	}
}

func holdsAndResumes(t *testing.T, l cell.Limits) {
	b := newBench(t, func(c *runner.Config) { c.Limits = l })
	s := b.start(sh("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo $i; done"))
	for range 1000 {
		s.Suspend(true)
		s.Suspend(false)
	}
	if f := s.wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
		t.Fatalf("%+v", f)
	}
	lines := strings.Fields(b.read(s, false))
	if len(lines) != 30000 || lines[29999] != "30000" {
		t.Errorf("%d lines", len(lines))
	}
}

// TestHeldTaskMakesNoProgress checks that a suspended task makes no progress, and can be stopped without being resumed.
func TestHeldTaskMakesNoProgress(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("while :; do echo; done"))
	for b.read(s, false) == "" { // wait until the task has started
	}
	s.Suspend(true) // takes effect immediately, or as soon as the runner knows that the task has started
	for until := time.Now().Add(patience); ; {
		before := b.read(s, false)
		b.start(sh("sleep 0.05")).wait()
		if b.read(s, false) == before {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it goes on")
		}
	}
	s.Stop(0)
	if f := s.wait(); f.Outcome != agent.Stopped {
		t.Errorf("%+v", f)
	}
}

func TestTimeLimitWaitsWhileSuspended(t *testing.T) {
	b := newBench(t, nil)
	inTime(t, 300*time.Millisecond, func(limit time.Duration) bool {
		p, began := sh("exec sleep 1000"), time.Now()
		p.TimeLimit = messages.Duration(limit)
		s := b.start(p)
		s.Suspend(true)
		b.start(sh("true")).wait() // after this task, the other task is certainly suspended, unless its time was over before
		if time.Since(began) >= limit {
			s.Stop(0)
			s.wait()
			return false
		}
		b.start(sh(fmt.Sprintf("exec sleep %.1f", (limit + 100*time.Millisecond).Seconds()))).wait()
		if len(s.done) != 0 {
			t.Errorf("ended while it was suspended: %+v", <-s.done)
			return true
		}
		s.Suspend(false)
		if f := s.wait(); f.Outcome != agent.TimedOut {
			t.Errorf("%+v", f)
		}
		return true
	})
}
