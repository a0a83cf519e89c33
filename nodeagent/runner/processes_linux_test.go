package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// patience bounds every wait of a test. It is long enough for a loaded machine.
const patience = await.Patience

type bench struct {
	*runner.Processes
	t     testing.TB
	dir   string
	tasks uint32
	// stages gives each program a stage number: all tasks of a stage must run the same program.
	stages map[string]uint32
}

func newBench(t testing.TB, change func(*runner.Config)) *bench {
	c := runner.Config{Site: "home", Node: "n1", Dir: t.TempDir()}
	if change != nil {
		change(&c)
	}
	r, err := runner.NewProcesses(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &bench{Processes: r, t: t, dir: c.Dir, stages: map[string]uint32{}}
}

type started struct {
	runner.Process
	t       testing.TB
	attempt messages.Attempt
	done    chan agent.Finished
}

func (b *bench) start(p agent.Program) *started {
	if p.Job == 0 {
		p.Job, p.Account = 7, "ann"
	}
	if p.Stage == 0 {
		p.Stage = b.stage(&p)
	}
	s := &started{t: b.t, done: make(chan agent.Finished, 2)}
	s.attempt = messages.Attempt{Task: messages.TaskRef{Job: p.Job, Stage: p.Stage, Index: b.tasks}, Number: 1}
	b.tasks++
	task := runner.Task{Program: &p}
	task.Attempt = s.attempt
	task.Array = 100 + int64(s.attempt.Task.Index)
	s.Process = b.Start(task, func(f agent.Finished) { s.done <- f })
	return s
}

func (b *bench) stage(p *agent.Program) uint32 {
	key := fmt.Sprint(p.Command, p.Script, p.Dir)
	n, ok := b.stages[key]
	if !ok {
		n = uint32(len(b.stages))
		b.stages[key] = n
	}
	return n
}

func (s *started) wait() agent.Finished {
	s.t.Helper()
	select {
	case f := <-s.done:
		if f.Attempt != s.attempt || f.Ended < f.Started || f.Started == 0 {
			s.t.Fatalf("finished as %+v", f)
		}
		return f
	case <-time.After(patience):
		s.t.Fatal("the task does not end")
		panic("unreachable")
	}
}

func sh(script string) agent.Program {
	return agent.Program{Command: []string{"sh", "-c", script}}
}

func (b *bench) read(s *started, stderr bool) string {
	b.t.Helper()
	for until := time.Now().Add(patience); ; { // a read waits for at most a second
		r, err := b.ReadLog(context.Background(), agent.LogsRequest{Attempt: s.attempt, Stderr: stderr, Wait: messages.Duration(patience)})
		if err != nil {
			b.t.Fatal(err)
		}
		if len(r.Data) > 0 || r.End || time.Now().After(until) {
			return string(r.Data)
		}
	}
}

func TestOutcomes(t *testing.T) {
	file, badScript := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(badScript, []byte("#!/usr/bin/no-such -x\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("\x00 no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		program agent.Program
		outcome agent.Outcome
		code    int
		detail  string
	}{
		{"exit 0", sh("exit 0"), agent.Exited, 0, ""},
		{"exit 42", sh("exit 42"), agent.Exited, 42, ""},
		{"signal", sh("kill -SEGV $$"), agent.Exited, 128 + 11, "SIGSEGV"},
		{"in PATH", agent.Program{Command: []string{"true"}}, agent.Exited, 0, ""},
		{"by path", agent.Program{Command: []string{"/bin/false"}}, agent.Exited, 1, ""},
		{"script", agent.Program{Script: "read line; test -z \"$line\" && exit 5"}, agent.Exited, 5, ""},
		{"script with interpreter", agent.Program{Script: "#!/usr/bin/awk -f\nBEGIN { exit 9 }\n"}, agent.Exited, 9, ""},
		{"script without interpreter", agent.Program{Script: "#!/no/such\n"}, agent.Unstartable, 0, "interpreter /no/such: not found"},
		{"missing", agent.Program{Command: []string{"no-such-command"}}, agent.Unstartable, 0, "not found in PATH="},
		{"missing path", agent.Program{Command: []string{"/no/such"}}, agent.Unstartable, 0, "command /no/such: not found"},
		{"not executable", agent.Program{Command: []string{"/etc/passwd"}}, agent.Unstartable, 0, "command /etc/passwd: not permitted"},
		{"no program", agent.Program{Command: []string{file}}, agent.Unstartable, 0, "is not a program"},
		{"empty", agent.Program{Command: []string{""}}, agent.Unstartable, 0, "must not be empty"},
		{"neither", agent.Program{}, agent.Unstartable, 0, "either a command or a script"},
		{"both", agent.Program{Script: "x", Command: []string{"true"}}, agent.Unstartable, 0, "either a command or a script"},
		{"zero byte", agent.Program{Command: []string{"true", "\x00"}}, agent.Unstartable, 0, "invalid argument"},
		{"missing dir", agent.Program{Command: []string{"true"}, Dir: "/no/such"}, agent.Unstartable, 0, "directory /no/such does not exist"},
		{"interpreter", agent.Program{Command: []string{badScript}}, agent.Unstartable, 0, "interpreter /usr/bin/no-such: not found"},
		{"directory", agent.Program{Command: []string{"/usr/"}}, agent.Unstartable, 0, "command /usr/: is a directory"},
		{"file as dir", agent.Program{Command: []string{"true"}, Dir: file}, agent.Unstartable, 0, "is not a directory"},
		{"relative dir", agent.Program{Command: []string{"true"}, Dir: "here"}, agent.Unstartable, 0, "absolute"},
		{"bad variable", agent.Program{Command: []string{"true"}, Env: job.Env{{Name: "A=B"}}}, agent.Unstartable, 0, "A=B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			s := b.start(c.program)
			f := s.wait()
			if f.Outcome != c.outcome || f.ExitCode != c.code {
				t.Errorf("finished as %+v, want %v %d", f, c.outcome, c.code)
			}
			if !strings.Contains(f.Detail, c.detail) || (c.detail == "") != (f.Detail == "") {
				t.Errorf("finished with %q, want %q", f.Detail, c.detail)
			}
			if said := b.read(s, true); f.Outcome == agent.Unstartable && !strings.Contains(said, f.Detail) {
				t.Errorf("its owner reads %q, and not why it could not be started: %s", said, f.Detail)
			}
		})
	}
}

func TestMissingCommandIsFoundOnceItIsThere(t *testing.T) {
	b := newBench(t, nil)
	bin := t.TempDir()
	p := agent.Program{Command: []string{"tool"}, Env: job.Env{{Name: "PATH", Value: bin}}}
	if f := b.start(p).wait(); f.Outcome != agent.Unstartable {
		t.Fatalf("finished as %+v", f)
	}
	if err := os.Symlink("/bin/true", filepath.Join(bin, "tool")); err != nil {
		t.Fatal(err)
	}
	if f := b.start(p).wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
		t.Fatalf("finished as %+v", f)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_AGENT", "x")
	t.Setenv("HOME", "/home/somebody")
	b := newBench(t, nil)
	p := agent.Program{Job: 12, Stage: 3, StageName: "map", JobName: "word count", Account: "ann", Payer: "climate", Market: "main", Tasks: 8,
		TimeLimit: messages.Duration(time.Hour),
		Command:   []string{"env"},
		Env:       job.Env{{Name: "A", Value: "b=c"}, {Name: "CANDOR_JOB", Value: "13"}, {Name: "CANDOR_TASK", Value: "99"}, {Name: "LANG", Value: "sv_SE"}}}
	b.tasks = 5
	s := b.start(p)
	s.wait()
	got := map[string]string{}
	for line := range strings.Lines(b.read(s, false)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	for name, want := range map[string]string{
		"A": "b=c", "LANG": "sv_SE", "HOME": "/home/somebody", "PATH": os.Getenv("PATH"), "SHELL": "/bin/sh",
		"CANDOR_SITE": "home", "CANDOR_NODE": "n1", "CANDOR_JOB": "12", "CANDOR_JOB_NAME": "word count", "CANDOR_PAYER": "climate", "CANDOR_MARKET": "main", "CANDOR_STAGE": "map",
		"CANDOR_TASK": "5", "CANDOR_TASKS": "8", "CANDOR_ATTEMPT": "1", "CANDOR_ARRAY_INDEX": "105", "CANDOR_TIME_LIMIT": "3600",
	} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
	for _, name := range []string{"USER", "LOGNAME", "TMPDIR", "PWD"} {
		if got[name] == "" {
			t.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
	if len(got) != 18 {
		t.Errorf("the environment holds more than it should: %v", got)
	}
}

func TestWorkingDirectories(t *testing.T) {
	b := newBench(t, nil)
	own := b.start(sh("ls -A; echo kept > file; echo $PWD"))
	own.wait()
	first, found := strings.CutSuffix(b.read(own, false), "\n")
	if !found || strings.Contains(first, "\n") {
		t.Fatalf("a fresh directory is not empty: %q", first)
	}
	kept := filepath.Join(b.dir, "jobs", "ann", "7", "0.0.1.dir", "file")
	if text, err := os.ReadFile(kept); string(text) != "kept\n" {
		t.Errorf("what the task wrote: %q, %v", text, err)
	}
	for range 3 {
		next := b.start(sh("ls -A; touch file; mkdir -p a/b"))
		next.wait()
		if got := b.read(next, false); got != "" {
			t.Fatalf("a fresh directory holds %q", got)
		}
	}
	given := t.TempDir()
	s := b.start(agent.Program{Command: []string{"pwd"}, Dir: given})
	s.wait()
	if got := strings.TrimSpace(b.read(s, false)); got != given {
		t.Errorf("works in %s, want %s", got, given)
	}
}

func TestProcessLeadsItsOwnSession(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("cut -d' ' -f1,5,6 /proc/$$/stat"))
	s.wait()
	ids := strings.Fields(b.read(s, false))
	if len(ids) != 3 || ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("process, group and session are %v", ids)
	}
}

// inTime repeats a test in which something happens `limit` after the start of a process. On a slow machine, the task
// may not have begun before that. Then `try` returns false, and inTime tries again with twice the limit.
func inTime(t *testing.T, limit time.Duration, try func(limit time.Duration) bool) {
	t.Helper()
	for ; !try(limit); limit *= 2 {
		if limit > patience {
			t.Fatalf("the task does not begin within %v", limit)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	b := newBench(t, nil)
	p := sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
	inTime(t, 50*time.Millisecond, func(limit time.Duration) bool {
		p.TimeLimit = messages.Duration(limit)
		s := b.start(p)
		f := s.wait()
		got := b.read(s, false)
		if f.Outcome != agent.TimedOut || !strings.Contains(f.Detail, "time limit of "+p.TimeLimit.String()) {
			t.Errorf("finished as %+v", f)
		}
		if got == "" {
			return false
		}
		if got != "ready\nbye\n" || f.ExitCode != 3 {
			t.Errorf("wrote %q, and finished as %+v", got, f)
		}
		return true
	})
}

func TestIgnoredSIGTERM(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.Grace = 20 * time.Millisecond })
	p := sh("trap '' TERM; echo ready; while :; do sleep 0.01; done")
	inTime(t, 50*time.Millisecond, func(limit time.Duration) bool {
		p.TimeLimit = messages.Duration(limit)
		s := b.start(p)
		f := s.wait()
		if b.read(s, false) == "" {
			return false
		}
		if f.Outcome != agent.TimedOut || f.ExitCode != 128+9 {
			t.Errorf("finished as %+v", f)
		}
		return true
	})
}

func TestStop(t *testing.T) {
	for name, c := range map[string]struct {
		graces []time.Duration
		code   int
	}{
		"with grace":           {[]time.Duration{time.Hour}, 128 + 15},
		"without":              {[]time.Duration{0}, 128 + 9},
		"less grace afterward": {[]time.Duration{time.Hour, time.Hour, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			script := "echo ready; exec sleep 600"
			if c.code == 0 {
				script, c.code = "trap '' TERM; echo ready; while :; do sleep 0.01; done", 128+9
			}
			s := b.start(sh(script))
			b.read(s, false)
			for _, g := range c.graces {
				s.Stop(g)
			}
			if f := s.wait(); f.Outcome != agent.Stopped || f.ExitCode != c.code {
				t.Errorf("finished as %+v, want exit code %d", f, c.code)
			}
			s.Stop(0) // a task that has ended is not stopped again
		})
	}
}

func TestStopReachesSuspendedProcess(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("echo ready; kill -STOP $$"))
	b.read(s, false)
	s.Stop(time.Hour)
	if f := s.wait(); f.Outcome != agent.Stopped || f.ExitCode != 128+15 {
		t.Errorf("finished as %+v", f)
	}
}

func TestStopAtOnce(t *testing.T) {
	b := newBench(t, nil)
	for range 50 {
		s := b.start(sh("exec sleep 600"))
		s.Stop(0)
		if f := s.wait(); f.Outcome != agent.Stopped {
			t.Fatalf("finished as %+v", f)
		}
	}
}

// ends waits until a process has ended, or is a zombie.
func ends(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") || strings.Contains(string(b), ") X ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d goes on: %s", pid, b)
		}
	}
}

