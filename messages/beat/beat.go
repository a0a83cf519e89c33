// Package beat lets the loops of a process wake at the same instants. Then an idle processor wakes once for all loops,
// instead of once for each.
package beat

import "time"

var began = time.Now()

// Until returns the time to the next beat of a period. A beat comes at every whole number of periods after the process
// began, by the monotonic clock. The argument `every` must be more than 0. The result is more than 0 and at most
// `every`.
func Until(every time.Duration) time.Duration {
	gone := time.Since(began) % every
	if gone < 0 { // in virtual time, a test's clock began before the process
		gone += every
	}
	return every - gone
}
