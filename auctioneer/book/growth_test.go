package book

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"
)

// The book serves at most so many of everything that a command must not cost more among more of
// them. These tests compare a command among n things with the same command among 10 n.

// measured makes a book with n things, and returns what is to be measured and how often that does
// the same.
type measured func(t *testing.T, n int) (run func(), times int)

// growth is how many times as much a run costs among ten times as many things, each time at the
// least of some measurements. A busy machine can only make it larger, so it is measured again.
func growth(t *testing.T, n int, of measured) (times float64) {
	cost := func(n int) float64 {
		least := math.Inf(1)
		for range 3 {
			run, times := of(t, n)
			runtime.GC()
			began := time.Now()
			run()
			least = min(least, time.Since(began).Seconds()/float64(times))
		}
		return least
	}
	times = math.Inf(1)
	for range 4 {
		if times = min(times, cost(10*n)/cost(n)); times < 2 {
			break
		}
	}
	return times
}

// TestCommandsCostNoMoreAmongMore holds each kind of command that once looked through a list to
// that: it costs at most twice as much among ten times as many things.
func TestCommandsCostNoMoreAmongMore(t *testing.T) {
	for name, of := range map[string]measured{
		"tasks that were given back are cancelled": func(t *testing.T, n int) (func(), int) {
			s := newSite(t)
			s.register("n", 1, n)
			id := s.submit("k", mapStage(n))
			s.claim("n", 1, 1, n, id)
			s.apply(Command{Lost: &Lost{Node: "n", Session: 1}})
			return func() {
				if done := s.cancelTasks(id, fmt.Sprintf("0-%d", n-1)); done != n {
					t.Fatalf("cancelled %v of %d tasks", done, n)
				}
			}, n
		},
	} {
		t.Run(name, func(t *testing.T) {
			if times := growth(t, 2_000, of); times >= 2 {
				t.Errorf("among ten times as many it costs %.1f times as much", times)
			}
		})
	}
}