func pidOf(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestLeftoverGroupIsKilled(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("(trap '' TERM HUP; (sleep 600 & echo $!) ) & wait; exit 4"))
	if f := s.wait(); f.Outcome != agent.Exited || f.ExitCode != 4 {
		t.Errorf("finished as %+v", f)
	}
	ends(t, pidOf(t, b.read(s, false)))
}

// TestStopReachesOtherGroups stops a task whose shell gives each of its jobs a process group of its own, in the same
// session. The processes of all these groups must end.
func TestStopReachesOtherGroups(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("set -m; sleep 600 & echo $!; wait"))
	pid := pidOf(t, b.read(s, false))
	s.Stop(time.Hour)
	if f := s.wait(); f.Outcome != agent.Stopped {
		t.Errorf("finished as %+v", f)
	}
	ends(t, pid)
}

// logged reads a whole output. It writes "[missing]" where a part is missing, and counts the missing bytes.
func (b *bench) logged(s *started, stderr bool) (text string, missing int64) {
	for next := int64(0); ; {
		r, err := b.ReadLog(b.t.Context(), agent.LogsRequest{Attempt: s.attempt, Stderr: stderr, Offset: next, Limit: 100_000})
		if err != nil {
			b.t.Fatal(err)
		}
		if r.Missing > 0 {
			missing += r.Missing
			text += "[missing]"
		}
		text += string(r.Data)
		if next = r.Next; r.End {
			return text, missing
		}
	}
}

