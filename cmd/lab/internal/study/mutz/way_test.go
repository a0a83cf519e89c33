package mutz

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

// problem draws a small problem. Some of its bids cannot be served, because they need too many nodes or too much time.
func problem(t *rapid.T, nodes, most int) *reservation.Problem {
	p := &reservation.Problem{Nodes: nodes, Horizon: rapid.IntRange(0, 20).Draw(t, "T")}
	for range rapid.IntRange(0, most).Draw(t, "bids") {
		b := reservation.Bid{Length: rapid.IntRange(0, 8).Draw(t, "l"), Deadline: rapid.IntRange(0, 24).Draw(t, "d"),
			Value: rapid.Float64Range(0, 10).Draw(t, "v")}
		if nodes > 0 {
			b.Width = rapid.IntRange(1, nodes+1).Draw(t, "n")
		}
		p.Bids = append(p.Bids, b)
	}
	return p
}

func shuffled(t *rapid.T, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return rapid.Permutation(order).Draw(t, "order")
}

func about(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) }

// The thesis keeps the free nodes in a list of segments, and Candor keeps them in a tree. For the same order of bids,
// both must give each bid the same time.
func TestSegmentsAreAProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 4, 9)
		order := shuffled(t, len(p.Bids))
		placed, _, _, err := reservation.Orders(p, [][]int{order})
		if err != nil {
			t.Fatal(err)
		}
		var s segments
		s.reset(p.Nodes)
		for _, i := range order {
			if met := s.meet(p, i); met != (placed[0].Start[i] != reservation.Lost) {
				t.Fatalf("bid %d met: %v, starts %v", i, met, placed[0].Start)
			}
		}
	})
}

// The search with tables, the search by brute force and package reservation must give the same values and payments.
func TestTablesFindTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 0, 6)
		o, err := reservation.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		fast, slow := table(p, -1), brute(p, -1)
		if !about(fast.value, o.Value) || !about(slow.value, o.Value) {
			t.Fatalf("table %v, brute force %v, ours %v", fast.value, slow.value, o.Value)
		}
		for i := range p.Bids {
			if without := table(p, i).value; !about(without, brute(p, i).value) || slices.Contains(o.Winners(), i) && !about(without, o.Without[i]) {
				t.Fatalf("without %d: table %v, brute force %v, ours %v", i, without, brute(p, i).value, o.Without[i])
			}
		}
	})
}

// A search over all orders finds the best value, and must find the same value with its shortcuts and without them. No
// other search may find a larger value.
func TestEveryOrderIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 3, 5)
		plain, short := everyOrder(p, false), everyOrder(p, true)
		if !about(plain, short) {
			t.Fatalf("%v, with short cuts %v", plain, short)
		}
		found, err := reservation.Find(p, reservation.Search{Candidates: 20, Seed: 1, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		random := randomOrders(p, len(p.Bids), 20, rand.New(rand.NewPCG(1, 1)))
		if random.value > plain+1e-9 || found.Value > plain+1e-9 {
			t.Fatalf("best %v, random orders %v, ours %v", plain, random.value, found.Value)
		}
	})
}

// The thesis' way to compute payments and the way of this package must agree: payments may differ by at most six
// standard errors.
func TestAnewIsUnbiased(t *testing.T) {
	for _, nodes := range []int{0, 8} {
		c := crowd{jobs: 5, nodes: nodes, scale: scale{value: 100, delay: 1}, length: 40}
		q := c.queue(rand.New(rand.NewPCG(3, 3)))
		p, err := batchqueue.Pay(q, c.expectation(batchqueue.Priority, 1<<16, 1))
		if err != nil {
			t.Fatal(err)
		}
		const runs = 30
		for i := range q.Jobs {
			var net []float64
			for run := range uint64(runs) {
				net = append(net, newAnew(q, c.scale, 400, rand.New(rand.NewPCG(run, uint64(i)))).payment(i))
			}
			mean := 0.0
			for _, x := range net {
				mean += x / runs
			}
			if off, most := math.Abs(mean-p.Net[i]), 6*(deviation(net)/math.Sqrt(runs)+p.Errors[i]); off > most || most > 6 {
				t.Errorf("%d nodes, job %d: %v, ours %v, off by %v of at most %v", nodes, i, mean, p.Net[i], off, most)
			}
		}
	}
}
