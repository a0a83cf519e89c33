package bank

import (
	"sync"

	"github.com/candor-grid/candor/messages"
)

// lateBy is the least step of time that makes the bank late.
const lateBy = messages.Duration(5 * 60e9)

// lateness keeps holds from lapsing by a time in which nobody could extend them: the site did
// not run, or clocks were set. The next commands are made at a time just before the first hold
// is due, until holds are extended or Config.Late has passed.
type lateness struct {
	config *Config // its Clock is the time of the books

	mu     sync.Mutex
	latest messages.Time     // that was told, when this replica led
	until  messages.Duration // the end of the lateness by Mono; 0: the bank is not late
}

// now is the time of a command that is proposed now. reached is the time of the books, and due
// when something in them expires next, 0 if nothing will. late says that the time is held back.
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
