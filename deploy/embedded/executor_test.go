package embedded

import (
	"bytes"
	"flag"
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
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestMain lets a site under test start this binary as an executor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == executor.Argument {
		if err := executor.Main(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// These tests mostly wait for elections, leases and processes. So four of them run in parallel, unless the command
	// line says another number.
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(a string) bool { return strings.Contains(a, "test.parallel") }) {
		_ = flag.Set("test.parallel", "4")
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// Each task of this job writes a line when it begins, and another line when the test lets it end.
func lives(dir string, tasks int) jobmsg.JobSpec {
	script := fmt.Sprintf(`echo $CANDOR_TASK $$ $PPID >>%[1]s/begun
while ! [ -e %[1]s/go ]; do sleep 0.02; done
echo $CANDOR_TASK $$ >>%[1]s/ended`, dir)
	return jobmsg.JobSpec{Budget: 8 * messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Tasks: tasks, Script: script}}}
}

func lines(t *testing.T, file string, n int) []string {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		b, _ := os.ReadFile(file)
		if bytes.Count(b, []byte("\n")) >= n {
			return strings.Split(strings.TrimSpace(string(b)), "\n")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %q, want %d lines", file, b, n)
		}
	}
}

func release(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// paidOnce checks that a job completed, and was charged its budget once.
func (u user) paidOnce(id messages.JobID, before messages.Credits) {
	u.Helper()
	j := u.final(id)
	after := u.account()
	if j.State != jobmsg.Completed || before-after.Balance != j.Charged || after.Reserved != 0 {
		u.Errorf("job %v is %v, charged %v; the account went from %v to %+v", id, j.State, j.Charged, before, after)
	}
}

// TestTasksOutliveTheSite stops a site while tasks run, and starts it again. The site must find the tasks again, and
// must run nothing twice.
func TestTasksOutliveTheSite(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), small(t.TempDir())
	o := Options{Executor: executor.Self(), LeaveRunning: true}
	s, err := Start(within(t), c, o)
	if err != nil {
		t.Fatal(err)
	}
	u := connect(t, s, "alice")
	before := u.account().Balance
	spec := lives(dir, 2)
	spec.Stages[0].Script += "\necho $CANDOR_TASK > out"
	spec.Stages[0].Outputs = []string{"out"}
	id := u.submit("lives", spec)
	begun := lines(t, filepath.Join(dir, "begun"), 2)
	closeSite(t, s)

	o.LeaveRunning = false
	if s, err = Start(within(t), c, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSite(t, s) })
	u = connect(t, s, "alice")
	release(t, dir)
	u.paidOnce(id, before)
	ended := lines(t, filepath.Join(dir, "ended"), 2)
	if again := lines(t, filepath.Join(dir, "begun"), 2); len(again) != 2 || len(ended) != 2 {
		t.Errorf("began as %q, ended as %q after %q", again, ended, begun)
	}
	if left := u.left(id); left[0]["out"] != "0\n" || left[1]["out"] != "1\n" {
		t.Errorf("the tasks left %v", left)
	}
}

// TestExecutorIsKilled kills an executor. Its tasks must end and run again, and be paid once.
func TestExecutorIsKilled(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), small(t.TempDir())
	s, err := Start(within(t), c, Options{Executor: executor.Self()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSite(t, s) })
	u := connect(t, s, "alice")
	before := u.account().Balance
	id := u.submit("lives", lives(dir, 1))
	first := strings.Fields(lines(t, filepath.Join(dir, "begun"), 1)[0])
	parent, err := strconv.Atoi(first[2])
	if err != nil || parent <= 1 {
		t.Fatalf("begun: %q", first)
	}
	if err := unix.Kill(parent, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lines(t, filepath.Join(dir, "begun"), 2)
	release(t, dir)
	u.paidOnce(id, before)
	if ended := lines(t, filepath.Join(dir, "ended"), 1); len(ended) != 1 || strings.Fields(ended[0])[1] == first[1] {
		t.Errorf("ended as %q, though %q was ended with its executor", ended, first)
	}
}
