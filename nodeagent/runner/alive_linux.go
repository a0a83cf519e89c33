package runner

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// aliveEnding is the end of the name of a lane's file of package lease.
const aliveEnding = ".alive"

// tellRarely: tasks are told a new end of the lease only if it is later by 1/tellRarely of the lease. On a node with
// short tasks each exchange renews the lease.
const tellRarely = 16

// TellAnew reports whether tasks must be told the end of a lease again. told is the end that they know, and until is
// the present one. A task that is not told assumes that the lease ends a little too early.
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

// openAlive opens the lane's file of package lease unless it is open, and lets the tasks' user read it. If that
// fails, lease.Alive answers a task with Unavailable.
func (l *lane) openAlive(as *syscall.Credential) {
	if l.alive != nil {
		return
	}
	fd, err := openFile(l.base+aliveEnding, l.flags()|unix.O_WRONLY)
	if err != nil {
		return
	}
	if as != nil {
		if unix.Fchown(fd, -1, int(as.Gid)) == nil {
			_ = unix.Fchmod(fd, access.PrivateFiles|0o040)
		}
	}
	l.alive = os.NewFile(uintptr(fd), l.base+aliveEnding)
}

// tellFirst opens the file that tells the task how long it is current, lets the task's user read it, and writes it.
func (t *process) tellFirst(as *syscall.Credential) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lane.openAlive(as)
	t.lane.tell(t)
}

// tell writes the end of the lease to the task's file.
func (t *process) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lane.tell(t)
}

// tell writes that the attempt of the lane's task is the current one, unless the task was told to end. The caller
// holds t.mu.
func (l *lane) tell(t *process) {
	if l != nil && l.alive != nil && !t.ending {
		_ = lease.Tell(l.alive, t.task.Attempt, time.Duration(t.runner.until.Load()))
	}
}

// untell writes that the attempt of the lane's task is no longer current.
func (l *lane) untell() {
	if l != nil && l.alive != nil {
		_ = lease.Blank(l.alive)
	}
}

func (l *lane) shut() {
	l.close()
	if l.alive != nil {
		_ = l.alive.Close()
		l.alive = nil
	}
}
