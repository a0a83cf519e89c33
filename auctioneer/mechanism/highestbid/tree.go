package highestbid

// tree is a treap of the running jobs, ordered by key, for prices that are capped by the job's own bid. If the price
// level is P, jobs with a key of at most P are billed their own bid, and the other jobs are billed P.
//
// pass adds to the sums of all jobs at once. It changes few nodes: an addition to a whole subtree is stored at the root
// of the subtree, in a tag. When the shape of the tree changes, tags are pushed down. So insert, remove and pass cost
// O(log n) for n running jobs, and the sums of a job have only what was added while it ran. Priorities are hashes of
// the job numbers, so the expected depth does not depend on the keys.
type tree struct {
	nodes []node // by number of the job; number 0 is not used
	root  int32
}

type node struct {
	key         float64
	priority    uint32
	left, right int32
	sum         capped // sums of this job, without the tags above it
	tag         capped // to be added to all nodes of the subtree, including this one
}

// capped has two sums over the time that a job has run. `own` is the length of the time that is billed at the job's own
// bid. `level` is the sum of level × time over the other part of the time, which is billed at the common level of the
// price.
type capped struct{ own, level double }

func (c *capped) add(x *capped) {
	if *x != (capped{}) {
		c.own, c.level = c.own.plus(x.own), c.level.plus(x.level)
	}
}

// insert adds a node with the number `id` and sums of zero. The number must be at least 1, and must not be in the
// tree yet.
func (t *tree) insert(id int32, key float64) {
	for int(id) >= len(t.nodes) {
		t.nodes = append(t.nodes, node{})
	}
	t.nodes[id] = node{key: key, priority: scramble(uint32(id))}
	low, high := t.split(t.root, key, id)
	t.root = t.merge(t.merge(low, id), high)
}

func (t *tree) remove(id int32) capped {
	key := t.nodes[id].key
	link := &t.root
	for *link != id {
		n := &t.nodes[*link]
		t.push(n)
		link = n.toward(key, *link, id)
	}
	n := &t.nodes[id]
	t.push(n)
	*link = t.merge(n.left, n.right)
	return n.sum
}

// toward returns the link from n to the child whose subtree is the place for a node with the pair (key, id). `at` is
// the number of n.
func (n *node) toward(key float64, at, id int32) *int32 {
	if key < n.key || key == n.key && id < at {
		return &n.left
	}
	return &n.right
}

// pass adds to the sums of all jobs in the tree. Each job is a node n. If its key is at most `level`, pass adds `time`
// to n.sum.own, and otherwise `integral` to n.sum.level. If all jobs of a subtree get the same addition, pass adds only
// to the tag of the subtree. It does not move tags down the tree, because the order of additions does not matter.
func (t *tree) pass(level float64, time, integral double) {
	for at := t.root; at != 0; {
		n := &t.nodes[at]
		if n.key <= level {
			n.sum.own = n.sum.own.plus(time)
			left := &t.nodes[n.left].tag // without a left child this is the tag of node 0, which nothing reads
			left.own = left.own.plus(time)
			at = n.right
		} else {
			n.sum.level = n.sum.level.plus(integral)
			right := &t.nodes[n.right].tag
			right.level = right.level.plus(integral)
			at = n.left
		}
	}
}

func (t *tree) push(n *node) {
	n.sum.add(&n.tag)
	t.nodes[n.left].tag.add(&n.tag)
	t.nodes[n.right].tag.add(&n.tag)
	n.tag = capped{}
}

// split divides a subtree in two: the nodes up to and including (key, id), and the nodes after it.
func (t *tree) split(at int32, key float64, id int32) (low, high int32) {
	if at == 0 {
		return 0, 0
	}
	n := &t.nodes[at]
	t.push(n)
	if n.key < key || n.key == key && at <= id {
		n.right, high = t.split(n.right, key, id)
		return at, high
	}
	low, n.left = t.split(n.left, key, id)
	return low, at
}

// merge joins the subtrees `a` and `b`. All nodes of `a` must come before all nodes of `b`.
func (t *tree) merge(a, b int32) int32 {
	if a == 0 || b == 0 {
		return a + b
	}
	x, y := &t.nodes[a], &t.nodes[b]
	if x.priority > y.priority {
		t.push(x)
		x.right = t.merge(x.right, b)
		return a
	}
	t.push(y)
	y.left = t.merge(a, y.left)
	return b
}

// scramble mixes the bits of x like the last step of MurmurHash3.
func scramble(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}
