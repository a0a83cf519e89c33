package backoff_test

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/messages/backoff"
)

func TestBound(t *testing.T) {
	b := backoff.Backoff{First: 50 * time.Millisecond, Last: 300 * time.Millisecond}
	for failures, want := range []time.Duration{50, 50, 100, 200, 300, 300} {
		if got := b.Bound(failures); got != want*time.Millisecond {
			t.Errorf("after %d failures: %v, not %v ms", failures, got, int64(want))
		}
	}
	if got := b.Bound(1 << 40); got != b.Last {
		t.Errorf("after many failures: %v, not %v", got, b.Last)
	}
	if got := (backoff.Backoff{First: time.Second, Last: time.Millisecond}).Bound(1); got != time.Millisecond {
		t.Errorf("a first wait above the last is %v, not the last", got)
	}
}

func TestWaitIsSpread(t *testing.T) {
	b := backoff.Backoff{First: time.Second, Last: time.Minute}
	for random, want := range map[float64]time.Duration{0: time.Second, 0.5: 2 * time.Second, 0.75: 2500 * time.Millisecond} {
		if got := b.Wait(2, random); got != want {
			t.Errorf("with chance %v: %v, not %v", random, got, want)
		}
	}
}
