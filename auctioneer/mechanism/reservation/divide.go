package reservation

import (
	"math"
	"math/rand/v2"
	"slices"
)

// division divides the machine's nodes into groups, which are called lanes. It gives each bid to at most one lane,
// which has at least as many nodes as the bid needs.
type division struct {
	widths []int   // by lane: its number of nodes, in ascending order
	bids   [][]int // by lane: its bids
}

// divide computes the division with number c, and stores it in d. First it draws the width of the widest lane at random,
// with the same probability for each order of magnitude. It leaves out bids that are wider. Each other lane has the same
// width, or the width of a random bid. Each bid goes to one of the narrowest lanes that are wide enough, or sometimes to
// any lane that is wide enough.
func (a *plan) divide(c int, d *division) {
	r := a.random(c)
	if a.fixed {
		a.divideFixed(c, d, r)
		return
	}
	widest := int(math.Exp2(math.Log2(float64(a.widest)) * r.Float64()))
	equal := r.IntN(3) == 0
	d.widths = d.widths[:0]
	for rest := a.nodes; rest > 0 && len(a.shapes) > 0; {
		w := min(widest, rest)
		if !equal {
			w = a.draw(r, w)
		}
		d.widths = append(d.widths, w)
		rest -= w
	}
	slices.Sort(d.widths)
	d.empty()
	a.assign(d, widest, 0.25*float64(r.IntN(3)), r)
}

// empty removes all bids: afterwards each lane (group of nodes) in d.widths is empty.
func (d *division) empty() {
	for len(d.bids) < len(d.widths) {
		d.bids = append(d.bids, nil)
	}
	d.bids = d.bids[:len(d.widths)]
	for k := range d.bids {
		d.bids[k] = d.bids[k][:0]
	}
}

// divideFixed draws a division of the machine's nodes into lanes, without looking at bids. In the first division, the
// whole machine is one lane. For each bid, divideFixed draws a node, and gives the bid to the lane of this node. If the
// lane is narrower than the bid, the bid is left out.
func (a *plan) divideFixed(c int, d *division, r *rand.Rand) {
	widest, equal := a.nodes, true
	if c > 0 {
		widest, equal = int(math.Exp2(math.Log2(float64(a.nodes))*r.Float64())), r.IntN(2) == 0
	}
	d.widths = d.widths[:0]
	for rest := a.nodes; rest > 0; {
		w := min(widest, rest)
		if !equal {
			w = 1 + r.IntN(w)
		}
		d.widths = append(d.widths, w)
		rest -= w
	}
	d.empty()
	for k := range a.shapes {
		lane, node := 0, r.IntN(a.nodes)
		for node >= d.widths[lane] {
			node -= d.widths[lane]
			lane++
		}
		if x := &a.shapes[k]; x.width <= d.widths[lane] {
			d.bids[lane] = append(d.bids[lane], x.bid)
		}
	}
}

// draw picks a bid at random, up to 20 times, until the bid's width is at most `most`. It returns this width. If all
// these bids are wider, it returns `most`.
func (a *plan) draw(r *rand.Rand, most int) int {
	const attempts = 20
	for range attempts {
		if w := a.shapes[r.IntN(len(a.shapes))].width; w <= most {
			return w
		}
	}
	return most
}

// assign gives each bid that is at most as wide as `widest` to a lane. With the probability `loose`, a bid may go to a
// wider lane than it needs.
func (a *plan) assign(d *division, widest int, loose float64, r *rand.Rand) {
	for k := range a.shapes {
		x := &a.shapes[k]
		first, _ := slices.BinarySearch(d.widths, x.width)
		if x.width > widest || first == len(d.widths) {
			continue
		}
		last := len(d.widths)
		if r.Float64() >= loose {
			last, _ = slices.BinarySearch(d.widths, d.widths[first]+1)
		}
		lane := first + r.IntN(last-first)
		d.bids[lane] = append(d.bids[lane], x.bid)
	}
}
