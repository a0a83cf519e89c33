package bus

import (
	"testing"
	"time"
)

// TestAttemptsFollowAnswerTimes: an attempt waits for so long as answers take, within
// bounds; the answers of one verb say nothing about another.
func TestAttemptsFollowAnswerTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		took []time.Duration
		want time.Duration
	}{
		{nil, time.Second},
		{[]time.Duration{5 * ms}, 500 * ms},
		{[]time.Duration{300 * ms}, 900 * ms},
		{[]time.Duration{300 * ms, 300 * ms}, 750 * ms},
		{[]time.Duration{300 * ms, 700 * ms}, 1200 * ms},
		{[]time.Duration{5 * time.Second}, 2 * time.Second},
	} {
		a := &answers{}
		for _, took := range c.took {
			a.note("candor.west.bank.pay.alice", took)
		}
		if got := a.attempt("candor.west.bank.pay.bob"); got != c.want {
			t.Errorf("after answers of %v an attempt waits for %v, want %v", c.took, got, c.want)
		}
		if got := a.attempt("candor.west.bank.balance.alice"); got != firstAttempt {
			t.Errorf("another verb waits for %v", got)
		}
	}
}
