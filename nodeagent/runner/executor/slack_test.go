package executor_test

import (
	"os"
	"strings"
	"testing"
)

// TestTimersOfTasksAreExact checks that the executor's own timers have a large slack, and that the timers of tasks do
// not.
func TestTimersOfTasksAreExact(t *testing.T) {
	k := open(t, t.TempDir())
	_, done := begin(k, 1, "cat /proc/self/timerslack_ns; echo $PPID")
	wait(t, done)
	got := strings.Fields(output(t, k, 1))
	if len(got) != 2 || got[0] != "50000" {
		t.Fatalf("a task has a slack of %q", got)
	}
	own, err := os.ReadFile("/proc/" + got[1] + "/timerslack_ns")
	if err != nil {
		t.Skip(err) // only root may read the slack of another process
	}
	if strings.TrimSpace(string(own)) != "1000000" {
		t.Errorf("the executor has a slack of %s", own)
	}
}
