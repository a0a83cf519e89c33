package mutz

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

func depthName(depth int) string { return fmt.Sprintf("depth %d", depth) }

// byBids are figures 7.5, 7.6 and 7.9: a day of the machine.
func (n *searchNumbers) byBids(seed uint64) error {
	n.Table, n.Finds = &series{Name: "whole machine: table"}, &series{Name: fmt.Sprintf("ours, %d candidates, with payments", n.size.depth)}
	for _, depth := range n.size.depths {
		n.Search = append(n.Search, &series{Name: depthName(depth)})
	}
	for _, bids := range n.size.bids {
		whole := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, 0, dayQuarter, dayQuarter)
		if err := n.Table.time(float64(bids), func() error { table(whole, -1); return nil }); err != nil {
			return err
		}
		p := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, nodes, dayQuarter, dayQuarter)
		w := &worths{Bids: bids}
		for k, depth := range n.size.depths {
			var best scheduled
			if err := n.Search[k].time(float64(bids), func() error {
				best = randomOrders(p, bids, depth, rand.New(rand.NewPCG(seed, uint64(depth))))
				return nil
			}); err != nil {
				return err
			}
			w.ByDepth = append(w.ByDepth, best.value)
		}
		if err := n.Finds.time(float64(bids), func() error {
			r, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
			if err == nil {
				w.Ours = r.Value
			}
			return err
		}); err != nil {
			return err
		}
		n.Many = append(n.Many, w)
	}
	return nil
}

// small is figure 7.7: all orders of few bids, one by one, beside the searches.
func (n *searchNumbers) small(seed uint64) error {
	n.Small = []*series{{Name: "all orders"}}
	for _, depth := range n.size.depths {
		n.Small = append(n.Small, &series{Name: depthName(depth)})
	}
	for _, bids := range n.size.brute {
		p := pool(rand.New(rand.NewPCG(seed, uint64(bids))), bids, nodes, dayQuarter, dayQuarter)
		if err := n.Small[0].time(float64(bids), func() error { everyOrder(p, false); return nil }); err != nil {
			return err
		}
		for k, depth := range n.size.depths {
			if err := n.Small[1+k].time(float64(bids), func() error {
				randomOrders(p, bids, depth, rand.New(rand.NewPCG(seed, uint64(depth))))
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// few is figure 7.8: what the searches find of the most that any order is worth.
func (n *searchNumbers) few(seed uint64) error {
	for _, bids := range n.size.few {
		w := &worths{Bids: bids, ByDepth: make([]float64, len(n.size.depths)), Optimal: make([]int, len(n.size.depths)+1)}
		for test := range n.size.tests {
			p := pool(rand.New(rand.NewPCG(seed, uint64(1000*bids+test))), bids, nodes, dayQuarter, dayQuarter)
			if err := n.test(w, p, uint64(test)); err != nil {
				return err
			}
		}
		n.Few = append(n.Few, w)
	}
	return nil
}

// test adds a pool to the means. Values are whole numbers, and sums of them exact.
func (n *searchNumbers) test(w *worths, p *reservation.Problem, seed uint64) error {
	tests, best := float64(n.size.tests), everyOrder(p, true)
	w.Best += best / tests
	for k, depth := range n.size.depths {
		value := randomOrders(p, len(p.Bids), depth, rand.New(rand.NewPCG(seed, uint64(depth)))).value
		if w.ByDepth[k] += value / tests; value == best {
			w.Optimal[k]++
		}
	}
	r, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
	if err != nil {
		return err
	}
	if w.Ours += r.Value / tests; r.Value == best {
		w.Optimal[len(n.size.depths)]++
	}
	return nil
}
