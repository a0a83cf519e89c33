package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// limitLine matches the last line of a task that its time limit ended.
var limitLine = regexp.MustCompile(`(?m)^candor: error: \*\*\* JOB 7(_\d+)? ON n1 CANCELLED AT \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d DUE TO TIME LIMIT \*\*\* its time limit is [\d.]+m?s$`)

// When a task reaches its time limit, the agent writes a line about this. The line must be in the file to which the
// script sends its errors. Text that the task writes after SIGTERM must come after this line.
func TestLastLineOfATimeLimit(t *testing.T) {
	benches := map[string]func(*testing.T) *bench{"as the agent": func(t *testing.T) *bench { return newBench(t, nil) }}
	if os.Geteuid() == 0 {
		benches["as other users"] = otherUsers
		benches["apart"] = func(t *testing.T) *bench { return strangers(t, nil) }
		benches["with namespaces"] = func(t *testing.T) *bench { return strangers(t, func(c *runner.Config) { c.Namespaces = true }) }
	}
	const wait = "trap 'echo bye >&2; exit' TERM; echo ready >&2; while :; do sleep 0.01; done"
	for name, open := range benches {
		for _, one := range []struct {
			name, first string
			tasks       int
			want        string
		}{
			{"its own output", "", 1, "ready\nLINE\nbye\n"},
			{"one file", "exec >one 2>&1; ", 1, "ready\nLINE\nbye\n"},
			{"a file that is appended to", "echo before >one; exec >out 2>>one; ", 1, "before\nready\nLINE\nbye\n"},
			{"an element of an array", "exec 2>one; ", 2, "ready\nLINE_\nbye\n"},
		} {
			t.Run(name+", "+one.name, func(t *testing.T) {
				b := open(t)
				inTime(t, 200*time.Millisecond, func(limit time.Duration) bool {
					p := sh(one.first + wait)
					p.TimeLimit, p.Tasks = messages.Duration(limit), one.tasks
					s := b.start(p)
					if f := s.wait(); f.Outcome != agent.TimedOut {
						t.Errorf("finished as %+v", f)
					}
					got := ""
					if one.first == "" {
						got = b.read(s, true)
					} else {
						text, _ := os.ReadFile(filepath.Join(store.KeptDir(b.dir, "ann", s.attempt), "one"))
						got = string(text)
					}
					if !strings.Contains(got, "ready") { // the limit came before the script had begun
						return false
					}
					found := limitLine.FindStringSubmatch(got)
					if found == nil {
						t.Errorf("no line of the limit in %q", got)
						return true
					}
					line := "LINE"
					if found[1] != "" {
						line += "_"
					}
					// the shell prints this when its command sleep is ended
					got = strings.Replace(got, "Terminated\n", "", 1)
					if got = strings.Replace(got, found[0], line, 1); got != one.want {
						t.Errorf("wrote %q, want %q", got, one.want)
					}
					return true
				})
			})
		}
	}
}

// TestLastLineOfAStop stops tasks, with a text that says why. The text must be in the task's output before the task
// gets SIGTERM, so that the task can print it too. A task that is killed at once does not get the text.
func TestLastLineOfAStop(t *testing.T) {
	for _, one := range []struct {
		last  string
		grace time.Duration
		want  string
	}{
		{"*** cancelled by ann, its owner", time.Minute, "ready\nLINE *** cancelled by ann, its owner\nbye\n"},
		{"DUE TO BUDGET *** spent", time.Minute, "ready\nLINE DUE TO BUDGET *** spent\nbye\n"},
		{"", time.Minute, "ready\nbye\n"},
		{"DUE TO BUDGET *** spent", 0, "ready\n"},
	} {
		b := newBench(t, nil)
		s := b.start(sh("trap 'echo bye >&2; exit' TERM; echo ready >&2; while :; do sleep 0.01; done"))
		await.Until(t, "the task is ready", func() bool { return strings.Contains(b.read(s, true), "ready") })
		if one.last != "" {
			s.Say(one.last)
		}
		s.Stop(one.grace)
		if f := s.wait(); f.Outcome != agent.Stopped {
			t.Errorf("finished as %+v", f)
		}
		got := stopLine.ReplaceAllString(strings.Replace(b.read(s, true), "Terminated\n", "", 1), "LINE")
		if got != one.want {
			t.Errorf("%q with a grace of %v: wrote %q, want %q", one.last, one.grace, got, one.want)
		}
	}
}

