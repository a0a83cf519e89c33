package profile

// search looks for a window, a time in which enough nodes are free. It walks once over the tree of the times at which
// the number of free nodes changes. It skips the parts of the tree in which no window can begin or end.
type search struct {
	tree           []node
	from, deadline float64
	length         float64
	n              int32
	open           bool // n nodes have been free since start
	start          float64
}

// walk searches a subtree for a window, which is a time with enough free nodes. It returns true if the search is over.
// Then the field `open` says whether the search found a window.
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
	need, count := s.n-add, int(n.count)
	for i := n.find(s.from); i < count; {
		if !s.open {
			for n.low[i] < need {
				if i++; i == count {
					return false
				}
			}
			s.start = max(n.key[i], s.from)
			if s.start+s.length > s.deadline {
				return true
			}
			s.open = true
			i++
		}
		end := s.start + s.length
		for ; s.open && i < count; i++ {
			if n.key[i] >= end {
				return true
			}
			s.open = n.low[i] >= need
		}
	}
	return false
}
