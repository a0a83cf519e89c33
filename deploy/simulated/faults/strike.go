package faults

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/messages"
)

// relay makes the network that the faults under way leave.
func (w *World) relay() {
	c := network.Config{Delay: second / 1000, Jitter: second / 200}
	for _, e := range w.active {
		switch e.Kind {
		case Loss:
			c.Loss = max(c.Loss, e.Part)
		case Repeat:
			c.Repeat = max(c.Repeat, e.Part)
		case Reorder:
			c.Jitter = 2 * second
		case Delay:
			c.Delay = second
		case Partition:
			c.Cuts = append(c.Cuts, network.Cut{Until: 1 << 62, Actors: []string{e.Target}})
		case Isolate:
			c.Cuts = append(c.Cuts, network.Cut{Until: 1 << 62, Actors: w.site(e.Target).actors()})
		}
	}
	w.nets++
	n, err := network.New(c, w.seed<<16+w.nets)
	if err != nil {
		w.violate("%v", err)
		return
	}
	w.net = n
}

// strike plans one fault: its beginning and its end.
func (w *World) strike(e Event) {
	where, _, _ := strings.Cut(e.Target, ".")
	if s := w.site(e.Target); s != nil {
		s.apart += max(e.By, -e.By)
	}
	w.queue.Push(epoch.Add(e.At), func() {
		w.active = append(w.active, e)
		w.relay()
		for _, s := range w.troubled(e) {
			s.troubles++
		}
		w.note(where, true, "fault", e, "begins")
		w.begin(e)
	})
	w.queue.Push(epoch.Add(e.At+e.For), func() {
		i := slices.Index(w.active, e)
		w.active = slices.Delete(w.active, i, i+1)
		w.relay()
		for _, s := range w.troubled(e) {
			s.troubles--
			s.wellSince = w.now
		}
		w.note(where, true, "fault", e, "ends")
		w.end(e)
	})
}

// troubled are the sites within which something is wrong because of a fault. A
// site that is cut off, or lied to, is not one of them: it is to go on.
func (w *World) troubled(e Event) []*site {
	if e.Kind == Isolate || e.Kind == Lie {
		return nil
	}
	if s := w.site(e.Target); s != nil {
		return []*site{s}
	}
	return w.sites[:]
}

// isolated says whether the site is cut off from the others.
func (s *site) isolated() bool {
	return slices.ContainsFunc(s.active, func(e Event) bool { return e.Kind == Isolate && e.Target == s.name })
}

func (w *World) begin(e Event) {
	m, a := w.find(e.Target)
	switch {
	case e.Kind == Lie:
		w.lie(w.site(e.Target), w.now.Add(e.For))
	case e.Kind == Power:
		w.all(e, (*site).off)
	case e.Kind == Crash && m != nil:
		w.site(e.Target).off(m)
	case e.Kind == Crash:
		a.crash()
	case e.Kind == SlowDisk && m != nil:
		m.slow = true
	case e.Kind == BlackHole:
		a.hole = true
		a.hopeless = a.hopeless || !slices.ContainsFunc(a.agents, func(o *agent) bool { return !o.hole })
	case e.Kind == Skew || e.Kind == Jump:
		if a != nil { // a leader measures leases by a clock that is never set
			a.jumped = true
		}
		w.shift(m, a, e.By)
	}
}

func (w *World) end(e Event) {
	m, a := w.find(e.Target)
	switch {
	case e.Kind == Power:
		w.all(e, (*site).on)
	case e.Kind == Crash && m != nil:
		w.site(e.Target).on(m)
	case e.Kind == Crash:
		a.boot()
	case e.Kind == SlowDisk && m != nil:
		m.slow = false
	case e.Kind == BlackHole:
		a.hole = slices.ContainsFunc(w.active, func(o Event) bool { return o.Kind == BlackHole && o.Target == e.Target })
	case e.Kind == Skew:
		w.shift(m, a, -e.By)
	}
}

// all does something to all machines that a fault is about.
func (w *World) all(e Event, do func(*site, *machine)) {
	for _, s := range w.troubled(e) {
		for _, m := range s.machines {
			do(s, m)
		}
	}
}

func (w *World) shift(m *machine, a *agent, by messages.Duration) {
	if m != nil {
		m.offset += by
	} else if a != nil {
		a.offset += by
		a.wake = 0
		a.act()
	}
}

func (s *site) off(m *machine) {
	if m.down {
		return
	}
	m.down = true
	s.books.replicas[m.index].crash()
	s.banks.replicas[m.index].crash()
}

func (s *site) on(m *machine) {
	if !m.down {
		return
	}
	m.down = false
	m.life++
	s.books.replicas[m.index].boot()
	s.banks.replicas[m.index].boot()
}
