package cell

import (
	"errors"
	"sync"
	"time"
)

// late has the control groups that could not be removed after their task had ended. A group cannot be removed while a
// process in it waits, for example for a device. The removal is repeated, with longer and longer pauses.
type late struct {
	sweeping sync.Mutex // locked while groups are removed; always locked before mu

	mu     sync.Mutex
	groups []group
	timer  *time.Timer // nil while there are none
	wait   time.Duration
	closed bool
}

// Groups that could not be removed are tried again. firstRetry is the first pause between two tries, and lastRetry is
// the longest. mostLate is the largest number of groups that this process tries again. Further groups are removed by
// the next process that uses the same directory.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	mostLate   = 1024
)

func (p *pool) remove(cell *Cell) {
	if cell.close() != nil {
		p.late.add(cell.group)
	}
}

func (l *late) add(groups ...group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := max(0, mostLate-len(l.groups)) // a try that was running may have put groups back
	l.groups = append(l.groups, groups[:min(len(groups), room)]...)
	l.wait = firstRetry
	l.again()
}

// The method `again` sets the timer for the next retry, if there are groups to retry. The caller holds l.mu.
func (l *late) again() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.timer = nil; len(l.groups) > 0 && !l.closed {
		l.timer = time.AfterFunc(l.wait, func() { _ = l.retry(false) })
	}
}

// retry tries again to remove the control groups that could not be removed. If `last` is true, no further try follows.
func (l *late) retry(last bool) error {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	l.mu.Lock()
	groups := l.groups
	l.groups, l.closed = nil, l.closed || last
	l.mu.Unlock()
	left, err := sweep(groups)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups = append(left, l.groups...)
	l.wait = min(2*l.wait, lastRetry)
	l.again()
	return err
}

// sweep tries to remove each group once, and returns the groups that are left.
func sweep(groups []group) (left []group, err error) {
	for _, g := range groups {
		failed := g.remove()
		if failed != nil && g.kill() == nil { // processes that have not ended may have forked
			failed = g.remove()
		}
		if failed != nil {
			left, err = append(left, g), errors.Join(err, failed)
		}
	}
	return left, err
}
