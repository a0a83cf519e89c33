package siteclock

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// slower is the part of its pace that the time loses while it is ahead of the clock.
const slower = 16

// Steady is the time of one replicated state. It is safe for concurrent use.
type Steady struct {
	clock func() messages.Time
	known func() bool
	mono  func() messages.Duration

	mu      sync.Mutex
	reached messages.Time     // the latest that was committed
	at      messages.Duration // when, by the monotonic clock
}

// NewSteady makes the time of a state from a clock, which may go back and says whether it is
// known to be right (nil: it is), and a monotonic clock (nil: the process's).
func NewSteady(clock func() messages.Time, known func() bool, mono func() messages.Duration) *Steady {
	if known == nil {
		known = func() bool { return true }
	}
	if mono == nil {
		began := time.Now()
		mono = func() messages.Duration { return messages.Duration(time.Since(began)) }
	}
	return &Steady{clock: clock, known: known, mono: mono}
}

// Now is the time of a command that is proposed now. A clock that is not known to be right
// does not carry on the time of a state: it goes on from the latest commit.
func (s *Steady) Now() messages.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := s.least(s.mono())
	if s.reached != 0 && !s.known() {
		return least
	}
	return max(s.clock(), least)
}

// Reached takes the latest time of the commands that were applied.
func (s *Steady) Reached(t messages.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.mono(); t > s.least(now) {
		s.reached, s.at = t, now
	}
}

// least is what has passed at least since the latest commit.
func (s *Steady) least(now messages.Duration) messages.Time {
	passed := max(0, now-s.at)
	return s.reached.Add(passed - passed/slower)
}

// Ahead is how far the time is ahead of the clock.
func (s *Steady) Ahead() messages.Duration { return max(0, s.Now().Sub(s.clock())) }
