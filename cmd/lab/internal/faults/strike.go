package faults

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/messages"
)

// relay replaces the simulated network by one with the faults that are active now.
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

func (w *World) strike(e Event) {
	where, _, _ := strings.Cut(e.Target, ".")
	if s := w.site(e.Target); s != nil {
		if m, is := w.find(e.Target).(*machine); is && e.By != 0 {
			s.wrong[m] += max(e.By, -e.By)
		}
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

// troubled returns the sites that may stop working because of the fault e. A fault that only cuts a site off from other
// sites, or sends the site lies, is not counted: the site must continue to work.
func (w *World) troubled(e Event) []*site {
	if e.Kind == Isolate || e.Kind == Lie {
		return nil
	}
	if s := w.site(e.Target); s != nil {
		return []*site{s}
	}
	return w.sites[:]
}

func (s *site) isolated() bool {
	return slices.ContainsFunc(s.active, func(e Event) bool { return e.Kind == Isolate && e.Target == s.name })
}

func (w *World) begin(e Event) {
	switch target := w.find(e.Target); e.Kind {
	case Lie:
		w.lie(w.site(e.Target), w.now.Add(e.For))
	case Power:
		w.all(e, (*machine).powerOff)
	case Crash:
		target.crash()
	case LostDisk:
		target.(*machine).lose()
	case Damage:
		target.(*machine).spoil(e.At)
	case SlowDisk:
		target.(*machine).slow = true
	case BlackHole:
		a := target.(*agent)
		a.hole = true
		a.hopeless = a.hopeless || !slices.ContainsFunc(a.agents, func(o *agent) bool { return !o.hole })
	case Skew, Jump:
		if a, tasks := target.(*agent); tasks { // a leap of the clock harms no leader, because a leader measures leases with a clock that is never set
			a.jumped = true
		}
		target.shift(e.By)
	}
}

func (w *World) end(e Event) {
	switch target := w.find(e.Target); e.Kind {
	case Power:
		w.all(e, (*machine).start)
	case Crash, LostDisk, Damage:
		target.start()
	case SlowDisk:
		target.(*machine).slow = false
	case BlackHole:
		target.(*agent).hole = slices.ContainsFunc(w.active, func(o Event) bool { return o.Kind == BlackHole && o.Target == e.Target })
	case Skew:
		target.shift(-e.By)
	}
}

// all calls the function `do` for all machines of the sites that a fault concerns.
func (w *World) all(e Event, do func(*machine)) {
	for _, s := range w.troubled(e) {
		for _, m := range s.machines {
			do(m)
		}
	}
}

func (m *machine) shift(by messages.Duration) { m.offset += by }

func (m *machine) crash() {
	if !m.down {
		m.down = true
		m.site.books.replicas[m.index].crash()
		m.site.banks.replicas[m.index].crash()
		m.files.crash()
	}
}

func (m *machine) powerOff() {
	m.crash()
	m.kept = nil
}

func (m *machine) start() {
	if m.down {
		m.down = false
		m.life++
		m.keepTime()
		m.open()
		m.site.books.replicas[m.index].boot()
		m.site.banks.replicas[m.index].boot()
	}
}
