// Package backoff computes how long to wait before a failed request is tried again. The wait doubles with every
// failure, up to a bound. It is random, so that requests that failed together are not repeated together. The package is
// pure: the caller counts the failures, draws the number, and waits.
package backoff

import "time"

// Backoff has two waits: First after the first failure, and Last, the longest wait. A real wait is multiplied by a
// random factor; see [Backoff.Wait].
type Backoff struct{ First, Last time.Duration }

// Bound returns the wait after a number of failures in a row, without the random factor. After the first failure the
// wait is First. Each further failure doubles the wait, up to Last.
func (b Backoff) Bound(failures int) time.Duration {
	d := b.First
	for ; failures > 1 && d < b.Last; failures-- {
		d *= 2
	}
	return min(d, b.Last)
}

// Wait returns the pause after a number of failures: the result of Bound, multiplied by a random factor (see Spread).
// The argument `random` must be from 0 to 1.
func (b Backoff) Wait(failures int, random float64) time.Duration {
	return Spread(b.Bound(failures), random)
}

// Spread multiplies a wait by a factor from 0.5 to 1.5. The argument `random`, from 0 up to 1, determines the factor.
func Spread(wait time.Duration, random float64) time.Duration {
	return time.Duration(float64(wait) * (0.5 + random))
}
