package siteclock

import (
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// The site's time may be ahead of the clock. Then the time passes at 1 − 1/`slower` (15/16) of the clock's speed, until
// the clock has caught up.
const slower = 16

// leastLeap is the smallest sudden change of a clock that counts as a leap. It is larger than the small differences
// between the clocks of hosts.
const leastLeap = 2 * Bound

// Steady is the time of one replicated state. It is safe for concurrent use.
type Steady struct {
	clock func() messages.Time
	known func() bool
	mono  func() messages.Duration

	mu      sync.Mutex
	reached messages.Time     // latest committed time
	at      messages.Duration // when `reached` was committed, by the monotonic clock
	// The field `even` is the site's time at the moment from which a leap of the clock is measured. The field `evenAt`
	// is the monotonic clock at the same moment. If `even` is 0, no leap can be measured.
	even    messages.Time
	evenAt  messages.Duration
	carried bool // `even` was set by a leader that did not know the time
}

// NewSteady returns a clock for the replicated state of a group. `clock` gives the wall clock, which may go back.
// `known` reports whether the wall clock is right; if it is nil, the wall clock is always right. `mono` gives a
// monotonic clock; if it is nil, the clock of the process is used.
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

// Ready reports whether commands can have a time. They can if an earlier command with a time was committed, or if the
// clock is known to be right. A leader of a new state waits for this: its clock may be an hour ahead, and the time of a
// state never goes back.
func (s *Steady) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached != 0 || s.known()
}

// Now returns the time for a command that is proposed now. While the clock may be wrong, the time continues from the
// latest commit.
func (s *Steady) Now() messages.Time {
	now, _, _ := s.Stamp()
	return now
}

// Stamp returns Now. The result `leap` says how far somebody set the clock ahead since the latest commit: 0, or more
// than [leastLeap]. The result `carried` is true if the time does not come from the clock, but continues from the time
// of the latest commit. There are two reasons for this: it is not known that the clock is right, or the clock is behind
// by more than [leastLeap].
func (s *Steady) Stamp() (now messages.Time, leap messages.Duration, carried bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mono := s.mono()
	now, known := s.now(mono)
	if carried = s.reached != 0 && (!known || now.Sub(s.clock()) > leastLeap); !carried {
		leap = s.leap(now, mono)
	}
	return now, leap, carried
}

// Reached says that commands were applied, and that t is the latest time in them. The argument `leapt` is true if one
// of the commands reports that a clock was set ahead. The argument `carried` is true if the proposer of the last
// command did not know the time, so that the command continues an earlier time.
func (s *Steady) Reached(t messages.Time, leapt, carried bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mono := s.mono()
	if t > s.least(mono) {
		s.reached, s.at = t, mono
	}
	now, known := s.now(mono)
	leap := s.leap(now, mono)
	switch {
	case carried: // from here a leader that knows the time may leap
		s.even, s.evenAt, s.carried = t, mono, true
	case !known && s.carried: // an earlier leader committed this time
		s.even, s.carried = 0, false
	case !known:
	case leap > 0 && !leapt && !s.carried && t < s.even.Add(mono-s.evenAt+leap/2): // the leader does not know of the leap yet
	default:
		s.even, s.evenAt, s.carried = now, mono, false
	}
}

func (s *Steady) now(mono messages.Duration) (now messages.Time, known bool) {
	least := s.least(mono)
	if known = s.known(); s.reached != 0 && !known {
		return least, false
	}
	return max(s.clock(), least), known
}

func (s *Steady) leap(now messages.Time, mono messages.Duration) messages.Duration {
	if s.even == 0 {
		return 0
	}
	if by := now.Sub(s.even.Add(mono - s.evenAt)); by > leastLeap {
		return by
	}
	return 0
}

// least returns the smallest time that a command may get at `now`: the time of the latest commit, plus the time that
// has passed since the commit. The passed time is reduced by 1/`slower` of its length, so that the clock can catch up
// if it is behind.
func (s *Steady) least(now messages.Duration) messages.Time {
	passed := max(0, now-s.at)
	return s.reached.Add(passed - passed/slower)
}

// Ahead returns how far the steady time is ahead of the clock.
func (s *Steady) Ahead() messages.Duration { return max(0, s.Now().Sub(s.clock())) }
