// Package backoff says how long to wait before a failed request is tried again: a
// time that doubles with every failure, up to a bound, and that chance makes longer
// or shorter, so that those who failed together do not come back together. The
// package has no clock and no source of chance: the caller counts the failures,
// draws the random number, and waits.
package backoff

import "time"

// Backoff is the wait after the first failure, and the longest wait, before chance.
type Backoff struct{ First, Last time.Duration }

// Bound is the wait after a number of failures in a row, before chance: First,
// doubled by each failure but the first, and at most Last.
func (b Backoff) Bound(failures int) time.Duration {
	d := b.First
	for ; failures > 1 && d < b.Last; failures-- {
		d *= 2
	}
	return min(d, b.Last)
}

// Wait is the bound after a number of failures in a row, spread by chance.
func (b Backoff) Wait(failures int, random float64) time.Duration {
	return Spread(b.Bound(failures), random)
}

// Spread makes a wait half as long up to half as long again, by a random number from
// 0 up to 1.
func Spread(wait time.Duration, random float64) time.Duration {
	return time.Duration(float64(wait) * (0.5 + random))
}
