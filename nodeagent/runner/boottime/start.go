package boottime

import "time"

var start = time.Now()

// sinceStart is the time since this process was started, by a clock that nobody
// sets; on most systems it stands still while the machine sleeps.
func sinceStart() time.Duration { return time.Since(start) }
