package reservation

import (
	"math"
	"math/rand/v2"
)

// plan makes the candidates of a search for the best schedule. A candidate is an order of the bids, or a division of
// the nodes into lanes. The candidates depend on the lengths, deadlines and widths of the bids, and not on their
// values.
type plan struct {
	nodes  int
	seed   uint64
	shapes []shape // the bids that fit, by index
	widest int
	stride int // candidate c consists of lanes if c is a multiple of stride
	fixed  bool
}

// shape has the numbers of a bid that determine the candidates of a plan.
type shape struct {
	bid   int
	width int
	logs  [3]float64 // logarithms of length, width and the time to the deadline
}

func newPlan(p *Problem, seed uint64) *plan {
	a := &plan{nodes: p.Nodes, seed: seed, widest: 1}
	horizon := 0
	for i, bid := range p.Bids {
		if !p.fits(i) {
			continue
		}
		log := func(x int) float64 { return math.Log1p(float64(x)) }
		a.shapes = append(a.shapes, shape{i, bid.Width, [3]float64{log(bid.Length), log(bid.Width), log(p.latest(i))}})
		a.widest = max(a.widest, bid.Width)
		horizon = max(horizon, p.latest(i))
	}
	a.stride = min(2+horizon/rowsPerPlacement, maxStride)
	return a
}

// newFixedPlan makes a plan that looks only at divisions of the machine into lanes (groups of nodes that each run one
// job at a time). The divisions depend on the number of bids, but not on what the bids declare.
func newFixedPlan(p *Problem, seed uint64) *plan {
	a := &plan{nodes: p.Nodes, seed: seed, stride: 1, fixed: true}
	for i, bid := range p.Bids {
		a.shapes = append(a.shapes, shape{bid: i, width: bid.Width})
	}
	return a
}

// A candidate is an order of the bids, or a division of the nodes into lanes. Time is counted in granules. A division
// takes longer to evaluate than an order: one order's time for every rowsPerPlacement granules of the period. So only
// one candidate in `stride` is a division. With a longer period the stride is larger, at most maxStride.
const rowsPerPlacement, maxStride = 400, 64

func (a *plan) isOrder(c int) bool { return c%a.stride != a.stride-1 }

func (a *plan) kind(c int) string {
	if a.isOrder(c) {
		return "order"
	}
	return "lanes"
}

// random returns the random source for candidate c.
func (a *plan) random(c int) *rand.Rand {
	return rand.New(rand.NewPCG(a.seed, uint64(c)*0x9e3779b97f4a7c15))
}

// The first candidates of a search place the bids in fixed orders: they sort the bids by length^a · width^b ·
// deadline^c. For each of these orders, standard has the exponents a, b and c: by deadline, by area, by length, by
// width, …
var standard = [][3]float64{{0, 0, 1}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 1}, {1, 2, 0}, {-1, -1, 0}, {0, -1, 0}}

// order returns the order in which candidate c places the bids. The result is valid until the sorter is used again.
func (a *plan) order(c int, s *sorter) []int {
	r := a.random(c)
	var power [3]float64
	noise := 0.0
	switch k := c - c/a.stride; {
	case k < len(standard):
		power = standard[k]
	case k%3 == 0: // a random order
		noise = 1
	default: // sorted by a random combination of size, length, width and urgency, ascending or descending
		power = [3]float64{3*r.Float64() - 1.5, 3*r.Float64() - 1.5, 2*r.Float64() - 0.5}
		noise = 4 * r.Float64() * r.Float64()
	}
	s.reset(len(a.shapes))
	for k := range a.shapes {
		logs := &a.shapes[k].logs
		s.keys[k] = power[0]*logs[0] + power[1]*logs[1] + power[2]*logs[2] + noise*r.Float64()
	}
	s.sort()
	for k, at := range s.order {
		s.order[k] = a.shapes[at].bid
	}
	return s.order
}

// sorter sorts positions by keys. It puts them into buckets; within a bucket, the positions keep their order.
type sorter struct {
	keys  []float64
	slot  []uint16
	order []int
	count [buckets + 1]int
}

const buckets = 1 << 12

func (s *sorter) reset(n int) {
	if cap(s.keys) < n {
		s.keys, s.slot, s.order = make([]float64, n), make([]uint16, n), make([]int, n)
	}
	s.keys, s.slot, s.order = s.keys[:n], s.slot[:n], s.order[:n]
}

func (s *sorter) sort() {
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range s.keys {
		low, high = min(low, x), max(high, x)
	}
	scale := 0.0
	if high > low {
		scale = (buckets - 1) / (high - low)
	}
	clear(s.count[:])
	for k, x := range s.keys {
		s.slot[k] = uint16((x - low) * scale)
		s.count[s.slot[k]+1]++
	}
	for b := range buckets {
		s.count[b+1] += s.count[b]
	}
	for k, b := range s.slot {
		s.order[s.count[b]] = k
		s.count[b]++
	}
}
