package nodeagent

import (
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/lease"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// told is what the tasks of the node were told last of the lease.
type told struct {
	until messages.Time // 0: there is none
	stops uint64
	ever  bool
}

// tellRarely is the part of a lease by which it must have grown to be told anew: on a node
// with short tasks each exchange renews the lease.
const tellRarely = 16

// tellTasks tells the tasks of the node until when they are the current attempts.
func (a *Agent) tellTasks(now messages.Time) {
	next := told{stops: a.state.Stops(), ever: true}
	if a.state.Joined() {
		next.until = a.state.Expiry()
	}
	grown := next.until.Sub(a.told.until)
	same := next.until == a.told.until || a.told.until != 0 && grown >= 0 && grown < a.state.Lease()/tellRarely
	if a.c.Dir == "" || a.told.ever && same && next.stops == a.told.stops {
		return
	}
	var until time.Duration // by the clock that tasks read
	if next.until != 0 {
		until = boottime.Now() + next.until.Sub(now).Std()
	}
	a.told = next
	err := lease.Write(lease.File(a.c.Dir), until, a.state.Stopping())
	if err != nil && !os.IsNotExist(err) { // a runner without processes has no directory of jobs
		a.c.Log.Warn("the tasks cannot be told how long the lease lasts", zap.Error(err))
	}
}
