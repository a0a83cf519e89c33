package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/nodeagent/runner"
)

func (b *bench) piece(r agent.LogsRequest) agent.LogsReply {
	b.t.Helper()
	reply, err := b.ReadLog(context.Background(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply
}

func TestLogIsReadInPieces(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("printf 0123456789"))
	s.wait()
	for _, c := range []struct {
		offset int64
		limit  int
		data   string
		end    bool
	}{
		{0, 0, "0123456789", true},
		{0, 4, "0123", false},
		{4, 4, "4567", false},
		{8, 4, "89", true},
		{10, 4, "", true},
		{99, 4, "", true},
		{-3, 0, "789", true},
		{-99, 2, "01", false},
	} {
		got := b.piece(agent.LogsRequest{Attempt: s.attempt, Offset: c.offset, Limit: c.limit})
		if string(got.Data) != c.data || got.End != c.end {
			t.Errorf("from %d, %d bytes: %q, end %v", c.offset, c.limit, got.Data, got.End)
		}
	}
	if got := b.piece(agent.LogsRequest{Attempt: s.attempt, Stderr: true}); len(got.Data) != 0 || !got.End {
		t.Errorf("standard error: %+v", got)
	}
}

// TestLogIsFollowed reads a log while the task writes it. The task waits before each piece until the reader has the
// piece before it. So the reader can get the next piece only by a notification that the file has grown.
func TestLogIsFollowed(t *testing.T) {
	b := newBench(t, nil)
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	s := b.start(sh("echo first; exec 3<" + path + "; while read line <&3 && [ $line != end ]; do echo $line; done"))
	next := int64(0)
	follow := func(want string) agent.LogsReply {
		t.Helper()
		got := b.piece(agent.LogsRequest{Attempt: s.attempt, Offset: next, Wait: messages.Duration(patience)})
		if string(got.Data) != want {
			t.Fatalf("read %q, want %q", got.Data, want)
		}
		next = got.Next
		return got
	}
	follow("first\n")
	for _, line := range []string{"second\n", "third\n", "fourth\n"} {
		pipe.WriteString(line)
		if follow(line).End {
			t.Fatal("the end comes before the end")
		}
	}
	pipe.WriteString("end\n")
	if !follow("").End {
		t.Fatal("no end")
	}
	s.wait()
}

func TestWaitIsGivenUp(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("exec sleep 600"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	reply, err := b.ReadLog(ctx, agent.LogsRequest{Attempt: s.attempt, Wait: messages.Duration(time.Hour)})
	if err != nil || len(reply.Data) != 0 || reply.End {
		t.Errorf("read %+v, %v", reply, err)
	}
	s.Stop(0)
	s.wait()
}

func TestUnknownLogs(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("true"))
	s.wait()
	another := s.attempt
	another.Number = 2
	if _, err := b.ReadLog(context.Background(), agent.LogsRequest{Attempt: another}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("another attempt: %v", err)
	}
	if _, err := b.Owner(99); messages.KindOf(err) != messages.NotFound {
		t.Errorf("another job: %v", err)
	}
}

func TestLogsSurviveRestart(t *testing.T) {
	b := newBench(t, nil)
	loud, silent := b.start(sh("echo out; echo err >&2")), b.start(sh("true"))
	loud.wait()
	silent.wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := newBench(t, func(c *runner.Config) { c.Dir = b.dir })
	if owner, err := again.Owner(7); owner != "ann" {
		t.Errorf("the owner is %q, %v", owner, err)
	}
	if got := again.read(loud, false) + again.read(loud, true); got != "out\nerr\n" {
		t.Errorf("read %q", got)
	}
	if got := again.piece(agent.LogsRequest{Attempt: silent.attempt}); len(got.Data) != 0 || !got.End {
		t.Errorf("the silent one: %+v", got)
	}
	// A later task of the same job must not see the output of the earlier tasks.
	again.tasks = 10
	s := again.start(sh("ls -A"))
	s.wait()
	if got := again.read(s, false); got != "" {
		t.Errorf("a fresh directory holds %q", got)
	}
}

// TestReusedJobNumber makes a job directory of another account, as an earlier installation may have left it. The
// account whose job has the number now must not see its output.
func TestReusedJobNumber(t *testing.T) {
	b := newBench(t, nil)
	s := b.start(sh("echo secret"))
	s.wait()
	b.Close()
	again := newBench(t, func(c *runner.Config) { c.Dir = b.dir })
	again.tasks = 5
	again.start(agent.Program{Job: 7, Account: "bob", Command: []string{"true"}}).wait()
	if owner, _ := again.Owner(7); owner != "bob" {
		t.Errorf("the owner is %q", owner)
	}
	if r, err := again.ReadLog(context.Background(), agent.LogsRequest{Attempt: s.attempt}); messages.KindOf(err) != messages.NotFound {
		t.Errorf("read %q, %v", r.Data, err)
	}
}

func TestInstant(t *testing.T) {
	var f agent.Finished
	task := runner.Task{}
	task.Attempt.Number = 3
	r := runner.Instant{Clock: func() messages.Time { return 5 }}
	r.Start(task, func(got agent.Finished) { f = got }).Stop(0)
	if want := (agent.Finished{Attempt: task.Attempt, Started: 5, Ended: 5}); f != want {
		t.Errorf("finished as %+v", f)
	}
}

func TestRemovalsAreFinishedAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "jobs", ".removed-4", "x")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2", "3", "no-job"} {
		if err := os.MkdirAll(filepath.Join(dir, "jobs", "ann", id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1000, 0)
	if err := os.Chtimes(filepath.Join(dir, "jobs", "ann", "2"), old, old); err != nil {
		t.Fatal(err)
	}
	newBench(t, func(c *runner.Config) { c.Dir, c.KeepJobs = dir, 2 })
	await.Until(t, "1, 3 and no-job alone are left", func() bool {
		entries, _ := os.ReadDir(filepath.Join(dir, "jobs", "ann"))
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		moved, _ := filepath.Glob(filepath.Join(dir, "jobs", ".removed-*"))
		return strings.Join(names, " ") == "1 3 no-job" && len(moved) == 0
	})
}

