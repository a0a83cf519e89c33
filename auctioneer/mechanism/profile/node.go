package profile

// fan is the largest number of entries of a tree node. With this number, a tree of up to about 500 breakpoints has only
// two levels.
const fan = 32

// node is a tree node of a B-tree over breakpoints. Entry i of a leaf is a breakpoint. Entry i of an inner tree node is
// a child whose first breakpoint is key[i].
//
// A leaf has, for each breakpoint, a number in the field `low`. The number of free nodes at this breakpoint is the sum
// of this number and of the field `add` of each entry on the path from the root. In an inner tree node, low[i] and
// high[i] are the least and the most free nodes in child i. They include add[i], but not the fields `add` of the tree
// nodes above.
type node struct {
	count int32
	key   [fan]float64
	low   [fan]int32
	high  [fan]int32 // inner nodes only
	add   [fan]int32 // inner nodes only
	child [fan]int32 // inner nodes only: positions in Profile.tree
}

// find returns the last entry whose key is at most t. If there is none, find returns the first entry.
func (n *node) find(t float64) int {
	i := 1
	for i < int(n.count) && n.key[i] <= t {
		i++
	}
	return i - 1
}

// bounds returns the smallest and the largest number of free nodes in the subtree of n. It leaves out the fields `add`
// of the tree nodes above n, so the caller must add them.
func (n *node) bounds(leaf bool) (low, high int32) {
	highs := n.high[:n.count]
	if leaf {
		highs = n.low[:n.count]
	}
	low, high = n.low[0], highs[0]
	for i := 1; i < len(highs); i++ {
		low, high = min(low, n.low[i]), max(high, highs[i])
	}
	return low, high
}

// open makes room for a new entry at position i.
func (n *node) open(i int) {
	c := n.count
	copy(n.key[i+1:c+1], n.key[i:c])
	copy(n.low[i+1:c+1], n.low[i:c])
	n.count++
}

func (n *node) openInner(i int) {
	c := n.count
	copy(n.high[i+1:c+1], n.high[i:c])
	copy(n.add[i+1:c+1], n.add[i:c])
	copy(n.child[i+1:c+1], n.child[i:c])
	n.open(i)
}

// grow returns the position of a new node in the arena. It invalidates pointers into the tree.
func (p *Profile) grow() int32 {
	if int(p.used) == len(p.tree) {
		p.tree = append(p.tree, make([]node, 1+len(p.tree)/2)...)
	}
	p.tree[p.used].count = 0
	p.used++
	return p.used - 1
}

// cut adds a breakpoint at t: a time at which the number of free nodes can change. On the way from the root of the tree
// to the leaf, it splits each full node of the tree, so that a new entry has room.
func (p *Profile) cut(t float64) {
	if p.tree[p.root].count == fan {
		p.raise()
	}
	at := p.root
	for level := p.depth; level > 0; level-- {
		i := p.tree[at].find(t)
		if c := p.tree[at].child[i]; p.tree[c].count == fan {
			p.split(at, i, level == 1)
			if p.tree[at].key[i+1] <= t {
				i++
			}
		}
		at = p.tree[at].child[i]
	}
	leaf := &p.tree[at]
	i := leaf.find(t)
	if leaf.key[i] == t {
		return
	}
	leaf.open(i + 1)
	leaf.key[i+1], leaf.low[i+1] = t, leaf.low[i]
	p.steps++
}

// raise makes the tree one level deeper: it puts a new root above the old root.
func (p *Profile) raise() {
	old := p.root
	p.root = p.grow()
	root := &p.tree[p.root]
	root.count, root.key[0], root.child[0], root.add[0] = 1, p.tree[old].key[0], old, 0
	root.low[0], root.high[0] = p.tree[old].bounds(p.depth == 0)
	p.depth++
	p.split(p.root, 0, p.depth == 1)
}

// split moves the upper half of a full child to a new child next to it.
func (p *Profile) split(parent int32, i int, leaf bool) {
	right := p.grow()
	up := &p.tree[parent]
	from, to := &p.tree[up.child[i]], &p.tree[right]
	const half = fan / 2
	to.count, from.count = fan-half, half
	copy(to.key[:], from.key[half:])
	copy(to.low[:], from.low[half:])
	if !leaf {
		copy(to.high[:], from.high[half:])
		copy(to.add[:], from.add[half:])
		copy(to.child[:], from.child[half:])
	}
	up.openInner(i + 1)
	up.key[i+1], up.child[i+1], up.add[i+1] = to.key[0], right, up.add[i]
	up.bound(i, from, leaf)
	up.bound(i+1, to, leaf)
}

func (n *node) bound(i int, child *node, leaf bool) {
	low, high := child.bounds(leaf)
	n.low[i], n.high[i] = low+n.add[i], high+n.add[i]
}

// add adds `by` to the number of free nodes at the breakpoints from `start` to before `end`, in the subtree of one
// node. Both `start` and `end` must be breakpoints.
func (p *Profile) add(at int32, level int, start, end float64, by int32) {
	n := &p.tree[at]
	i := n.find(start)
	if level == 0 {
		if n.key[i] < start {
			i++
		}
		for ; i < int(n.count) && n.key[i] < end; i++ {
			n.low[i] += by
		}
		return
	}
	for ; i < int(n.count) && n.key[i] < end; i++ {
		if n.key[i] < start || i+1 == int(n.count) || n.key[i+1] > end {
			p.add(n.child[i], level-1, start, end, by)
			n.bound(i, &p.tree[n.child[i]], level == 1)
			continue
		}
		n.low[i] += by
		n.high[i] += by
		n.add[i] += by
	}
}
