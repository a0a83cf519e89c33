package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// offer is the number of slots that a node offers.
type offer struct {
	name   messages.Name
	slots  []job.ClassSlots
	idle   []int // in the same order as slots
	leaves bool  // the node takes no tasks
	// windows are the maintenance windows of a node that takes tasks.
	windows []*market.Window
}

// offerOf returns the offer of a node. A node that drains or is in quarantine offers only slots that have tasks.
func offerOf(node *book.Node) *offer {
	n := &offer{name: node.Name}
	if !node.Up {
		return n
	}
	n.slots = node.Slots
	leaves := node.Drain != 0 || node.Health.Quarantined != 0
	if n.leaves = leaves; !leaves {
		n.windows = node.Windows()
	}
	for k := range n.slots {
		offers := node.Offers(k)
		if leaves {
			offers = min(n.slots[k].Slots, node.Used[k])
		}
		if offers == n.slots[k].Slots {
			continue
		}
		if &n.slots[0] == &node.Slots[0] {
			n.slots = slices.Clone(node.Slots)
		}
		n.slots[k].Slots = offers
	}
	for _, s := range n.slots {
		n.idle = append(n.idle, node.Idle(s.Class))
	}
	return n
}

// Slots adds up the slots of all nodes, by market and class.
type Slots struct {
	markets []marketSlots
	nodes   map[uint32]*offer // by the node's position in the book
	windows int               // number of windows in all offers
}

type marketSlots struct {
	config *market.Market
	nodes  map[messages.Name]bool // nil for all nodes
	slots  []int                  // by class
	idle   []int
}

// NewSlots returns an empty count for these markets. The configurations must not change.
func NewSlots(markets []market.Market) *Slots {
	s := &Slots{nodes: map[uint32]*offer{}}
	for i := range markets {
		m := marketSlots{config: &markets[i], slots: make([]int, len(markets[i].Classes)), idle: make([]int, len(markets[i].Classes))}
		if len(markets[i].Nodes) > 0 {
			m.nodes = map[messages.Name]bool{}
			for _, n := range markets[i].Nodes {
				m.nodes[n] = true
			}
		}
		s.markets = append(s.markets, m)
	}
	return s
}

// Nodes returns the number of nodes, including nodes that are down.
func (s *Slots) Nodes() int { return len(s.nodes) }

// Set updates the count for the node at a position in the book.
func (s *Slots) Set(i uint32, node *book.Node) {
	if was := s.nodes[i]; was != nil {
		s.add(was, -1)
	}
	s.nodes[i] = offerOf(node)
	s.add(s.nodes[i], 1)
}

func (s *Slots) add(n *offer, sign int) {
	s.windows += sign * len(n.windows)
	for i := range s.markets {
		m := &s.markets[i]
		if m.nodes != nil && !m.nodes[n.name] {
			continue
		}
		for i, c := range n.slots {
			if k := slices.Index(m.config.Classes, c.Class); k >= 0 {
				m.slots[k] += sign * c.Slots
				m.idle[k] += sign * n.idle[i]
			}
		}
	}
}

// Windows returns two lists with one element for each class. The result `free` has the time until which at least one
// node may run tasks. Each node may run tasks until its next maintenance window begins, and the latest of these times
// counts. The result `closings` has the slots that windows will take away, and when. Both results are nil if no node
// has a window.
func (s *Slots) Windows(market int) (free []messages.Time, closings [][]mechanism.Closing) {
	if s.windows == 0 {
		return nil, nil
	}
	m := &s.markets[market]
	free, closings = make([]messages.Time, len(m.slots)), make([][]mechanism.Closing, len(m.slots))
	for _, n := range s.nodes {
		if m.nodes != nil && !m.nodes[n.name] || n.leaves {
			continue
		}
		for _, c := range n.slots {
			k := slices.Index(m.config.Classes, c.Class)
			if k < 0 {
				continue
			}
			until := book.ToTheirEnd
			for _, w := range n.windows {
				until = min(until, w.From)
				closings[k] = append(closings[k], mechanism.Closing{From: w.From, To: w.To, Slots: c.Slots})
			}
			free[k] = max(free[k], until)
		}
	}
	for k := range free {
		if free[k] == 0 { // no node takes tasks
			free[k] = book.ToTheirEnd
		}
		closings[k] = joined(closings[k])
	}
	return free, closings
}

// joined sorts closings by time. If several closings have the same times, it makes one closing of them, with the sum of
// their slots.
func joined(all []mechanism.Closing) (out []mechanism.Closing) {
	slices.SortFunc(all, func(x, y mechanism.Closing) int { return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To)) })
	for _, c := range all {
		if last := len(out) - 1; last >= 0 && out[last].From == c.From && out[last].To == c.To {
			out[last].Slots += c.Slots
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Of returns the numbers of slots and of idle slots of a market's classes.
func (s *Slots) Of(market int) (slots, idle []int) {
	return s.markets[market].slots, s.markets[market].idle
}
