package quota

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

const second = messages.Time(1_000_000)

// The answers in the table were computed by hand, for two submissions a second and a burst of three.
func TestBucket(t *testing.T) {
	r := Rules{PerSecond: 2, Burst: 3}
	var b Buckets
	for i, c := range []struct {
		at    messages.Time
		ok    bool
		again messages.Time
	}{
		{10 * second, true, 0}, {10 * second, true, 0}, {10 * second, true, 0},
		{10 * second, false, 10*second + second/2},
		{10*second + second/2 - 1, false, 10*second + second/2},
		{10*second + second/2, true, 0},
		{10*second + second/2, false, 11 * second},
		{9 * second, false, 11 * second}, // setting the clock back must not add tokens
		{100 * second, true, 0}, {100 * second, true, 0}, {100 * second, true, 0}, {100 * second, false, 100*second + second/2},
	} {
		if ok, again := b.Take(&r, c.at, "alice"); ok != c.ok || again != c.again {
			t.Errorf("request %d at %d: %v, again at %d; want %v, %d", i, c.at, ok, again, c.ok, c.again)
		}
	}
	if ok, _ := b.Take(&r, 10*second, "bob"); !ok {
		t.Error("the bucket of another is empty too")
	}
	if ok, _ := b.Take(&Rules{}, 0, "alice"); !ok {
		t.Error("without a rule there is a limit")
	}
}

// slow is a token bucket in its usual form: it has a counter of tokens. The bucket under test stores a time instead.
type slow struct {
	tokens, rate, burst float64
	last                messages.Time
}

func (s *slow) take(now messages.Time) bool {
	s.tokens = math.Min(s.burst, s.tokens+float64(now-s.last)*s.rate/1e6)
	s.last = now
	if s.tokens < 1-1e-9 {
		return false
	}
	s.tokens--
	return true
}

// The test sends random requests to the bucket, and to a simple model of a bucket (type slow). A refusal must return
// the first time at which a request is accepted. In any period, the number of accepted requests may be at most the
// burst plus what the rate allows.
func TestBucketAgainstDripping(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := Rules{PerSecond: rapid.SampledFrom([]float64{0.5, 1, 2, 4, 10, 1000}).Draw(rt, "rate"), Burst: rapid.IntRange(1, 6).Draw(rt, "burst")}
		var b Buckets
		s := slow{tokens: float64(r.Burst), rate: r.PerSecond, burst: float64(r.Burst)}
		now := messages.Time(0)
		var admitted []messages.Time
		for range rapid.IntRange(1, 60).Draw(rt, "requests") {
			now += messages.Time(rapid.IntRange(0, 2_000_000).Draw(rt, "pause"))
			ok, again := b.Take(&r, now, "alice")
			if want := s.take(now); ok != want {
				rt.Fatalf("at %d: %v, the slow one says %v", now, ok, want)
			}
			if ok {
				admitted = append(admitted, now)
				continue
			}
			early, late := b.copy(), b.copy()
			if ok, _ := early.Take(&r, again-1, "alice"); ok && again-1 > now {
				rt.Fatalf("a moment before %d is good already", again)
			}
			if ok, _ := late.Take(&r, again, "alice"); !ok {
				rt.Fatalf("%d is not good", again)
			}
		}
		for i := range admitted {
			for j := i; j < len(admitted); j++ {
				if most := float64(r.Burst) + float64(admitted[j]-admitted[i])*r.PerSecond/1e6 + 1e-6; float64(j-i+1) > most {
					rt.Fatalf("%d admitted from %d to %d", j-i+1, admitted[i], admitted[j])
				}
			}
		}
	})
}

func (b *Buckets) copy() *Buckets {
	c := &Buckets{full: map[messages.Name]messages.Time{}, next: b.next}
	maps.Copy(c.full, b.full)
	return c
}

func TestBucketsAreForgotten(t *testing.T) {
	r := Rules{PerSecond: 1}
	var b Buckets
	for i := range 100_000 {
		b.Take(&r, messages.Time(i)*second/10, fmt.Sprint("a", i))
	}
	if len(b.full) > 2*sweepFrom {
		t.Errorf("%d accounts are remembered, of whom only ten asked within the last second", len(b.full))
	}
}

func TestValidate(t *testing.T) {
	for want, r := range map[string]Rules{
		"submissions_per_second: -1": {PerSecond: -1}, "submissions_per_second: NaN": {PerSecond: math.NaN()}, "submissions_per_second: 1e-09": {PerSecond: 1e-9},
		"burst: -1": {PerSecond: 1, Burst: -1}, "burst: has no use": {Burst: 1}, "pending_jobs: -1": {PendingJobs: -1},
		"deposit: -0.000001": {Deposit: -1}, "deposit_window: -1ns": {DepositWindow: -1},
	} {
		if err := r.Validate(); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	for _, r := range []Rules{{}, {PerSecond: 5, Burst: 50, PendingJobs: 100, Deposit: messages.Credit, DepositWindow: 1}} {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
