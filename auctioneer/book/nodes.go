package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// nodes are those that have ever registered.
type nodes struct {
	inOrder []*Node // of their first registration
	names   map[messages.Name]uint32
}

// Nodes returns the nodes in the order of their first registration. They must
// not be changed.
func (s *nodes) Nodes() []*Node { return s.inOrder }

// Node returns a node by name, nil if there is none.
func (s *nodes) Node(name messages.Name) *Node {
	if i, ok := s.names[name]; ok {
		return s.inOrder[i]
	}
	return nil
}

// add enters a node that is not known yet.
func (s *nodes) add(n *Node) (uint32, error) {
	if len(s.inOrder) >= MaxNodes {
		return 0, messages.Errorf(messages.Exhausted, "the site knows %d nodes, its limit", MaxNodes)
	}
	i := uint32(len(s.inOrder))
	s.inOrder = append(s.inOrder, n)
	s.names[n.Name] = i
	return i, nil
}

// lastOf returns a class that no other node offers, "" if there is none.
func (s *nodes) lastOf(i uint32) messages.Name {
	for _, c := range s.inOrder[i].Slots {
		if !s.elsewhere(c.Class, []uint32{i}) {
			return c.Class
		}
	}
	return ""
}

// elsewhere reports whether a node but those listed takes work of a class.
func (s *nodes) elsewhere(class messages.Name, but []uint32) bool {
	for i, n := range s.inOrder {
		if n.Up && n.Drain == 0 && n.Health.Quarantined == 0 && n.class(class) >= 0 && !slices.Contains(but, uint32(i)) {
			return true
		}
	}
	return false
}
