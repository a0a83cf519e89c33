package bank

import (
	"sync"

	"github.com/candor-grid/candor/messages"
)

// lateBy is the smallest jump of time that makes the bank late.
const lateBy = messages.Duration(5 * 60e9)

// lateness prevents holds from lapsing because of a time in which nobody could extend them: the
// site did not run, or clocks were set. Commands then get a time just before the first hold is
// due, until holds are extended or Config.Late has passed.
type lateness struct {
	config *Config // its Clock gives the time of the books

	mu     sync.Mutex
	latest messages.Time     // the latest time returned while this replica led
	until  messages.Duration // when the lateness ends, by Mono; 0: the bank is not late
}

// now returns the time of a command that is proposed now. reached is the time of the books. due
// is when something in them next expires, 0 if nothing will. late reports that the time is held
// back.
func (l *lateness) now(reached, due messages.Time) (at messages.Time, late bool) {
	now := l.config.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if reached = max(reached, l.latest); l.until == 0 && reached != 0 && now.Sub(reached) > lateBy {
		l.until = l.config.Mono() + l.config.Late
	}
	if l.until != 0 && due != 0 && due <= now && l.config.Mono() < l.until {
		return max(reached, due-1), true
	}
	l.latest, l.until = now, 0
	return now, false
}
