// Package beat has what a process does now and then happen at the same instants. A
// processor that has nothing else to do wakes once for all of it: an idle site, which has
// dozens of such loops, costs what its wake-ups cost.
package beat

import "time"

var began = time.Now()

// Until is how long it is to the next beat of a period: a whole number of periods after
// the process began, by the clock that is never set. It is more than 0, and at most every,
// which must be more than 0.
func Until(every time.Duration) time.Duration {
	gone := time.Since(began) % every
	if gone < 0 { // the clock of a test in virtual time began before the process
		gone += every
	}
	return every - gone
}
