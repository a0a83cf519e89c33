package book

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// windows has the maintenance windows that are not over, by number. Each node also lists its own windows.
type windows struct {
	last  uint32
	all   []*market.Window
	turns messages.Time // when the next window begins or ends; 0 if there is no window
	nodes *nodes
	watch *watch
	clock *clock
}

func (s *windows) change(c *ChangeWindows) (market.Window, error) {
	if c.Add != nil {
		return s.add(*c.Add)
	}
	i := slices.IndexFunc(s.all, func(w *market.Window) bool { return w.ID == c.Remove })
	if i < 0 {
		return market.Window{}, messages.Errorf(messages.NotFound, "there is no window %d; `candor window list` shows the windows", c.Remove)
	}
	w := s.all[i]
	s.drop(w)
	s.schedule()
	return *w, nil
}

func (s *windows) add(w market.Window) (market.Window, error) {
	w.Nodes = slices.Clone(w.Nodes)
	slices.Sort(w.Nodes)
	w.Nodes = slices.Compact(w.Nodes)
	for _, o := range s.all {
		if w.ID = o.ID; o.From == w.From && o.To == w.To && o.Reason == w.Reason && slices.Equal(o.Nodes, w.Nodes) {
			return *o, nil
		}
	}
	switch {
	case w.To <= s.clock.now:
		return w, messages.Errorf(messages.Invalid, "to: %v is in the past", w.To)
	case len(s.all) >= market.MaxWindows:
		return w, messages.Errorf(messages.Exhausted, "the site has %d windows, its limit; remove one with `candor window remove`", market.MaxWindows)
	}
	for _, name := range w.Nodes {
		if _, n := s.nodes.find(name); n == nil || n.Removed {
			return w, messages.Errorf(messages.NotFound, "there is no node %q; `candor nodes` lists the nodes", name)
		}
	}
	s.last++
	w.ID = s.last
	s.enter(&w)
	s.settle(&w)
	s.schedule()
	return w, nil
}

func (s *windows) enter(w *market.Window) {
	s.all = append(s.all, w)
	for _, name := range w.Nodes {
		if _, n := s.nodes.find(name); n != nil {
			n.windows = append(slices.Clone(n.windows), w)
		}
	}
}

// drop removes a window. Its nodes take tasks again, unless something else prevents them.
func (s *windows) drop(w *market.Window) {
	is := func(o *market.Window) bool { return o == w }
	s.all = slices.DeleteFunc(s.all, is)
	for _, name := range w.Nodes {
		if _, n := s.nodes.find(name); n != nil {
			n.windows = slices.DeleteFunc(slices.Clone(n.windows), is)
		}
	}
	s.settle(w)
}

func (s *windows) schedule() {
	s.turns = 0
	for _, w := range s.all {
		if w.From > s.clock.now {
			s.turns = messages.Earlier(s.turns, w.From)
		}
		s.turns = messages.Earlier(s.turns, w.To)
	}
}

func (s *windows) turnDue() {
	if s.turns == 0 || s.clock.now < s.turns {
		return
	}
	for _, w := range slices.Clone(s.all) {
		switch {
		case w.To <= s.clock.now:
			s.drop(w)
		case w.From <= s.clock.now:
			s.settle(w)
		}
	}
	s.schedule()
}

// settle drains the nodes of a window that has begun, and lets them work again after it.
func (s *windows) settle(w *market.Window) {
	for _, name := range w.Nodes {
		if i, n := s.nodes.find(name); n != nil && !n.Removed {
			s.settleNode(i, n)
		}
	}
}

// If one of a node's windows has begun, settleNode drains the node. If no window applies any more, it lets the node
// take tasks again, unless an operator has drained the node.
func (s *windows) settleNode(i uint32, n *Node) {
	s.watch.touchNode(i)
	at := slices.IndexFunc(n.windows, func(w *market.Window) bool { return w.From <= s.clock.now && s.clock.now < w.To })
	switch {
	case at < 0 && n.Window != 0:
		n.Window, n.Drain, n.DrainReason = 0, 0, ""
	case at >= 0 && (n.Window != 0 || n.Drain == 0) && n.Window != n.windows[at].ID:
		w := n.windows[at]
		n.Window, n.Drain, n.DrainReason = w.ID, ToTheirEnd, w.Reason
		if w.Notice != nil {
			n.Drain = w.From.Add(*w.Notice)
		}
	}
	s.nodes.recount(n)
}

// leave removes a node from its present windows, because an operator lets the node work again.
func (s *windows) leave(n *Node) {
	for _, w := range slices.Clone(n.windows) {
		if w.From > s.clock.now {
			continue
		}
		rest := *w // a copy, because answers and images still use w
		rest.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), func(name messages.Name) bool { return name == n.Name })
		s.drop(w)
		if len(rest.Nodes) > 0 {
			s.enter(&rest)
			s.settle(&rest)
		}
	}
	slices.SortFunc(s.all, func(x, y *market.Window) int { return cmp.Compare(x.ID, y.ID) })
	s.schedule()
}

// FreeUntil returns when the next maintenance window of the node begins, or [ToTheirEnd] if the node has none. A time
// in the past means that a window has begun.
func (n *Node) FreeUntil(now messages.Time) messages.Time {
	until := ToTheirEnd
	for _, w := range n.windows {
		if now < w.To {
			until = min(until, w.From)
		}
	}
	return until
}

// Before reports whether a task that starts now ends at the time `until` or earlier. It assumes that the task runs for
// its time limit. A limit of 0 means that the task has no time limit.
func Before(now messages.Time, limit messages.Duration, until messages.Time) bool {
	if until == ToTheirEnd {
		return true
	}
	return limit > 0 && limit < messages.Duration(math.MaxInt64)/2 && now.Add(limit) <= until
}

// Admits reports whether a task that starts now ends before the node's next window.
func (n *Node) Admits(s *job.Stage, now messages.Time) bool {
	return len(n.windows) == 0 || Before(now, s.TimeLimit, n.FreeUntil(now))
}

// Windows returns the windows of the node that are not over. The caller must not change them.
func (n *Node) Windows() []*market.Window { return n.windows }
