package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// TestNextTaskHasItsMemory checks that shared memory that stays after a task does not reduce the memory for tasks of
// another account.
func TestNextTaskHasItsMemory(t *testing.T) {
	b := strangers(t, func(c *runner.Config) { c.Limits.Memory = 64 << 20 })
	if !b.can(agent.AbilityMemory) {
		t.Skip("needs control groups that bound memory")
	}
	const fill = "head -c 48m /dev/zero >/dev/shm/$CANDOR_TASK"
	keeps := b.start(of("ann", 7, sh(fill+"; echo up; exec sleep 1000"))) // the process keeps its shared memory
	b.read(keeps, false)
	for task, want := range []string{"ann", "bob", "ann"} {
		if want == "bob" {
			if f := b.start(of("bob", 8, sh("exec dd if=/dev/zero of=/dev/null bs=40M count=1"))).wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
				t.Errorf("bob's task ended as %+v", f)
			}
			continue
		}
		f := b.start(of("ann", 7, sh(fmt.Sprintf("head -c 48m /dev/zero >/dev/shm/more%d; df -m /dev/shm | awk 'NR > 1 && $3 > 64'", task))))
		if f.wait(); b.read(f, false) != "" {
			t.Errorf("shared memory holds %q", b.read(f, false))
		}
	}
	keeps.Stop(0)
	keeps.wait()
}

// TestNextTaskIsUnharmed kills a task's cell in several ways, and checks that the next tasks on the node run normally.
func TestNextTaskIsUnharmed(t *testing.T) {
	stubborn := "trap '' TERM; echo up; while :; do sleep 1000 & wait; done"
	limited := sh(stubborn)
	limited.TimeLimit = messages.Duration(50 * time.Millisecond)
	for _, c := range []struct {
		name    string
		program agent.Program
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
		for _, pids := range []int64{0, 100} { // each value uses another kind of cell
			b := newBench(t, func(c *runner.Config) { c.Limits.Pids, c.Grace = pids, 20*time.Millisecond })
			s := b.start(c.program)
			if c.end != nil {
				c.end(b, s)
			}
			s.wait()
			for range 3 {
				if f := b.start(sh("echo innocent")).wait(); f.Outcome != agent.Exited || f.ExitCode != 0 {
					t.Errorf("%s, %d: the next task ended as %+v", c.name, pids, f)
				}
			}
		}
	}
}
