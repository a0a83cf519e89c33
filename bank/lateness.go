package bank

import (
	"sync"

	"github.com/candor-grid/candor/messages"
)

// If the clock jumps ahead by lateBy or more, holds do not lapse until auctioneers can extend them again.
const lateBy = messages.Duration(5 * 60e9)

// A hold lapses if it is not extended before its end. After a time in which no auctioneer could extend holds, these
// holds must not lapse at once. For this, lateness gives commands an earlier time than the clock: a time just before
// the first of these holds ends. It gives commands the time of the clock again when the holds have been extended, or
// when Config.Late has passed.
type lateness struct {
	config *Config // config.Clock gives the time of the books

	mu     sync.Mutex
	latest messages.Time     // the latest time that the method now returned while this replica led
	until  messages.Duration // end of the lateness, on the monotonic clock; 0 if the bank is not late
}

// now returns the time that a command gets if it is proposed now. The result `late` says whether this time is earlier
// than the clock. The argument `reached` is the time of the last command in the books. The argument `due` is when
// something in the books expires next, or 0 for never.
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
