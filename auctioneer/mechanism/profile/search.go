package profile

// search looks for a window in one walk over the breakpoints in order, passing
// over children that cannot begin or end one.
type search struct {
	tree           []node
	from, deadline float64
	length         float64
	n              int32
	open           bool // n nodes have been free since start
	start          float64
}

// walk looks through a node and says whether the search is over: open if a
// window was found, and not if none can be over by the deadline.
func (s *search) walk(at int32, level int, add int32) bool {
	n := &s.tree[at]
	if level == 0 {
		return s.leaf(n, add)
	}
	for i := n.find(s.from); i < int(n.count); i++ {
		switch {
		case s.open && n.key[i] >= s.start+s.length:
			return true
		case s.open && n.low[i]+add >= s.n, !s.open && n.high[i]+add < s.n:
			continue
		}
		if s.walk(n.child[i], level-1, add+n.add[i]) {
			return true
		}
	}
	return false
}

func (s *search) leaf(n *node, add int32) bool {
	need := s.n - add
	for i := n.find(s.from); i < int(n.count); i++ {
		switch free := n.low[i] >= need; {
		case s.open && n.key[i] >= s.start+s.length:
			return true
		case free && !s.open:
			s.start, s.open = max(n.key[i], s.from), true
			if s.start+s.length > s.deadline {
				s.open = false
				return true
			}
		case !free:
			s.open = false
		}
	}
	return false
}
