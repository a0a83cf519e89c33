package beat

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Several waits with the same period start at different times. They must end only at beats, which are the same moments
// for all waits.
func TestBeats(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		every := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(r, "every"))
		waits := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Hour)), 1, 20).Draw(r, "waits")
		synctest.Test(t, func(*testing.T) {
			time.Sleep(Until(every))
			first := time.Now()
			for _, wait := range waits {
				time.Sleep(time.Duration(wait))
				left := Until(every)
				if left <= 0 || left > every {
					r.Fatalf("the next beat is in %v, of a period of %v", left, every)
				}
				time.Sleep(left)
				if late := time.Since(first) % every; late != 0 {
					r.Fatalf("woke %v after a beat", late)
				}
			}
		})
	})
}
