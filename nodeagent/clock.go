package nodeagent

import (
	"time"

	"github.com/candor-grid/candor/messages"
)

var start = time.Now()

// sinceStart is the time since the process was started, on a clock that
// nobody sets; on most systems it stands still while the machine sleeps.
func sinceStart() messages.Time { return messages.Time(time.Since(start) / time.Microsecond) }
