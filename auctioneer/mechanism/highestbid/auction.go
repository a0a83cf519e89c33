package highestbid

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// auction has the bidders that compete for a number of nodes. It knows which of them run, and which wait. It knows no
// times and no prices.
type auction struct {
	preempt  bool
	nodes    int
	used     int // number of nodes in use
	wanted   int // number of nodes that all bidders have or want
	bidders  []bidder
	ranks    bool // whether the heap running is used
	running  heap // bidders that run, the worst first
	waiting  heap // bidders that wait, the best first
	aside    heap // bidders put aside: better than the worst running bidder, but without a node now; the worst first
	changed  []int32
	taken    []lent // memory for the method displace
	wide     bool   // some bidders take several nodes at once
	isRatio  bool
	sequence uint64
}

// lent has the number of nodes that the method displace took from a bidder.
type lent struct {
	id    int32
	nodes int
}

// bidder is a job in the auction, with one bid for all of its tasks. A task has either as many nodes as it is wide, or
// none.
type bidder struct {
	key     float64 // the bid, or the bid divided by the length
	bid     float64
	length  float64       // 1 if the algorithm ignores the length
	since   messages.Time // time of submission; 0 means unknown: then only the field order decides
	order   uint64        // position among the submissions
	running int32         // number of nodes that the bidder has
	waiting int32         // number of further nodes that the bidder wants
	stuck   int32         // part of waiting: nodes that must be certain nodes, which are in use now
	before  int32         // number of nodes that the bidder had before its first change since the last call of settled
	touched bool          // the bidder is in the list changed
	width   int32         // nodes that each task takes at once; the numbers above are multiples of width
	aside   bool          // the bidder waits in auction.aside
}

func newAuction(r Rule, nodes int) *auction {
	a := &auction{preempt: r.preempts(), ranks: r.preempts(), nodes: nodes, isRatio: r.byLength()}
	a.waiting.ties = a.firstOf
	a.running.ties = func(i, j int32) bool { return a.firstOf(j, i) }
	a.aside.ties = a.running.ties
	return a
}

func (a *auction) reserve(n int) {
	a.bidders = make([]bidder, n)
	a.waiting.place = make([]int32, n)
	if a.ranks {
		a.running.place = make([]int32, n)
	}
}

func (a *auction) better(i, j int32) bool {
	x, y := &a.bidders[i], &a.bidders[j]
	return x.key > y.key || x.key == y.key && a.firstOf(i, j)
}

// firstOf reports whether bidder i goes before bidder j with the same key.
func (a *auction) firstOf(i, j int32) bool {
	x, y := &a.bidders[i], &a.bidders[j]
	if a.isRatio {
		if c := product(x.bid, y.length).compare(product(y.bid, x.length)); c != 0 {
			return c > 0
		}
	}
	return x.since < y.since || x.since == y.since && x.order < y.order
}

// arrive adds a bidder that waits for a number of nodes. Each task of the bidder takes `width` nodes. The caller
// chooses the number `id` of the bidder. It must be small and unused.
func (a *auction) arrive(id int32, bid, length float64, nodes, width int) {
	for int(id) >= len(a.bidders) {
		a.bidders = append(a.bidders, bidder{})
	}
	a.sequence++
	if !a.isRatio {
		length = 1
	}
	a.bidders[id] = bidder{key: bid / length, bid: bid, length: length, order: a.sequence, width: int32(max(width, 1))}
	a.wide = a.wide || width > 1
	a.want(id, nodes)
}

func (a *auction) want(id int32, nodes int) {
	a.wanted += nodes
	a.move(id, 0, nodes)
}

func (a *auction) leave(id int32, running, waiting int) {
	a.wanted -= running + waiting
	a.move(id, -running, -waiting)
}

// move adds `running` to the number of nodes that a bidder has, and `waiting` to the number of nodes for which it
// waits. It updates the heaps.
func (a *auction) move(id int32, running, waiting int) {
	b := &a.bidders[id]
	if running != 0 && !b.touched {
		b.touched, b.before = true, b.running
		a.changed = append(a.changed, id)
	}
	a.used += running
	b.running += int32(running)
	b.waiting += int32(waiting)
	a.line(id)
	if a.ranks {
		a.running.keep(id, b.key, b.running > 0)
	}
}

// line puts a bidder into one of two heaps. A bidder whose field `aside` is true goes into the heap a.aside. Any other
// bidder goes into the heap a.waiting. A bidder that wants no nodes is in no heap.
func (a *auction) line(id int32) {
	b := &a.bidders[id]
	b.aside = b.aside && (b.waiting == b.stuck || b.width > 1)
	a.waiting.keep(id, -b.key, b.waiting > 0 && !b.aside)
	a.aside.keep(id, b.key, b.waiting > 0 && b.aside)
}

// The method set sets how many nodes a bidder has, and for how many more it waits. `stuck` of these further nodes must
// be specific nodes, which are in use now.
func (a *auction) set(id int32, running, waiting, stuck int) {
	b := &a.bidders[id]
	b.stuck = int32(stuck)
	has, wants := int(b.running), int(b.waiting)
	a.wanted += running + waiting - has - wants
	a.move(id, running-has, waiting-wants)
}

