// Package beat lets the loops of a process wake at the same instants. A processor that has
// nothing else to do wakes once for all of them: an idle site, which has dozens of loops,
// costs what its wake-ups cost.
package beat

import "time"

var began = time.Now()

// Until is how long it is to the next beat of a period: a whole number of periods after
// the process began, by the clock that is never set. The wait is more than 0 and at most
// every; every must be more than 0.
func Until(every time.Duration) time.Duration {
	gone := time.Since(began) % every
	if gone < 0 { // the clock of a test in virtual time began before the process
		gone += every
	}
	return every - gone
}
