package runner

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// aliveEnding ends the name of a lane's file of package lease.
const aliveEnding = ".alive"

// tellRarely is the part of a lease by which its end must move before tasks are told again. On a
// node with short tasks each exchange renews the lease.
const tellRarely = 16

// TellAnew reports whether tasks that were told that a lease ends at told must now be told until. A
// task that is not told assumes that the lease ends a little earlier than it does.
func TellAnew(told, until time.Duration) bool {
	grown := until - told
	return grown < 0 || grown > 0 && grown >= (until-boottime.Now())/tellRarely
}

// Keep tells the tasks until when they are the current attempts.
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

// openAlive opens the lane's file of package lease, which the tasks' user may read, unless
// it is open. A task whose file cannot be made learns that nobody knows.
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
			_ = unix.Fchmod(fd, privateFiles|0o040)
		}
	}
	l.alive = os.NewFile(uintptr(fd), l.base+aliveEnding)
}

// tellFirst opens the file from which the task learns about its attempt, lets the task's user read it, and writes it.
func (t *process) tellFirst(as *syscall.Credential) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lane.openAlive(as)
	t.lane.tell(t)
}

// tell writes the lease to the file that the task reads.
func (t *process) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lane.tell(t)
}

// tell writes that the attempt of the lane's task is the current one, unless it was told to
// end. t.mu is held.
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
