package runner

import (
	"syscall"
	"time"

	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// The end of a node's lease moves with each renewal. The node tells its tasks the new end only if it has moved by at
// least 1/tellRarely of the lease's length since they were last told. A node with short tasks renews the lease far more
// often than this.
const tellRarely = 16

// TellAnew reports whether tasks must be told the end of a lease again. The tasks know the end `told`, and the present
// end is `until`. If a renewal is small, the tasks are not told: they then assume an end that is slightly too early,
// which is safe.
func TellAnew(told, until time.Duration) bool {
	grown := until - told
	return grown < 0 || grown > 0 && grown >= (until-boottime.Now())/tellRarely
}

// Keep tells the tasks that they are the current attempts until the given time.
func (p *Processes) Keep(until time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !TellAnew(time.Duration(p.until.Load()), until) {
		return
	}
	p.until.Store(int64(until))
	for _, t := range p.running {
		t.tell()
	}
}

// A task reads the end of its lease from a file. tellFirst opens this file, lets the task's user read it, and writes
// the end of the present lease.
func (t *process) tellFirst(as *syscall.Credential) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files.OpenAlive(as)
	t.tellNow()
}

func (t *process) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellNow()
}

// tellNow writes the end of the lease into the task's lease file. If the task was told to end, it writes nothing. The
// caller holds t.mu.
func (t *process) tellNow() {
	if !t.ending {
		t.files.Tell(t.task.Attempt, time.Duration(t.runner.until.Load()))
	}
}
