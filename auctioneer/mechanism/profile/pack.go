package profile

import "math"

// pack removes breakpoints that are past or at which nothing changes, and builds a new tree. If the profile has s
// breakpoints, the cost is proportional to s. There are at least s/3 changes between two calls, so the cost of each
// change stays bounded.
func (p *Profile) pack() {
	p.points = p.collect(p.points[:0], p.root, p.depth, 0)
	p.build()
	p.steps, p.loose = len(p.points), false
	p.limit = 2*p.steps + 2*fan
}

// collect appends to `out` the breakpoints in the subtree whose top node has the index `at`. It leaves out breakpoints
// that are no longer needed.
func (p *Profile) collect(out []point, at int32, level int, add int32) []point {
	n := &p.tree[at]
	for i := range int(n.count) {
		if level > 0 {
			out = p.collect(out, n.child[i], level-1, add+n.add[i])
			continue
		}
		next := point{n.key[i], n.low[i] + add}
		switch last := len(out) - 1; {
		case last < 0:
			out = append(out, point{math.Inf(-1), next.free})
		case last == 0 && next.at <= p.past:
			out[0].free = next.free
		case out[last].free != next.free:
			out = append(out, next)
		}
	}
	return out
}

// build makes a tree of p.points, level by level. It fills nodes only half, for new entries.
func (p *Profile) build() {
	p.used, p.depth = 0, 0
	first := p.used
	for rest := p.points; len(rest) > 0; {
		part := rest[:min(fan/2, len(rest))]
		rest = rest[len(part):]
		n := &p.tree[p.grow()]
		for i, x := range part {
			n.key[i], n.low[i] = x.at, x.free
		}
		n.count = int32(len(part))
	}
	for p.used-first > 1 {
		next := p.used
		for at := first; at < next; at += fan / 2 {
			p.adopt(at, min(at+fan/2, next))
		}
		first = next
		p.depth++
	}
	p.root = first
}

// adopt makes a new node of the tree. Its children are the nodes [from, to) of the array of nodes.
func (p *Profile) adopt(from, to int32) {
	at := p.grow()
	n := &p.tree[at]
	for c := from; c < to; c++ {
		i := n.count
		n.key[i], n.child[i], n.add[i] = p.tree[c].key[0], c, 0
		n.count++
		n.bound(int(i), &p.tree[c], p.depth == 0)
	}
}
