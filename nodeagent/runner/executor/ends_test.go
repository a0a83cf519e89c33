package executor

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

func alone(t *testing.T, dir string, waits time.Duration, tasks map[messages.Attempt]*task) (s *server, over chan error) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "executor.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runner.NewProcesses(runner.Config{Site: "home", Node: "n1", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, over = newServer(run, l, dir), make(chan error, 1)
	s.lonely, s.abandoned, s.tasks = time.Hour, waits, tasks
	s.begin()
	go func() { over <- s.accept(t.Context()) }()
	return s, over
}

func came(t *testing.T, over chan error) {
	t.Helper()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the executor goes on")
	}
}

// TestEndsOutliveTheExecutor: no agent comes back to an executor. The executor must end, and the next executor must
// report how the tasks ended.
func TestEndsOutliveTheExecutor(t *testing.T) {
	dir := t.TempDir()
	a := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
	_, over := alone(t, dir, time.Millisecond, map[messages.Attempt]*task{a: {class: "cpu", width: 2, finished: &agent.Finished{Attempt: a, ExitCode: 5}}})
	came(t, over)

	file := filepath.Join(dir, endsFile)
	for range 2 { // an agent that has not confirmed the end connects again
		k := openHere(t, dir)
		done := make(chan agent.Finished, 1)
		if all := k.Adopt(func(f agent.Finished) { done <- f }); len(all) != 1 || all[0].Class != "cpu" || all[0].Width != 2 {
			t.Fatalf("adopted %+v", all)
		}
		if f := <-done; f.Attempt != a || f.ExitCode != 5 {
			t.Errorf("%+v", f)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	k := openHere(t, dir)
	k.Adopt(func(agent.Finished) {})
	k.Confirm(a)
	k.Keep(boottime.Now() + time.Hour) // this message is sent together with the confirmation
	settled(t, k)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("when the end is confirmed, its file: %v", err)
	}
}

// TestExecutorStaysWhileTasksRun checks an executor without an agent. It must go on while tasks run, and
// until it has written the file with the ends of its tasks.
func TestExecutorStaysWhileTasksRun(t *testing.T) {
	dir := t.TempDir()
	a := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
	s, over := alone(t, dir, time.Millisecond, map[messages.Attempt]*task{a: {class: "cpu"}})
	s.mu.Lock()
	if s.alone != nil {
		t.Error("the executor is about to end while a task runs")
	}
	good := s.ends
	s.ends = filepath.Join(dir, "full") // a directory, which a file cannot replace
	if err := os.MkdirAll(filepath.Join(s.ends, "x"), 0o700); err != nil {
		t.Error(err)
	}
	s.mu.Unlock()
	s.done(agent.Finished{Attempt: a})
	s.leave()
	s.mu.Lock()
	if s.alone == nil {
		t.Error("the executor has ended, and the ends are nowhere")
	}
	s.ends = good
	s.mu.Unlock()
	came(t, over)
	if all, err := readEnds(good); len(all) != 1 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestExecutorEndsWithoutItsDirectory: the state directory of an executor is removed or replaced, so that no agent can
// connect. The executor must end.
func TestExecutorEndsWithoutItsDirectory(t *testing.T) {
	for name, replaced := range map[string]bool{"gone": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			a := messages.Attempt{Task: messages.TaskRef{Job: 7}, Number: 1}
			s, over := alone(t, dir, time.Millisecond, map[messages.Attempt]*task{a: {class: "cpu"}})
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			if replaced {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s.done(agent.Finished{Attempt: a})
			came(t, over)
			if _, err := os.Stat(filepath.Join(dir, endsFile)); !os.IsNotExist(err) {
				t.Errorf("ends were written: %v", err)
			}
		})
	}
}

func TestDamagedEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), endsFile)
	if err := writeEnds(file, []frame{{Kind: has, Name: "cpu", Finished: &agent.Finished{ExitCode: 5}}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	try := func(content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := readEnds(file); err == nil || all != nil {
			t.Errorf("%x reads as %+v", content, all)
		}
	}
	for i := range whole {
		try(whole[:i])
		changed := append([]byte(nil), whole...)
		changed[i] ^= 1
		try(changed)
	}
}

// TestATaskThatEndsBeforeItIsAdopted: a task ends after a new agent has connected and before the agent adopts the task.
// The agent must still learn of the end.
func TestATaskThatEndsBeforeItIsAdopted(t *testing.T) {
	a := messages.Attempt{Task: messages.TaskRef{Job: 1}, Number: 1}
	k := &Client{tasks: map[messages.Attempt]*remote{}, untold: map[messages.Attempt]bool{}, found: map[messages.Attempt]frame{a: {Kind: has, Attempt: a}}}
	k.hear(&frame{Kind: ended, Finished: &agent.Finished{Attempt: a, Outcome: agent.Stopped}})
	var heard []agent.Finished
	if all := k.Adopt(func(f agent.Finished) { heard = append(heard, f) }); len(all) != 1 {
		t.Fatalf("adopted %v", all)
	}
	if len(heard) != 1 || heard[0].Outcome != agent.Stopped {
		t.Errorf("the agent hears of %v", heard)
	}
}
