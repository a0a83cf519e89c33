// Package backoff says how long to wait before a failed request is tried again. The time
// doubles with every failure, up to a bound, and is randomly longer or shorter, so that
// requests which failed together do not come back together. The package has no clock and no
// random numbers: the caller counts the failures, draws the number, and waits.
package backoff

import "time"

// Backoff has the wait after the first failure and the longest wait, both before randomness.
type Backoff struct{ First, Last time.Duration }

// Bound returns the wait after a number of failures in a row, before randomness: First, doubled
// by each failure after the first, at most Last.
func (b Backoff) Bound(failures int) time.Duration {
	d := b.First
	for ; failures > 1 && d < b.Last; failures-- {
		d *= 2
	}
	return min(d, b.Last)
}

// Wait returns Bound, spread by a random number from 0 up to 1.
func (b Backoff) Wait(failures int, random float64) time.Duration {
	return Spread(b.Bound(failures), random)
}

// Spread returns from half of a wait up to one and a half times it, by a random number from 0
// up to 1.
func Spread(wait time.Duration, random float64) time.Duration {
	return time.Duration(float64(wait) * (0.5 + random))
}
