package mutz

import (
	"math"
	"slices"
)

// segments has the number of free nodes over time, as the thesis stores it: in a list. Each search and each change goes
// through the list, in O(segments). After the last segment, all nodes are free.
type segments struct {
	from []float64 // beginnings in ascending order; the first is 0
	free []int
}

func (s *segments) reset(nodes int) {
	s.from, s.free = append(s.from[:0], 0), append(s.free[:0], nodes)
}

// place finds the first window in which `nodes` nodes are free for the time `length`. The window must end at the time
// `by` or earlier. place takes the nodes, and returns the beginning of the window. If there is no window, it returns
// −1. For a window of length 0, the nodes must be free at one moment, and place takes no nodes.
func (s *segments) place(length float64, nodes int, by float64) float64 {
	for first := 0; first < len(s.from); {
		start := s.from[first]
		if start+length > by {
			break
		}
		next := first
		for next < len(s.from) && s.free[next] >= nodes && (next == first || s.from[next] < start+length) {
			next++
		}
		if next > first && (next == len(s.from) || s.from[next] >= start+length) {
			s.take(first, next, start+length, nodes)
			return start
		}
		first = next + 1
	}
	return -1
}

// The method take marks a number of nodes as not free, from the beginning of the segment `first` up to the time
// `until`. The segment `next` is the first one that does not begin before this time.
func (s *segments) take(first, next int, until float64, nodes int) {
	if !(until > s.from[first]) {
		return
	}
	if next == len(s.from) || s.from[next] > until {
		s.from, s.free = slices.Insert(s.from, next, until), slices.Insert(s.free, next, s.free[next-1])
	}
	for k := first; k < next; k++ {
		s.free[k] -= nodes
	}
}

func (s *segments) copy(from *segments) {
	s.from, s.free = append(s.from[:0], from.from...), append(s.free[:0], from.free...)
}

// never is the deadline of a window that may end at any time.
var never = math.Inf(1)
