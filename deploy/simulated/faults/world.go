package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/messages"
)

// epoch is when a run begins: instants of 0 mean never.
const epoch = messages.Time(1_000_000_000_000_000)

// World is a site on its way through its faults.
type World struct {
	Bug      Bug
	plan     *Plan
	seed     uint64
	rng      *rand.Rand
	now      messages.Time
	queue    clock.Queue[func()]
	net      *network.Network
	nets     uint64 // networks there were before
	active   []Event
	machines [3]*machine
	books    *group
	banks    *group
	agents   []*agent
	users    []*user
	exits    map[messages.Attempt]bool // virtual processes that ended well
	asked    map[string][]messages.Transfer
	tally    *tally
	seen     witness
	steps    uint64
	failed   error
}

func newWorld(p *Plan, seed uint64, bug Bug) *World {
	w := &World{Bug: bug, plan: p, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: epoch,
		exits: map[messages.Attempt]bool{}, asked: map[string][]messages.Transfer{}, tally: newTally(), seen: newWitness()}
	w.relay()
	for i := range w.machines {
		w.machines[i] = &machine{name: machineNames[i]}
	}
	w.books = w.newGroup("the book", func(m *machine) automaton { return newBookState(w, m) }, w.seen.book)
	w.banks = w.newGroup("the bank", func(*machine) automaton { return newBankState() }, w.seenBank)
	for _, r := range w.books.replicas {
		r.onLeading = func() { w.lead(r) }
	}
	for i := range p.Nodes {
		w.agents = append(w.agents, newAgent(w, i))
	}
	w.open()
	for i := range p.Jobs {
		w.users = append(w.users, newUser(w, i))
	}
	return w
}

func (w *World) newGroup(name string, fresh func(*machine) automaton, observe func([]byte, automaton, any) error) *group {
	g := &group{World: w, name: name, reference: fresh(nil)}
	g.observe = func(data []byte, result any) error { return observe(data, g.reference, result) }
	for i := range g.replicas {
		m := w.machines[i]
		r := &replica{group: g, me: i, host: m, voted: -1, fresh: func() automaton { return fresh(m) }}
		g.replicas[i] = r
		r.boot()
	}
	return g
}

// applyAt applies an entry, and holds it to what others applied there.
func (r *replica) applyAt(i uint64, e entry) any {
	g := r.group
	result := r.state.apply(e.data)
	if i == uint64(len(g.history))+1 {
		g.history = append(g.history, e)
		came := g.reference.apply(e.data)
		g.hashes = append(g.hashes, g.reference.hash())
		if err := g.observe(e.data, came); err != nil {
			r.violate("%v", err)
		}
	} else if h := g.history[i-1]; h.term != e.term || !bytes.Equal(h.data, e.data) {
		r.violate("invariant 3: entry %d of %s was committed, and on %s is another", i, g.name, r.host.name)
	}
	if r.state.hash() != g.hashes[i-1] {
		r.violate("invariant 4: %s differs on %s after entry %d", g.name, r.host.name, i)
	}
	return result
}

func (w *World) violate(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf("at %v: %s", w.now.Sub(epoch), fmt.Sprintf(format, args...))
	}
}

// after lets something happen later in a host's life.
func (w *World) after(h *host, d messages.Duration, do func()) {
	life := h.life
	w.queue.Push(w.now.Add(d), func() {
		if h.life == life && !h.down {
			do()
		}
	})
}

func (w *World) send(from, to string, deliver func()) {
	w.net.Send(w.now, from, to, func(at messages.Time) { w.queue.Push(at, deliver) })
}

// call asks the leader of a group until it answers; gone ends it.
func (w *World) call(from string, to *group, gone func() bool, ask func(r *replica, answer func(any)), answered func(any)) {
	done, hint := false, 0
	var try func()
	try = func() {
		if done || gone() {
			return
		}
		r := to.replicas[hint]
		hint = (hint + 1) % 3
		w.send(from, r.host.name, func() {
			if r.host.down || r.role != leading {
				return
			}
			ask(r, func(reply any) {
				w.send(r.host.name, from, func() {
					if !done && !gone() {
						done = true
						answered(reply)
					}
				})
			})
		})
		w.queue.Push(w.now.Add(second), try)
	}
	try()
}

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
			c.Cuts = append(c.Cuts, network.Cut{From: 0, Until: 1 << 62, Actors: []string{e.Target}})
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
	w.queue.Push(epoch.Add(e.At), func() {
		w.active = append(w.active, e)
		w.relay()
		w.begin(e)
	})
	w.queue.Push(epoch.Add(e.At+e.For), func() {
		for i := range w.active {
			if w.active[i] == e {
				w.active = append(w.active[:i], w.active[i+1:]...)
				break
			}
		}
		w.relay()
		w.end(e)
	})
}

func (w *World) begin(e Event) {
	m, a := w.find(e.Target)
	switch {
	case e.Kind == Power:
		for _, m := range w.machines {
			w.off(m)
		}
	case e.Kind == Crash && m != nil:
		w.off(m)
	case e.Kind == Crash:
		a.crash()
	case e.Kind == SlowDisk && m != nil:
		m.slow = true
	case e.Kind == Skew || e.Kind == Jump:
		w.shift(m, a, e.By)
	}
}

func (w *World) end(e Event) {
	m, a := w.find(e.Target)
	switch {
	case e.Kind == Power:
		for _, m := range w.machines {
			w.on(m)
		}
	case e.Kind == Crash && m != nil:
		w.on(m)
	case e.Kind == Crash:
		a.boot()
	case e.Kind == SlowDisk && m != nil:
		m.slow = false
	case e.Kind == Skew:
		w.shift(m, a, -e.By)
	}
}

func (w *World) find(target string) (*machine, *agent) {
	for _, m := range w.machines {
		if m.name == target {
			return m, nil
		}
	}
	for _, a := range w.agents {
		if a.name == target {
			return nil, a
		}
	}
	return nil, nil
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

func (w *World) off(m *machine) {
	if m.down {
		return
	}
	m.down = true
	w.books.replicas[index(m)].crash()
	w.banks.replicas[index(m)].crash()
}

func (w *World) on(m *machine) {
	if !m.down {
		return
	}
	m.down = false
	m.life++
	w.books.replicas[index(m)].boot()
	w.banks.replicas[index(m)].boot()
}

func index(m *machine) int { return int(m.name[1] - '0') }
