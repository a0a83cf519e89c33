package lane

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/access"
)

// aliveEnding is the end of the name of a lane's lease file (see package lease).
const aliveEnding = ".alive"

// Alive returns the path of the attempt's lease file.
func (o *Files) Alive() string { return o.lane.base + aliveEnding }

// OpenAlive opens the lane's lease file, unless it is open, and lets the tasks' user read it. If OpenAlive fails,
// lease.Alive answers a task with an error of the kind Unavailable.
func (o *Files) OpenAlive(as *syscall.Credential) {
	l := o.lane
	if l.alive != nil {
		return
	}
	fd, err := OpenFile(l.base+aliveEnding, l.flags()|unix.O_WRONLY)
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

// Tell writes into the lease file that the attempt a is the current one. Its lease ends at the time `until`.
func (o *Files) Tell(a messages.Attempt, until time.Duration) {
	if o.lane != nil && o.lane.alive != nil {
		_ = lease.Tell(o.lane.alive, a, until)
	}
}

// Untell removes the content that Tell wrote to the lease file. Programs that read this file then know that the attempt
// does not run any more.
func (o *Files) Untell() {
	if o.lane != nil && o.lane.alive != nil {
		_ = lease.Blank(o.lane.alive)
	}
}

func (l *lane) shut() {
	l.close()
	if l.alive != nil {
		_ = l.alive.Close()
		l.alive = nil
	}
}
