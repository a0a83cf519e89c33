//go:build !linux

package boottime

import (
	"sync"
	"time"
)

// Now is the time since this process was started.
func Now() time.Duration { return sinceStart() }

// Timer calls a function when a time is over.
type Timer struct {
	ended func()
	mu    sync.Mutex
	timer *time.Timer
}

// NewTimer makes a timer that is not set.
func NewTimer(ended func()) *Timer { return &Timer{ended: ended} }

// Reset sets the timer, instead of what it was set to.
func (t *Timer) Reset(d time.Duration) {
	t.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(d, t.ended)
}

// Stop lets the timer not go off.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Close stops the timer for good.
func (t *Timer) Close() { t.Stop() }
