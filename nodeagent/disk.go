package nodeagent

import (
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// diskEvery is the time between two readings of the free space on the agent's disk. The agent reads sooner if the disk
// may fill sooner.
const diskEvery = time.Second

// watchDisk stops the node from claiming tasks while its disk is almost full: the site's books may be on the same disk.
// Call it before the agent's goroutine begins.
func (a *Agent) watchDisk() {
	reserve := runner.Reserve(a.c.Dir, a.c.Tasks.KeepFree)
	if a.full = runner.Full(a.c.Dir, reserve, false); a.full {
		a.pause()
		a.sayFull(true, reserve)
	}
	go a.followDisk(a.full, reserve)
}

func (a *Agent) followDisk(was bool, reserve int64) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-a.ended:
			return
		case <-timer.C:
		}
		timer.Reset(runner.Soon(a.c.Dir, runner.Takes(reserve), diskEvery))
		full := runner.Full(a.c.Dir, reserve, was)
		if full == was {
			continue
		}
		was = full
		a.sayFull(full, reserve)
		a.queue.post(func(messages.Time) {
			a.full = full
			a.pause()
		})
	}
}

func (a *Agent) sayFull(full bool, reserve int64) {
	if full {
		a.c.Log.Warn("the disk is almost full: the node takes no tasks until there is space", zap.String("dir", a.c.Dir), zap.Int64("reserve_mib", reserve>>20))
		return
	}
	a.c.Log.Info("the disk has space again: the node takes tasks")
}