// TestOutputIsCutInTheMiddle writes more than the limit. The beginning and the end must be kept (with OutputTail only
// the end), and reads must say how much is missing.
func TestOutputIsCutInTheMiddle(t *testing.T) {
	const limit = 1 << 20
	for _, tail := range []bool{false, true} {
		b := newBench(t, func(c *runner.Config) { c.OutputLimit, c.OutputTail, c.CheckEvery = limit, tail, 10*time.Millisecond })
		s := b.start(sh("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo last; echo end >&2"))
		f := s.wait()
		if f.Outcome != agent.Exited || f.ExitCode != 0 {
			t.Fatalf("finished as %+v", f)
		}
		text, missing := b.logged(s, false)
		if kept := int64(len(text) - len("[missing]")); missing+kept != 20_000_011 || kept < limit || kept > limit+8192 {
			t.Errorf("tail %v: kept %d, missing %d", tail, kept, missing)
		}
		if f.Lost != missing {
			t.Errorf("tail %v: missing %d, lost %d", tail, missing, f.Lost)
		}
		if strings.HasPrefix(text, "first\n") == tail || !strings.HasSuffix(text, "xlast\n") {
			t.Errorf("tail %v: begins %.20q, ends %q", tail, text, text[len(text)-20:])
		}
		if holes, zeros := strings.Count(text, "[missing]"), strings.Count(text, "\x00"); holes != 1 || zeros != 0 {
			t.Errorf("tail %v: %d holes and %d zeros are read", tail, holes, zeros)
		}
		var info unix.Stat_t
		if err := unix.Stat(filepath.Join(b.dir, "jobs", "ann", "7", "0.0.1.out"), &info); err != nil || info.Blocks*512 > limit+16384 {
			t.Errorf("%d bytes are on the disk: %v", info.Blocks*512, err)
		}
		if got := b.read(s, true); got != "end\n" {
			t.Errorf("wrote %q to standard error", got)
		}
	}
}

