package siteclock

import (
	"maps"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// These are the settings of [Host].
const (
	// Bound is the largest difference between two clocks that still agree.
	Bound = messages.Duration(500e6)
	// A host that cannot ask a majority of the hosts for the time has only its own clock. If this clock was set, the
	// host uses the new time only after the clock has shown it for the duration Patience.
	Patience = messages.Duration(60e9)
	// ReadEvery is the time between two readings that a host sends to the other hosts.
	ReadEvery = messages.Duration(1e9)
	// freshFor is how long a host uses a clock reading that another host has sent.
	freshFor = 5 * ReadEvery
)

// Host is the time of a site according to one of its hosts. Its methods may be called concurrently. An offset is the
// difference between a wall clock and this host's monotonic clock.
type Host struct {
	hosts int // number of hosts of the site
	wall  func() messages.Time
	mono  func() messages.Duration

	mu       sync.Mutex
	began    bool
	compared bool              // the host's clock was compared with the clocks of a majority of the hosts
	first    messages.Duration // monotonic time of the first reading
	offset   messages.Duration // the offset that the host uses
	doubtful messages.Duration // a different offset, which the host does not use yet
	since    messages.Duration // monotonic time when doubtful was first seen; 0 if there is none
	heard    map[messages.Name]reading
}

type reading struct {
	offset messages.Duration
	at     messages.Duration // time of the reading, by this host's monotonic clock
}

// NewHost returns the time of a host. The function `wall` reads its wall clock, which somebody may set. The function
// `mono` reads its monotonic clock, which begins above 0.
func NewHost(hosts int, wall func() messages.Time, mono func() messages.Duration) *Host {
	return &Host{hosts: hosts, wall: wall, mono: mono, heard: map[messages.Name]reading{}}
}

// Resume continues the clock of an earlier process on the same machine. The offset is the [Host.Offset] of that
// process, and both processes must read the same monotonic clock. If the wall clock was set between the two processes,
// this counts as if it had been set while the Host ran. Resume must be called before all other methods.
func (h *Host) Resume(offset messages.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.compared, h.first, h.offset = true, true, h.mono(), offset
}

// Offset returns the time minus the monotonic clock, and whether the time is known; see [Host.Known].
func (h *Host) Offset() (offset messages.Duration, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.read()
	return h.offset, h.compared || now-h.first >= Patience
}

// Wall returns the time of the host's wall clock.
func (h *Host) Wall() messages.Time { return h.wall() }

// Hear takes a reading of another host's wall clock. It assumes that the reading was sent just now.
func (h *Host) Hear(host messages.Name, wall messages.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mono()
	maps.DeleteFunc(h.heard, func(_ messages.Name, r reading) bool { return now-r.at > freshFor })
	h.heard[host] = reading{wall.Sub(0) - now, now}
}

// Now returns the time of the site.
func (h *Host) Now() messages.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.read()
	return messages.Time(0).Add(now + h.offset)
}

// Known reports whether the host knows the time. The host knows the time when it has compared its clock with a majority
// of clocks since its start, or when nobody has answered for [Patience]. Before that, its time is its own wall clock.
func (h *Host) Known() bool {
	_, known := h.Offset()
	return known
}

// Ahead returns the host's wall clock minus the time. A negative result means that the clock is behind.
func (h *Host) Ahead() messages.Duration {
	now := h.Now()
	return h.wall().Sub(now)
}

// read reads the wall clock and the monotonic clock, and returns the time of the monotonic clock.
func (h *Host) read() (now messages.Duration) {
	now = h.mono()
	h.believe(h.wall().Sub(0)-now, now)
	return now
}

// believe updates this host's offset from the clocks of other hosts that it has heard. Its first call may change the
// offset by any amount. A later call changes it by at most Bound, if at most half of the hosts were heard.
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

// median computes the median of the clock offsets of this host and of the hosts from which it has heard lately. If this
// host's own offset is near the median, it returns this offset instead. `heard` is the number of offsets. `sure` is
// true if the offsets of a majority of all hosts, and of more than one host, are near the median.
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
