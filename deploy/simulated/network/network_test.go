package network

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/messages"
)

const ms = messages.Duration(1e6)

func TestMessagesFareAsConfigured(t *testing.T) {
	n, err := New(Config{Delay: ms, Jitter: 2 * ms, Loss: 0.1, Repeat: 0.2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	copies, overtaken, last := 0, 0, messages.Time(0)
	const all = 50_000
	for range all {
		n.Send(0, "a", "b", func(at messages.Time) {
			if copies++; at < last {
				overtaken++
			}
			if last = at; at < 1000 || at > 3000 {
				t.Fatalf("arrives at %d µs", int64(at))
			}
		})
	}
	if math.Abs(float64(n.Lost)/all-0.1) > 0.01 || math.Abs(float64(copies)/all-0.9*1.2) > 0.01 || overtaken < all/4 || n.Sent != all {
		t.Errorf("%d lost, %d copies, %d overtaken of %d", n.Lost, copies, overtaken, n.Sent)
	}
	if n.Reliable() || n.Slowest() != 3*ms {
		t.Error("said to be reliable, or faster than it is")
	}
}

func TestTheSameSeedDoesTheSame(t *testing.T) {
	var runs [2][]messages.Time
	for k := range runs {
		n, err := New(Config{Jitter: 9 * ms, Loss: 0.3}, 7)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			n.Send(5, "a", "b", func(at messages.Time) { runs[k] = append(runs[k], at) })
		}
	}
	if len(runs[0]) != len(runs[1]) {
		t.Fatal("other losses")
	}
	for i := range runs[0] {
		if runs[0][i] != runs[1][i] {
			t.Fatal("other times")
		}
	}
}

func TestCutsSeparate(t *testing.T) {
	n, err := New(Config{Cuts: []Cut{{From: 10, Until: 20, Actors: []string{"a", "b"}}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at       messages.Time
		from, to string
		arrives  bool
	}{{9, "a", "c", true}, {10, "a", "c", false}, {10, "c", "a", false}, {10, "a", "b", true}, {10, "c", "d", true}, {20, "a", "c", true}} {
		arrived := false
		n.Send(c.at, c.from, c.to, func(messages.Time) { arrived = true })
		if arrived != c.arrives {
			t.Errorf("%+v: arrived %v", c, arrived)
		}
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	for _, c := range []Config{{Delay: -1}, {Jitter: -1}, {Loss: 1}, {Loss: math.NaN()}, {Repeat: 2}, {Cuts: []Cut{{From: 3, Until: 2}}}} {
		if _, err := New(c, 1); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