// TestJobsOfAUserShareLanes checks that a job uses the lane files and the lane directory of an earlier job again. But
// it must not use a file with output, a directory with content, or a directory with changed permissions.
func TestJobsOfAUserShareLanes(t *testing.T) {
	b := strangers(t, func(c *runner.Config) { c.CheckEvery = 10 * time.Millisecond })
	first := b.start(of("ann", 7, sh("true")))
	if f := first.wait(); f.ExitCode != 0 {
		t.Fatalf("%+v", f)
	}
	loud := b.start(of("ann", 8, sh("echo out; echo left >file")))
	loud.wait()
	odd := b.start(of("ann", 9, sh("ls; chmod 755 .")))
	odd.wait()
	last := b.start(of("ann", 10, sh("stat -c %a .")))
	last.wait()
	if got := b.read(loud, false) + b.read(odd, false) + b.read(last, false); got != "out\n700\n" {
		t.Errorf("read %q", got)
	}
	for _, s := range []*started{first, odd} {
		if got := b.piece(agent.LogsRequest{Attempt: s.attempt}); len(got.Data) != 0 || !got.End {
			t.Errorf("the output of job %v: %+v", s.attempt.Task.Job, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "jobs", "ann", "8", fmt.Sprintf("%d.%d.1.dir", loud.attempt.Task.Stage, loud.attempt.Task.Index), "file")); string(text) != "left\n" {
		t.Errorf("job 8 left %q, %v", text, err)
	}
	if lanes, err := filepath.Glob(filepath.Join(b.dir, "jobs", "ann", "*.alive")); b.can(agent.AbilityFreeze) && len(lanes) != 1 {
		t.Errorf("the lanes are %v, %v", lanes, err)
	}
}
