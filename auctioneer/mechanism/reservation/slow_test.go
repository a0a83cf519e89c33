package reservation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// small draws a problem with few bids, maybe with ties, zeros, and bids that cannot be served.
func small(r *rand.Rand, bids int, nodes int) *Problem {
	p := &Problem{Nodes: nodes, Horizon: r.IntN(20)}
	scale := []float64{1, 0.01, 1. / 3}[r.IntN(3)]
	for range bids {
		b := Bid{Length: r.IntN(8), Deadline: r.IntN(24), Value: float64(r.IntN(12)) * scale}
		if r.IntN(4) > 0 {
			b.Length = 2 * (1 + b.Length/2) // give lengths a common divisor
		}
		if nodes > 0 {
			b.Width = 1 + r.IntN(nodes+1)
		}
		p.Bids = append(p.Bids, b)
	}
	return p
}

// meets reports whether all bids of a set can be served in the order of their deadlines, if each bid takes the whole
// machine.
func meets(p *Problem, set int) bool {
	var bids []Bid
	for i, b := range p.Bids {
		if set>>i&1 == 1 {
			bids = append(bids, Bid{Length: b.Length, Deadline: p.latest(i)})
		}
	}
	slices.SortFunc(bids, func(a, b Bid) int { return a.Deadline - b.Deadline })
	t := 0
	for _, b := range bids {
		if t += b.Length; t > b.Deadline {
			return false
		}
	}
	return true
}

// bestSubset looks at all sets of bids that can be served and that do not contain the given bid. It returns the largest
// value of such a set.
func bestSubset(p *Problem, without int) float64 {
	best := 0.0
	for set := range 1 << len(p.Bids) {
		if without >= 0 && set>>without&1 == 1 || !meets(p, set) {
			continue
		}
		best = max(best, worthOf(p, set))
	}
	return best
}

func worthOf(p *Problem, set int) (sum float64) {
	for i, b := range p.Bids {
		if set>>i&1 == 1 {
			sum += b.Value
		}
	}
	return sum
}

func TestSolveIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for k := range 3000 {
		p := small(r, r.IntN(9), 0)
		o, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if want := bestSubset(p, -1); math.Abs(o.Value-want) > 1e-12*want {
			t.Fatalf("%d: value %v, want %v: %+v", k, o.Value, want, p)
		}
		checkSchedule(t, p, o)
		for i := range p.Bids {
			if want := bestSubset(p, i); math.Abs(o.Without[i]-want) > 1e-12*want {
				t.Fatalf("%d: without %d %v, want %v: %+v", k, i, o.Without[i], want, p)
			}
		}
	}
}

// checkSchedule checks four things. Every served bid ends in time. There are always enough nodes. The total value is
// the sum of the served bids' values. Each payment is at least 0 and at most the bid's value.
func checkSchedule(t *testing.T, p *Problem, o *Outcome) {
	t.Helper()
	sum := 0.0
	for i, start := range o.Start {
		b, price := p.Bids[i], o.Payments[i]
		if start == Lost {
			if price != 0 || o.Without[i] != o.Value {
				t.Fatalf("bid %d lost and pays %v: %+v %+v", i, price, p, o)
			}
			continue
		}
		sum += b.Value
		if start < 0 || start+b.Length > p.latest(i) || !(price >= 0 && price <= b.Value) {
			t.Fatalf("bid %d starts at %d and pays %v: %+v %+v", i, start, price, p, o)
		}
		taken := 0 // nodes in use at this bid's start; only a start can raise the number
		for l, at := range o.Start {
			if at != Lost && at <= start && start < at+p.Bids[l].Length {
				taken += max(1, p.Bids[l].Width)
			}
		}
		if taken > max(1, p.Nodes) {
			t.Fatalf("%d nodes taken at %d: %+v %+v", taken, start, p, o)
		}
	}
	if math.Abs(sum-o.Value) > 1e-12*sum {
		t.Fatalf("value %v, winners' values sum to %v", o.Value, sum)
	}
}

// With a few hundred bids, Solve divides its table into many blocks of rows. To compute the payment of a winner, Solve
// needs the highest total value of the other bids. The test computes the same value from a problem without the winner's
// bid. The two must be equal.
func TestBlocksDoNotMatter(t *testing.T) {
	p := thesis(3, 300, 0, 200, 30)
	o, err := Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	checkSchedule(t, p, o)
	if len(o.Winners()) < 20 {
		t.Fatalf("only %d winners", len(o.Winners()))
	}
	for _, i := range o.Winners() {
		less := &Problem{Horizon: p.Horizon, Bids: slices.Delete(slices.Clone(p.Bids), i, i+1)}
		without, err := Solve(less)
		if err != nil || without.Value != o.Without[i] {
			t.Errorf("without %d %v, solved anew %v (%v)", i, o.Without[i], without.Value, err)
		}
	}
}

