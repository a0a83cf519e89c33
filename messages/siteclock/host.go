package siteclock

import (
	"maps"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Settings of [Host].
const (
	// Bound is how far clocks that agree are apart at most.
	Bound = messages.Duration(500e6)
	// Patience is how long a new time lasts before a host believes it that no majority
	// of others confirms.
	Patience = messages.Duration(60e9)
	// ReadEvery is how often hosts tell one another their clocks.
	ReadEvery = messages.Duration(1e9)
	// freshFor is how long the reading of another host counts.
	freshFor = 5 * ReadEvery
)

// Host is the time of a site as one of its hosts tells it. An offset is what a wall
// clock shows more than this host's monotonic clock. It is safe for concurrent use.
type Host struct {
	hosts int // of the site
	wall  func() messages.Time
	mono  func() messages.Duration

	mu       sync.Mutex
	began    bool
	compared bool              // with a majority of the hosts
	first    messages.Duration // when the clock was read first
	offset   messages.Duration // that is believed
	doubtful messages.Duration // another one, that is not believed yet
	since    messages.Duration // when doubtful was seen first; 0: there is none
	heard    map[messages.Name]reading
}

type reading struct {
	offset messages.Duration
	at     messages.Duration // by this host's monotonic clock
}

// NewHost makes the clock of one of a site's hosts from its wall clock, which may be
// set, and its monotonic clock, which begins above 0.
func NewHost(hosts int, wall func() messages.Time, mono func() messages.Duration) *Host {
	return &Host{hosts: hosts, wall: wall, mono: mono, heard: map[messages.Name]reading{}}
}

// Resume has the host go on from the [Host.Offset] of an earlier one of the same machine, by the same
// monotonic clock: a clock that was set meanwhile was set while the host ran. It is called before
// anything else.
func (h *Host) Resume(offset messages.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.compared, h.first, h.offset = true, true, h.mono(), offset
}

// Offset is what the time is more than the monotonic clock, and whether that is [Host.Known].
func (h *Host) Offset() (offset messages.Duration, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.read()
	return h.offset, h.compared || now-h.first >= Patience
}

// Wall is what the host's own clock shows.
func (h *Host) Wall() messages.Time { return h.wall() }

// Hear takes what the wall clock of another host shows now.
func (h *Host) Hear(host messages.Name, wall messages.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mono()
	maps.DeleteFunc(h.heard, func(_ messages.Name, r reading) bool { return now-r.at > freshFor })
	h.heard[host] = reading{wall.Sub(0) - now, now}
}

// Now is the time.
func (h *Host) Now() messages.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.read()
	return messages.Time(0).Add(now + h.offset)
}

// Known reports whether the time was compared with a majority of the hosts since the start,
// or nobody answered for [Patience]. Until then it is what this host's own clock shows.
func (h *Host) Known() bool {
	_, known := h.Offset()
	return known
}

// Ahead is how far the host's own clock is ahead of the time; below 0: behind it.
func (h *Host) Ahead() messages.Duration {
	now := h.Now()
	return h.wall().Sub(now)
}

// read looks at both clocks, and returns the monotonic one.
func (h *Host) read() (now messages.Duration) {
	now = h.mono()
	h.believe(h.wall().Sub(0)-now, now)
	return now
}

// believe brings the offset up to date. A host that does not hear a majority of the
// others leaves the offset as it is.
func (h *Host) believe(own, now messages.Duration) {
	median, heard, sure := h.median(own, now)
	apart := max(median-h.offset, h.offset-median)
	switch {
	case !h.began:
		h.began, h.offset, h.compared, h.first = true, median, 2*heard > h.hosts, now
	case 2*heard <= h.hosts:
		if apart <= Bound {
			h.offset = median
		}
	case !h.compared, sure, apart <= Bound:
		h.compared, h.offset, h.since = true, median, 0
	case h.since == 0 || max(median-h.doubtful, h.doubtful-median) > Bound:
		h.doubtful, h.since = median, now
	case now-h.since >= Patience:
		h.offset, h.since = median, 0
	}
}

// median is the median of the offsets of this host and of those heard lately, this
// host's own if that agrees with it; how many these are; and whether a majority of all
// hosts, and more than one, agrees. Readings of others are late by what they took to come.
func (h *Host) median(own, now messages.Duration) (median messages.Duration, heard int, sure bool) {
	all := []messages.Duration{own}
	for _, r := range h.heard {
		if now-r.at <= freshFor {
			all = append(all, r.offset)
		}
	}
	slices.Sort(all)
	median = all[(len(all)-1)/2]
	agree := 0
	for _, o := range all {
		if max(o-median, median-o) <= Bound {
			agree++
		}
	}
	if max(own-median, median-own) <= Bound {
		median = own
	}
	return median, len(all), agree > 1 && 2*agree > h.hosts
}