// stopLine matches the beginning of the last line of a task that was ended.
var stopLine = regexp.MustCompile(`candor: error: \*\*\* JOB 7 ON n1 CANCELLED AT \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// otherUsers returns a bench whose accounts have users of their own, but no namespaces.
func otherUsers(t *testing.T) *bench {
	t.Helper()
	return newBench(t, func(c *runner.Config) {
		c.User = "100000-165535"
		for _, dir := range []string{c.Dir, filepath.Dir(c.Dir)} {
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestLastLineIsWrittenByTheUser checks that the last line is written with the user's rights, and not with the rights
// of the super-user. The test uses this rule of the kernel: a write to a file removes the file's set-user-ID bit,
// except if the super-user writes.
func TestLastLineIsWrittenByTheUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	b := otherUsers(t)
	inTime(t, 200*time.Millisecond, func(limit time.Duration) bool {
		p := sh("touch one; exec 2>>one; chmod 4755 one; exec sleep 1000")
		p.TimeLimit = messages.Duration(limit)
		s := b.start(p)
		s.wait()
		path := filepath.Join(store.KeptDir(b.dir, "ann", s.attempt), "one")
		text, _ := os.ReadFile(path)
		info, err := os.Stat(path)
		if err != nil || len(text) == 0 && info.Mode()&os.ModeSetuid == 0 { // the time limit was reached before the script ran chmod
			return false
		}
		if info.Mode()&os.ModeSetuid != 0 || !limitLine.Match(text) {
			t.Errorf("the file has mode %v and %q", info.Mode(), text)
		}
		return true
	})
}

// TestLastLineDelaysNoEnd ends tasks whose last line cannot be written: nobody reads their pipe, or the file system of
// their output is frozen. The tasks must still end soon.
func TestLastLineDelaysNoEnd(t *testing.T) {
	t.Run("a full pipe", func(t *testing.T) {
		b := newBench(t, nil)
		p := sh("mkfifo pipe; exec 3<>pipe 2>pipe; dd if=/dev/zero of=pipe bs=65536 count=1 2>/dev/null; exec sleep 1000")
		p.Dir, p.TimeLimit = t.TempDir(), messages.Duration(300*time.Millisecond)
		endsSoon(t, b.start(p))
	})
	t.Run("a frozen file system", func(t *testing.T) {
		frozen, freeze, thaw := freezable(t)
		b := newBench(t, nil)
		var held []*started
		for range 6 { // more tasks than the number of last lines that are written at the same time
			p := sh("exec 2>>" + frozen + "/errors; echo ready; exec sleep 1000")
			p.Dir, p.TimeLimit = t.TempDir(), messages.Duration(2*time.Second)
			s := b.start(p)
			held = append(held, s)
			b.read(s, false)
		}
		freeze()
		for _, s := range held {
			endsSoon(t, s)
		}
		p := sh("echo ready; exec sleep 1000")
		p.Job, p.Account, p.TimeLimit = 8, "bob", messages.Duration(300*time.Millisecond)
		s := b.start(p)
		endsSoon(t, s)
		if got := b.read(s, true); !strings.Contains(got, "DUE TO TIME LIMIT") {
			t.Errorf("the task of another account wrote %q", got)
		}
		thaw()
	})
}

// freezable returns a directory with a file system of its own, and functions that freeze and thaw it.
func freezable(t *testing.T) (dir string, freeze, thaw func()) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	dir = t.TempDir()
	for _, line := range []string{"truncate -s 16M " + image, "mkfs.ext4 -q " + image, "mount -o loop " + image + " " + dir} {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("cannot mount: %s: %v: %s", line, err, out)
		}
	}
	ask := func(call uint) error { // the calls FIFREEZE and FITHAW of the kernel
		root, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		return unix.IoctlSetInt(int(root.Fd()), call, 0)
	}
	thaw = func() { _ = ask(0xC0045878) }
	t.Cleanup(func() {
		thaw()
		await.Until(t, "the file system is free", func() bool { return unix.Unmount(dir, 0) == nil })
	})
	return dir, func() {
		if err := ask(0xC0045877); err != nil {
			t.Skip("cannot freeze: ", err)
		}
	}, thaw
}

func endsSoon(t *testing.T, s *started) {
	t.Helper()
	f := s.wait()
	if took := f.Ended.Sub(f.Started).Std(); f.Outcome != agent.TimedOut || took > 10*time.Second {
		t.Errorf("finished after %v as %+v", took, f)
	}
}