func firstFit(p *Problem, order []int) []int {
	free, start := slices.Repeat([]int{p.Nodes}, p.Horizon+1), slices.Repeat([]int{Lost}, len(p.Bids))
	for _, i := range order {
		b := p.Bids[i]
		for at := 0; at+b.Length <= p.latest(i) && start[i] == Lost; at++ {
			window := free[at : at+max(b.Length, 1)]
			if !slices.ContainsFunc(window, func(n int) bool { return n < b.Width }) {
				start[i] = at
				for t := range b.Length {
					window[t] -= b.Width
				}
			}
		}
	}
	return start
}

func TestOrdersAreSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for k := range 2000 {
		p := small(r, 1+r.IntN(10), 1+r.IntN(5))
		var orders [][]int
		for range 1 + r.IntN(5) {
			orders = append(orders, r.Perm(len(p.Bids)))
		}
		placed, best, o, err := Orders(p, orders)
		if err != nil {
			t.Fatal(err)
		}
		checkSchedule(t, p, o)
		want, first := -1.0, -1
		for i, order := range orders {
			if start := firstFit(p, order); !slices.Equal(placed[i].Start, start) {
				t.Fatalf("%d: order %v starts %v, want %v: %+v", k, order, placed[i].Start, start, p)
			}
			if placed[i].Value > want {
				want, first = placed[i].Value, i
			}
		}
		// If the values of the bids are thirds, rounding decides which schedules have equal values. So the test
		// compares the best order only if all values are short decimals.
		if decimal := newMoney(p.Bids).decimal > 0; o.Value != want || placed[best].Value != want || decimal && best != first {
			t.Fatalf("%d: order %d of %v, want %d of %v", k, best, o.Value, first, want)
		}
		for i := range p.Bids {
			if want := withoutSlowly(p, placed, i); math.Abs(o.Without[i]-want) > 1e-12*want {
				t.Fatalf("%d: without %d %v, want %v: %+v", k, i, o.Without[i], want, p)
			}
		}
	}
}

func withoutSlowly(p *Problem, placed []Placement, i int) (best float64) {
	for _, x := range placed {
		value := x.Value
		if x.Start[i] != Lost {
			value -= p.Bids[i].Value
		}
		best = max(best, value)
	}
	return best
}

// Find must find a schedule with the same value as findSlowly. For each winner, the value of the auction without this
// winner must also be the same.
func TestFindIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for k := range 200 {
		p := small(r, 1+r.IntN(8), 1+r.IntN(5))
		s := Search{Candidates: 1 + r.IntN(40), Seed: uint64(k), Workers: 1 + r.IntN(3)}
		o, err := Find(p, s)
		if err != nil {
			t.Fatal(err)
		}
		checkSchedule(t, p, &o.Outcome)
		if want := findSlowly(p, s, -1); math.Abs(o.Value-want) > 1e-12*want {
			t.Fatalf("%d: value %v, want %v: %+v %+v", k, o.Value, want, p, s)
		}
		for _, i := range o.Winners() {
			if want := findSlowly(p, s, i); math.Abs(o.Without[i]-want) > 1e-12*want {
				t.Fatalf("%d: without %d %v, want %v: %+v %+v", k, i, o.Without[i], want, p, s)
			}
		}
	}
}

// findSlowly returns the value of the best candidate. The bid with the index `without` counts as worth nothing. In each
// lane of a candidate, findSlowly tries all sets of bids.
func findSlowly(p *Problem, s Search, without int) (best float64) {
	plan := newPlan(p, s.Seed)
	counted := *p
	counted.Bids = slices.Clone(p.Bids)
	if without >= 0 {
		counted.Bids[without].Value = 0
	}
	for c := range s.Candidates {
		value := 0.0
		if plan.isOrder(c) {
			for i, start := range firstFit(p, plan.order(c, new(sorter))) {
				if start != Lost {
					value += counted.Bids[i].Value
				}
			}
		} else {
			var d division
			plan.divide(c, &d)
			for _, bids := range d.bids {
				lane := &Problem{Horizon: p.Horizon}
				for _, i := range bids {
					lane.Bids = append(lane.Bids, counted.Bids[i])
				}
				value += bestSubset(lane, -1)
			}
		}
		best = max(best, value)
	}
	return best
}
