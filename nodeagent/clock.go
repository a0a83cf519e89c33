package nodeagent

import (
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/boottime"
)

// uptime is the time since the machine was started. It goes on while the
// machine sleeps, as the leader's does, and nobody sets it.
func uptime() messages.Time { return messages.Time(boottime.Now() / time.Microsecond) }
