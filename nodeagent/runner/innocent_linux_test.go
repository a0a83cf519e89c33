package runner_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestNextTaskIsUnharmed: however a task's cell is killed, the tasks that follow
// on its node run as if it had not been there.
func TestNextTaskIsUnharmed(t *testing.T) {
	stubborn := "trap '' TERM; echo up; while :; do sleep 1000 & wait; done"
	limited := sh(stubborn)
	limited.TimeLimit = messages.Duration(50 * time.Millisecond)
	for _, c := range []struct {
		name    string
		program messages.Program
		end     func(*bench, *started)
	}{
		{"daemon left behind", sh("(trap '' TERM; exec setsid sleep 1000 >/dev/null 2>&1) & exit 0"), nil},
		{"time limit", limited, nil},
		{"cancelled", sh(stubborn), func(b *bench, s *started) { b.read(s, false); s.Stop(10 * time.Millisecond) }},
		{"killed", sh(stubborn), func(b *bench, s *started) { b.read(s, false); s.Stop(0) }},
		{"killed while suspended", sh(stubborn), func(b *bench, s *started) { b.read(s, false); s.Suspend(true); s.Stop(0) }},
		{"kills itself", sh("kill -KILL $$"), nil},
		{"kills its group", sh(`for at in /sys/fs/cgroup/unified /sys/fs/cgroup; do
			test -e $at/cgroup.procs && echo 1 >$at$(sed -n s/^0:://p /proc/self/cgroup)/cgroup.kill; done; exec sleep 1`), nil},
	} {
		for _, pids := range []int64{0, 100} { // which are served by different kinds of cells
			b := newBench(t, func(c *runner.Config) { c.Limits.Pids, c.Grace = pids, 20*time.Millisecond })
			s := b.start(c.program)
			if c.end != nil {
				c.end(b, s)
			}
			s.wait()
			for range 3 {
				if f := b.start(sh("echo innocent")).wait(); f.Outcome != messages.Exited || f.ExitCode != 0 {
					t.Errorf("%s, %d: the next task ended as %+v", c.name, pids, f)
				}
			}
		}
	}
}