// TestOutputIsFollowedAcrossTheCut reads the output of a task while the node removes a part of it, because it is too
// long. The reader must get each byte or be told that it is lost.
func TestOutputIsFollowedAcrossTheCut(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.OutputLimit, c.CheckEvery = 64<<10, 5*time.Millisecond })
	s := b.start(sh("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo line $i; done"))
	text, missing := b.logged(s, false)
	if f := s.wait(); f.ExitCode != 0 || f.Lost == 0 {
		t.Fatalf("finished as %+v", f)
	}
	var all strings.Builder
	for i := range 60000 {
		fmt.Fprintln(&all, "line", i+1)
	}
	if n := int64(len(text)-len("[missing]")*strings.Count(text, "[missing]")) + missing; n != int64(all.Len()) || strings.Contains(text, "\x00") {
		t.Errorf("read and missing are %d bytes, written were %d", n, all.Len())
	}
	again, missing := b.logged(s, false)
	head, end, _ := strings.Cut(again, "[missing]")
	if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), end) || missing+int64(len(head)+len(end)) != int64(all.Len()) {
		t.Errorf("kept are %d and %d bytes, missing %d of %d", len(head), len(end), missing, all.Len())
	}
}

func TestMeasures(t *testing.T) {
	// The memory of this process must not count for the task.
	ballast := make([]byte, 96<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	b := newBench(t, func(c *runner.Config) { c.CheckEvery = 10 * time.Millisecond })
	s := b.start(sh("echo ready; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"))
	f := s.wait()
	if f.CPU <= 0 || f.CPU > messages.Duration(patience) {
		t.Errorf("used %v of CPU", f.CPU)
	}
	if f.MaxRSS > 48<<20 {
		t.Errorf("a shell used %d MiB", f.MaxRSS>>20)
	}
	if len(ballast) == 0 {
		t.Fatal("no ballast")
	}
}

func TestOldJobsAreRemoved(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.KeepJobs = 2 })
	long := b.start(agent.Program{Job: 1, Account: "ann", Command: []string{"sh", "-c", "echo ready; exec sleep 600"}})
	b.read(long, false)
	for id := range 5 {
		b.start(agent.Program{Job: messages.JobID(2 + id), Account: "ann", Command: []string{"echo", "hello"}}).wait()
	}
	if err := b.Close(); err != nil { // Close waits for the removals
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(b.dir, "jobs", "ann"))
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	// Two jobs are kept. Job 1 was kept while its task ran. Close ended this task, so the jobs that ended last are 6
	// and 1.
	if want := []string{"1", "6"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v, want %v", left, err, want)
	}
}