// decide gives free nodes to the best bidders. With preemption, it also gives them nodes of worse bidders. First it
// takes nodes back if more are used than exist. Afterwards the list auction.changed has the bidders whose running nodes
// may have changed.
//
// With preemption, a bidder may be better than the worst running bidder, and yet get no node now. Such a bidder is put
// aside: it keeps no node from others, and does not set the price (see level). For example, a bidder that takes several
// nodes at once is put aside if there are too few free nodes and nodes of worse bidders. Without preemption no bidder
// is put aside: free nodes stay free until there are enough.
func (a *auction) decide() {
	a.recall()
	for a.preempt && a.used > a.nodes {
		worst := a.running.first()
		n := a.bidders[worst].whole(a.used - a.nodes)
		a.move(worst, -n, n)
	}
	for (a.preempt || a.used < a.nodes) && a.next() {
		best := a.waiting.first()
		b := &a.bidders[best]
		n := min(a.nodes-a.used, b.free())
		switch n -= n % int(b.width); {
		case n > 0:
			a.move(best, n, -n)
		case a.preempt && a.displace(best):
		case a.preempt:
			b.aside = true
			a.line(best)
		default: // it waits for more free nodes; later bidders get none, and none of them stays aside
			for !a.aside.empty() && a.better(best, a.aside.first()) {
				a.back()
			}
			return
		}
	}
	for !a.aside.empty() && !(a.preempt && a.ahead(a.aside.first())) {
		b := &a.bidders[a.aside.first()]
		if a.used < a.nodes && b.free() == 0 {
			break
		}
		a.back()
	}
}

// Some waiting bidders are set aside, so that they are not in the heap of waiting bidders. back takes the worst of
// these, and puts it back into the heap.
func (a *auction) back() {
	id := a.aside.first()
	a.bidders[id].aside = false
	a.line(id)
}

// recall looks at the bidders in a.aside, which were put aside. If such a bidder takes several nodes at once, recall
// puts it back into the heap of waiting bidders.
func (a *auction) recall() {
	if !a.wide {
		return
	}
	for _, x := range slices.Clone(a.aside.items) {
		if b := &a.bidders[x.id]; b.width > 1 {
			b.aside = false
			a.line(x.id)
		}
	}
}

// displace takes nodes from running bidders that rank below bidder id, and gives them to this bidder. It begins with
// the lowest bidder. If it cannot take enough nodes, it changes nothing and returns false.
func (a *auction) displace(id int32) bool {
	b := &a.bidders[id]
	a.taken = a.taken[:0]
	for a.nodes-a.used < int(b.width) && a.ahead(id) {
		worst := a.running.first()
		n := b.free() // prefer to take all nodes from one bidder, to save searches
		if b.width > 1 {
			n = int(b.width) - (a.nodes - a.used)
		}
		n = a.bidders[worst].whole(n)
		a.move(worst, -n, n)
		a.taken = append(a.taken, lent{worst, n})
	}
	n := min(a.nodes-a.used, b.free())
	if n -= n % int(b.width); n > 0 {
		a.move(id, n, -n)
		return true
	}
	for _, l := range a.taken {
		a.move(l.id, l.nodes, -l.nodes)
	}
	return false
}

// whole is used when a bidder loses n nodes. It rounds n up to a multiple of the bidder's width, because a task loses
// all of its nodes or none. The result is at most the number of nodes that run tasks of the bidder.
func (b *bidder) whole(n int) int {
	w := int(b.width)
	return min((n+w-1)/w*w, int(b.running))
}

// b.waiting is the number of nodes for which a bidder waits. In b.stuck of these cases, the bidder needs one of certain
// nodes, and they are all in use. free returns the number of the other cases, in which any node is enough.
func (b *bidder) free() int { return int(b.waiting - b.stuck) }

func (a *auction) ahead(id int32) bool {
	return !a.running.empty() && a.better(id, a.running.first())
}

// The method `next` reports whether the best waiting bidder can get a node: a free node, or a node of a worse bidder.
// Some bidders wait only for certain nodes, which are in use. If such a bidder is the best one, `next` puts it aside
// and looks at the next best bidder.
func (a *auction) next() bool {
	for !a.waiting.empty() {
		best := a.waiting.first()
		if a.used >= a.nodes && !a.ahead(best) {
			return false
		}
		b := &a.bidders[best]
		if b.free() > 0 {
			return true
		}
		b.aside = true
		a.line(best)
	}
	return false
}

// undo gives all bidders the number of nodes that they had before the decision.
func (a *auction) undo() {
	for _, id := range a.changed {
		b := &a.bidders[id]
		n := int(b.before - b.running)
		a.move(id, n, -n)
	}
	a.settled()
}

// settled empties the list of changes. The caller has applied them.
func (a *auction) settled() {
	for _, id := range a.changed {
		a.bidders[id].touched = false
	}
	a.changed = a.changed[:0]
}

// level returns the key of the best waiting bidder. It returns NaN if no bidder waits.
func (a *auction) level() float64 {
	if a.waiting.empty() {
		return math.NaN()
	}
	return a.bidders[a.waiting.first()].key
}
