package highestbid

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// auction keeps who runs and who waits on a number of nodes, and decides
// anew after arrivals and departures. It knows no time and no prices.
type auction struct {
	preempt  bool
	nodes    int
	used     int // nodes that run something
	wanted   int // of all bidders
	bidders  []bidder
	ranks    bool // running is kept
	running  heap // worst first
	waiting  heap // best first
	aside    heap // worst first: those that wait for certain nodes, and go before the worst that runs
	changed  []int32
	taken    []lent // of displace
	wide     bool   // some bidder takes several nodes at once
	isRatio  bool
	sequence uint64
}

// lent are nodes that a bidder had.
type lent struct {
	id    int32
	nodes int
}

// bidder is a job in the auction. One that wants several nodes is so many
// bidders of the same bid, of which some may run while others wait; each has width nodes,
// or none.
type bidder struct {
	key     float64 // bid, or bid over length
	bid     float64
	length  float64       // 1 where the length does not count
	since   messages.Time // of submission, where that is told; 0: order alone decides
	order   uint64        // of submission
	running int32         // nodes it has
	waiting int32         // nodes it wants besides
	stuck   int32         // of waiting: it wants certain nodes, which are taken, and no others
	before  int32         // nodes it had when it was touched
	touched bool          // is in changed
	width   int32         // nodes that it takes at once: the counts above are multiples of it
	aside   bool          // waits aside
}

func newAuction(r Rule, nodes int) *auction {
	a := &auction{preempt: r.preempts(), ranks: r.preempts(), nodes: nodes, isRatio: r.byLength()}
	a.waiting.ties = a.firstOf
	a.running.ties = func(i, j int32) bool { return a.firstOf(j, i) }
	a.aside.ties = a.running.ties
	return a
}

// reserve makes room for bidders with numbers below n.
func (a *auction) reserve(n int) {
	a.bidders = make([]bidder, n)
	a.waiting.place = make([]int32, n)
	if a.ranks {
		a.running.place = make([]int32, n)
	}
}

// better reports whether bidder i goes before bidder j.
func (a *auction) better(i, j int32) bool {
	x, y := &a.bidders[i], &a.bidders[j]
	return x.key > y.key || x.key == y.key && a.firstOf(i, j)
}

// firstOf reports whether bidder i goes before bidder j, of the same key.
func (a *auction) firstOf(i, j int32) bool {
	x, y := &a.bidders[i], &a.bidders[j]
	if a.isRatio {
		if c := product(x.bid, y.length).compare(product(y.bid, x.length)); c != 0 {
			return c > 0
		}
	}
	return x.since < y.since || x.since == y.since && x.order < y.order
}

// arrive puts a bidder that wants so many nodes, some at once, among those who wait. Its
// number is the caller's: small, and not in use.
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

// want adds to the nodes that a bidder waits for.
func (a *auction) want(id int32, nodes int) {
	a.wanted += nodes
	a.move(id, 0, nodes)
}

// leave takes away nodes that a bidder has, or waits for.
func (a *auction) leave(id int32, running, waiting int) {
	a.wanted -= running + waiting
	a.move(id, -running, -waiting)
}

// move changes what a bidder has and waits for, and its place in the heaps.
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

// line has a bidder that wants nodes wait with the others, or aside if it is to.
func (a *auction) line(id int32) {
	b := &a.bidders[id]
	b.aside = b.aside && (b.waiting == b.stuck || b.width > 1)
	a.waiting.keep(id, -b.key, b.waiting > 0 && !b.aside)
	a.aside.keep(id, b.key, b.waiting > 0 && b.aside)
}

// set says what a bidder has and waits for, and how much of that it can only have on nodes
// that are taken.
func (a *auction) set(id int32, running, waiting, stuck int) {
	b := &a.bidders[id]
	b.stuck = int32(stuck)
	has, wants := int(b.running), int(b.waiting)
	a.wanted += running + waiting - has - wants
	a.move(id, running-has, waiting-wants)
}

// decide gives nodes to the best: free ones, and with preemption those of
// worse bidders too, and takes back those above the number there are. The
// bidders in changed then differ in running from before, unless their changes
// came to nothing. What a bidder is given and taken in one decision comes to one of them.
//
// Bidders are passed over that can have no node now but would go before the worst that
// runs: they are aside then. Nobody is kept from a node for them, and they set no level. One that
// takes several nodes at once is passed over where the free ones and those of worse bidders are too few.
// Without preemption nobody is: free nodes are kept until they are enough.
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
		default: // it waits for more free nodes: nobody after it is looked at, or is aside from an earlier decision
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

// back lets the worst of those aside wait with the others again.
func (a *auction) back() {
	id := a.aside.first()
	a.bidders[id].aside = false
	a.line(id)
}

// recall has those who take several nodes at once, and were passed over, wait with the others again.
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

// displace gives a bidder nodes of worse ones, the worst first: if these have too few, none.
func (a *auction) displace(id int32) bool {
	b := &a.bidders[id]
	a.taken = a.taken[:0]
	for a.nodes-a.used < int(b.width) && a.ahead(id) {
		worst := a.running.first()
		n := b.free() // all that one bidder has to give, where that needs no search
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

// whole is the fewest nodes, at least so many, that a bidder can lose, or all that it has.
func (b *bidder) whole(n int) int {
	w := int(b.width)
	return min((n+w-1)/w*w, int(b.running))
}

// free is how many of the nodes that a bidder waits for may be any.
func (b *bidder) free() int { return int(b.waiting - b.stuck) }

// ahead reports whether a bidder goes before the worst that runs.
func (a *auction) ahead(id int32) bool {
	return !a.running.empty() && a.better(id, a.running.first())
}

// next finds the best who waits and is to have a node, free or of a worse bidder, and puts
// aside those before it who can have none.
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

// undo gives everybody back what they had before the decision.
func (a *auction) undo() {
	for _, id := range a.changed {
		b := &a.bidders[id]
		n := int(b.before - b.running)
		a.move(id, n, -n)
	}
	a.settled()
}

// settled forgets the changes.
func (a *auction) settled() {
	for _, id := range a.changed {
		a.bidders[id].touched = false
	}
	a.changed = a.changed[:0]
}

// level is the key of the best who waits; NaN if nobody does.
func (a *auction) level() float64 {
	if a.waiting.empty() {
		return math.NaN()
	}
	return a.bidders[a.waiting.first()].key
}
