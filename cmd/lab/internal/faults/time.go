package faults

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/siteclock"
)

// wrongest is the end of the name of the machine whose clock is wrong by up to an hour. The other clocks are wrong by
// at most half a minute.
const wrongest = ".m0"

// mono returns the time of the monotonic clock. Nobody can set this clock.
func (w *World) mono() messages.Duration { return w.now.Sub(epoch) + second }

func (m *machine) wall() messages.Time { return m.site.now.Add(m.offset) }

// keepTime starts a clock of the site's time. It continues with the stored time, unless the machine was without power.
func (m *machine) keepTime() {
	m.time = siteclock.NewHost(len(m.site.machines), m.wall, m.site.mono)
	if m.kept != nil {
		m.time.Resume(*m.kept)
	} else {
		m.site.booted = m.site.now
	}
	m.tellTime()
}

func (m *machine) tellTime() {
	for _, o := range m.site.machines {
		if wall := m.wall(); o != m {
			m.site.send(m.name, o.name, func() {
				if !o.down {
					o.time.Hear(m.name, wall)
				}
			})
		}
	}
	if offset, known := m.time.Offset(); known {
		m.kept = &offset
	}
	m.site.after(&m.host, siteclock.ReadEvery, m.tellTime)
}

func (r *replica) clock() messages.Time {
	now, _, _ := r.stamp()
	return now
}

// stamp returns the time for a command. The result `leap` is how far the clock was set ahead since the last command. If
// `carried` is true, the time does not come from the clock, but continues from the time of the last command.
func (r *replica) stamp() (now messages.Time, leap messages.Duration, carried bool) {
	switch r.Bug {
	case BareClock:
		return r.host.wall(), 0, false
	case LeapPaid:
		return r.steady.Now(), 0, false
	}
	return r.steady.Stamp()
}

// keepTime starts the clock for the times of the replica's commands.
func (r *replica) keepTime() {
	r.steady = siteclock.NewSteady(r.host.time.Now, r.host.time.Known, r.mono)
}

// apart returns how far the times of two machines of the site can differ. The site's time is the median of its three
// clocks. So its error is at most the error of the second worst clock. Two machines can have this error in opposite
// directions, so the result is twice this error.
func (s *site) apart() messages.Duration {
	if len(s.wrong) <= 1 {
		return 0
	}
	by := slices.Sorted(maps.Values(s.wrong))
	return 2 * by[len(by)-2]
}
