package book

import "github.com/candor-grid/candor/messages"

// DefaultKept is how many suspended tasks a node keeps for each of its slots, where
// it does not say how many in all: their memory must fit beside that of those
// that run.
const DefaultKept = 4

// Keeps is how many suspended tasks the node is to keep at once.
func (n *Node) Keeps() int {
	if n.MostSuspended > 0 {
		return n.MostSuspended
	}
	slots := 0
	for _, s := range n.Slots {
		slots += s.Slots
	}
	return DefaultKept * slots
}

// Suspended is how many suspended tasks the node keeps, but for those that are
// about to be ended.
func (n *Node) Suspended() (count int) {
	for _, h := range n.Claims {
		if h.Halt == Suspended && !h.Leaving {
			count++
		}
	}
	return count
}

// PausedBy is for how long since it was claimed a claim has not run by now.
func (h *Held) PausedBy(now messages.Time) messages.Duration { return h.paused(now) }
