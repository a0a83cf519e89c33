package mutz

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

func depthName(depth int) string { return fmt.Sprintf("depth %d", depth) }

func (n *searchNumbers) depthSeries() []*series {
	return study.Each(n.size.depths, func(depth *int) *series { return &series{Name: depthName(*depth)} })
}

// byBids computes figures 7.5 and 7.6: how long the search takes for different numbers of bids. The problem is one day
// of a machine.
func (n *searchNumbers) byBids(seed uint64) {
	n.Table, n.Finds = &series{Name: "whole machine: table"}, &series{Name: fmt.Sprintf("ours, %d candidates, with payments", n.size.depth)}
	n.Search = n.depthSeries()
	for _, bids := range n.size.bids {
		whole := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, 0, dayQuarter, dayQuarter)
		n.timeAll(n.Table, float64(bids), func() { table(whole, -1) })
		p := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, nodes, dayQuarter, dayQuarter)
		n.timeOrders(n.Search, p, seed)
		n.time(n.Finds, float64(bids), func() error {
			_, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
			return err
		})
	}
}

func (n *searchNumbers) timeOrders(by []*series, p *reservation.Problem, seed uint64) {
	for k, depth := range n.size.depths {
		n.timeAll(by[k], float64(len(p.Bids)), func() { randomOrders(p, len(p.Bids), depth, rand.New(rand.NewPCG(seed, uint64(depth)))) })
	}
}

// small computes figure 7.7: the time to try all orders of a few bids, and the times of the searches.
func (n *searchNumbers) small(seed uint64) {
	n.Small = append([]*series{{Name: "all orders"}}, n.depthSeries()...)
	for _, bids := range n.size.brute {
		p := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, nodes, dayQuarter, dayQuarter)
		n.timeAll(n.Small[0], float64(bids), func() { everyOrder(p, false) })
		n.timeOrders(n.Small[1:], p, seed)
	}
}

// worth computes figure 7.8 (few bids) and figure 7.9 (many bids).
func (n *searchNumbers) worth(seed uint64) {
	for _, bids := range n.size.few {
		n.Few = append(n.Few, n.worths(bids, seed, true))
	}
	for _, bids := range n.size.bids {
		n.Many = append(n.Many, n.worths(bids, seed, false))
	}
}

// worths returns the values that the searches find, as means over pools of a number of bids. If `best` is true, it also
// finds the best schedules.
func (n *searchNumbers) worths(bids int, seed uint64, best bool) *worths {
	w, tests := &worths{Bids: bids, ByDepth: make([]float64, len(n.size.depths))}, float64(n.size.tests)
	if best {
		w.Optimal = make([]int, len(n.size.depths)+1)
	}
	for test := range n.size.tests {
		p := pool(rand.New(rand.NewPCG(seed, uint64(10_000*bids+test))), bids, nodes, dayQuarter, dayQuarter)
		values := n.values(p, uint64(test))
		if n.err != nil {
			return nil
		}
		for k, depth := range values[:len(w.ByDepth)] {
			w.ByDepth[k] += depth / tests
		}
		w.Ours += values[len(w.ByDepth)] / tests
		if best {
			w.compare(values, everyOrder(p, true), tests)
		}
	}
	return w
}

// values returns the value that the thesis' search finds, for each search depth in order. The last element is the value
// that our search finds.
func (n *searchNumbers) values(p *reservation.Problem, seed uint64) (out []float64) {
	for _, depth := range n.size.depths {
		out = append(out, randomOrders(p, len(p.Bids), depth, rand.New(rand.NewPCG(seed, uint64(depth)))).value)
	}
	r, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
	if err != nil {
		n.err = cmp.Or(n.err, err)
		return nil
	}
	return append(out, r.Value)
}

// compare adds the results for one group of jobs. For each search that found the best value, it adds 1 to the search's
// element of Optimal. The values are whole numbers, so they can be compared exactly.
func (w *worths) compare(values []float64, best, tests float64) {
	w.Best += best / tests
	for k, value := range values {
		if value == best {
			w.Optimal[k]++
		}
	}
}
