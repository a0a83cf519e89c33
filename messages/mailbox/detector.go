package mailbox

import (
	"sync"
	"time"
)

// A replica learns in two ways that its leader has failed. A process that dies closes its
// connections, and its port refuses new ones: that is certain, and takes milliseconds. A
// host that is cut off or stands still falls silent: how long a silence may last follows
// from the silences that the leader left lately, which include the round trips.

// allowedSilence is how long a leader may be silent that left silences of at most longest
// lately. Heartbeats come at least every fifth of the timeout; a silence of the timeout
// is never allowed.
func allowedSilence(longest, timeout time.Duration) time.Duration {
	return min(max(2*longest, timeout*2/5), timeout)
}

// fadeFor is how long a long silence has weight: so a host that is slow now and then keeps
// its lead.
const fadeFor = time.Minute

// longestSilence is the longest of the silences lately, after one more.
func longestSilence(longest, silence time.Duration) time.Duration {
	return max(silence, longest-time.Duration(float64(longest)*min(1, silence.Seconds()/fadeFor.Seconds())))
}

// starved says whether a replica that was to be woken at a moment was woken so late that
// it may not have read what its leader sent meanwhile.
func starved(late, timeout time.Duration) bool { return late > timeout/20 }

// detector is the failure detector of one replica.
type detector struct {
	id      string
	timeout time.Duration
	failing chan struct{} // signalled, without waiting, when the leader's process has ended

	mu      sync.Mutex
	leader  word // of the leader that the replica follows
	before  word // of the leader before
	longest time.Duration
	ended   bool // the leader's process has
	lets    promised
}

// word is the last word of a leader in its term.
type word struct {
	leader string // "": nobody
	term   uint64
	at     time.Time
}

// promised is whom a replica lets campaign, itself or another, and until when.
type promised struct {
	id    string
	until time.Time
}

func newDetector(c *Config) *detector {
	return &detector{id: c.ID, timeout: c.Timeout, failing: make(chan struct{}, 1)}
}

// hear notes a word of a leader, which may be this replica. A late word of the leader before shows that the group was
// too impatient.
func (d *detector) hear(leader string, term uint64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case term > d.leader.term:
		d.before, d.leader = d.leader, word{leader, term, now}
		d.ended, d.lets = false, promised{}
	case term == d.leader.term:
		d.longest = min(longestSilence(d.longest, now.Sub(d.leader.at)), d.timeout)
		d.leader.at, d.ended = now, false
	case term == d.before.term:
		d.longest = min(longestSilence(d.longest, now.Sub(d.before.at)), d.timeout)
		d.before.at = now
	}
}

// forgive lets the leader be silent a little longer, because this replica was starved.
func (d *detector) forgive(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leader.at = maxTime(d.leader.at, now.Add(-allowedSilence(d.longest, d.timeout)/2))
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// remains is how long the leader may still be silent; 0: it has failed, as far as this
// replica can tell. A replica that has heard no leader waits for one.
func (d *detector) remains(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.leader.leader == "" || d.leader.leader == d.id:
		return d.timeout
	case d.ended:
		return 0
	}
	return max(0, allowedSilence(d.longest, d.timeout)-now.Sub(d.leader.at))
}

// follows is the last word of the leader that this replica follows.
func (d *detector) follows() word {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leader
}

// end notes that the process of a leader has ended, unless the leader was heard since.
func (d *detector) end(last word) {
	d.mu.Lock()
	d.ended = d.ended || d.leader == last
	d.mu.Unlock()
	select {
	case d.failing <- struct{}{}:
	default:
	}
}

// let decides whether a replica may campaign, this one or another; better says that it
// goes before this one. Whoever may is alone for a while, so that votes are not split.
func (d *detector) let(id string, better bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	bound := d.lets.id != "" && d.lets.id != id && now.Before(d.lets.until)
	if bound && (d.lets.id != d.id || !better) {
		return false
	}
	d.lets = promised{id, now.Add(d.timeout * 3 / 10)}
	return true
}