func TestCloseKillsAndRefuses(t *testing.T) {
	b := newBench(t, nil)
	var all []*started
	for range 5 {
		s := b.start(sh("trap '' TERM; echo ready; while :; do sleep 1; done"))
		b.read(s, false)
		all = append(all, s)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		select {
		case f := <-s.done:
			if f.Outcome != agent.Stopped {
				t.Errorf("finished as %+v", f)
			}
		default:
			t.Error("Close returned before the end was reported")
		}
	}
	if f := b.start(sh("true")).wait(); f.Outcome != agent.Unstartable {
		t.Errorf("after Close: %+v", f)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBench(t, nil)
	var tasks sync.WaitGroup
	for range 8 {
		tasks.Add(1)
		one := make([]*started, 25)
		for i := range one {
			one[i] = b.start(sh("echo $CANDOR_TASK; echo $CANDOR_ARRAY_INDEX >&2"))
		}
		go func() {
			defer tasks.Done()
			for _, s := range one {
				s.wait()
				if got, want := b.read(s, false), fmt.Sprintln(s.attempt.Task.Index); got != want {
					t.Errorf("wrote %q, want %q", got, want)
				}
				if got, want := b.read(s, true), fmt.Sprintln(100+s.attempt.Task.Index); got != want {
					t.Errorf("wrote %q, want %q", got, want)
				}
			}
		}()
	}
	tasks.Wait()
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]runner.Config{
		"no site":  {Node: "n", Dir: "d"},
		"no node":  {Site: "s", Dir: "d"},
		"no dir":   {Site: "s", Node: "n"},
		"negative": {Site: "s", Node: "n", Dir: "d", KeepJobs: -1},
	} {
		if _, err := runner.NewProcesses(c); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// TestLeaseIsToldRarely renews the lease often, as on a node with short tasks. Tasks must be told of only some of the
// renewals.
func TestLeaseIsToldRarely(t *testing.T) {
	now := boottime.Now()
	for _, c := range []struct {
		name        string
		told, until time.Duration
		anew        bool
	}{
		{"the first", 0, now + time.Hour, true},
		{"the same", now + time.Hour, now + time.Hour, false},
		{"a little longer", now + time.Hour, now + time.Hour + time.Minute, false},
		{"noticeably longer", now + time.Hour, now + time.Hour + 5*time.Minute, true},
		{"shorter", now + time.Hour, now + time.Minute, true},
		{"none", now + time.Hour, 0, true},
	} {
		if got := runner.TellAnew(c.told, c.until); got != c.anew {
			t.Errorf("%s: told anew %v", c.name, got)
		}
	}
}
