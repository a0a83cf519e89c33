package mutz

import (
	"math"
	"slices"
)

// segments is how many nodes are free over time, as the thesis keeps it: a list
// in the order of time, gone through from its beginning for each question and
// each change, in O(segments). All nodes are free after the last.
type segments struct {
	from []float64 // ascending, the first 0
	free []int
}

func (s *segments) reset(nodes int) {
	s.from, s.free = append(s.from[:0], 0), append(s.free[:0], nodes)
}

// place takes the soonest window of some length and nodes that is over by a
// time, and says when it begins; −1 if there is none. One of length 0 needs its
// nodes free at an instant, and takes none.
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

// take takes nodes from segment first until a time; segment next is the first
// that begins no sooner.
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

// never is by when a window must be over if it need not be.
var never = math.Inf(1)
