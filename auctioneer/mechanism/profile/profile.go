package profile

import "math"

// Profile is the number of free nodes of a machine over time. Call Reset on a zero value first. It is not safe for
// concurrent use.
type Profile struct {
	nodes int32
	tree  []node // the arena of all nodes; tree[:used] are in use
	used  int32
	root  int32
	depth int // number of levels above the leaves

	steps  int     // number of breakpoints, including the one at −∞
	limit  int     // number of steps at which pack runs again
	loose  bool    // some breakpoints may no longer be needed
	past   float64 // times before it are forgotten
	points []point // scratch of pack
	hints  hints
}

// A profile is a step function: the number of free nodes over time. point is a time at which it changes. The field free
// is the number of free nodes from this time to the next point.
type point struct {
	at   float64
	free int32
}

// New makes the profile of an idle machine.
func New(nodes int) *Profile {
	p := new(Profile)
	p.Reset(nodes)
	return p
}

// Reset makes the machine idle, with the given number of nodes.
func (p *Profile) Reset(nodes int) {
	p.nodes = int32(nodes)
	p.used, p.depth, p.loose, p.past = 0, 0, false, math.Inf(-1)
	p.root = p.grow()
	leaf := &p.tree[p.root]
	leaf.count, leaf.key[0], leaf.low[0] = 1, math.Inf(-1), p.nodes
	p.steps, p.limit = 1, 2*fan
	p.hints.forget()
}

// Copy makes p equal to another profile, without sharing memory.
func (p *Profile) Copy(from *Profile) {
	points, hints := p.points, p.hints
	tree := append(p.tree[:0], from.tree[:from.used]...)
	*p = *from
	p.tree, p.points, p.hints = tree, points, hints
	p.hints.forget()
}

// Insert takes n nodes from `start` to just before start+length, even if they are not free. So the number of free nodes
// can become negative. If n is negative, Insert gives nodes back.
func (p *Profile) Insert(start, length float64, n int) { p.Take(start, start+length, n) }

// Take takes n nodes during [start, end). If the interval is empty, or start or end is NaN, it does nothing.
func (p *Profile) Take(start, end float64, n int) {
	if !(start < end) || n == 0 {
		return
	}
	p.cut(start)
	if !math.IsInf(end, 1) {
		p.cut(end)
	}
	p.add(p.root, p.depth, start, end, -int32(n))
	if n < 0 {
		p.loose = true
		p.hints.forget()
	}
	if p.loose && p.steps > p.limit {
		p.pack()
	}
}

// After a call of Forget, the profile may drop times before t. The caller must not use such times any more.
func (p *Profile) Forget(t float64) {
	if t > p.past {
		p.past, p.loose = t, true
	}
}

// Free returns the number of nodes that are free at t.
func (p *Profile) Free(t float64) int {
	at, add := p.root, int32(0)
	for range p.depth {
		n := &p.tree[at]
		i := n.find(t)
		add += n.add[i]
		at = n.child[i]
	}
	n := &p.tree[at]
	return int(n.low[n.find(t)] + add)
}

// Soonest returns the smallest start ≥ t from which n nodes are free for the given length, or +Inf. A length of 0 asks
// for n free nodes at an instant.
func (p *Profile) Soonest(t, length float64, n int) float64 {
	start, _ := p.Within(t, math.Inf(1), length, n)
	return start
}

// Within returns the smallest start ≥ t from which n nodes are free for the given length, if the window ends by the
// deadline. If there is no such start, `ok` is false and `start` is +Inf.
func (p *Profile) Within(t, deadline, length float64, n int) (start float64, ok bool) {
	if int64(n) > math.MaxInt32 || !(t+length <= deadline) {
		return math.Inf(1), false
	}
	known := p.steps > 2*fan && length > 0 && n > 0 // in a small profile a hint costs more than the search
	s := search{tree: p.tree, from: t, deadline: deadline, length: length, n: int32(n)}
	if known {
		s.from = p.hints.begin(t, length, n)
	}
	s.walk(p.root, p.depth, 0)
	if !s.open { // no window ends by the deadline
		s.start = deadline - length
	}
	if known && s.start > t {
		p.hints.found(t, s.start, length, n)
	}
	if !s.open {
		return math.Inf(1), false
	}
	return s.start, true
}
