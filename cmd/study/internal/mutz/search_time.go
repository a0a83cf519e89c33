package mutz

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
)

func depthName(depth int) string { return fmt.Sprintf("depth %d", depth) }

// byBids are figures 7.5 and 7.6: a day of the machine.
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
		if err := n.timeOrders(n.Search, p, float64(bids), seed); err != nil {
			return err
		}
		if err := n.Finds.time(float64(bids), func() error {
			_, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// timeOrders times the thesis' search of each depth.
func (n *searchNumbers) timeOrders(by []*series, p *reservation.Problem, at float64, seed uint64) error {
	for k, depth := range n.size.depths {
		if err := by[k].time(at, func() error {
			randomOrders(p, len(p.Bids), depth, rand.New(rand.NewPCG(seed, uint64(depth))))
			return nil
		}); err != nil {
			return err
		}
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
		if err := n.timeOrders(n.Small[1:], p, float64(bids), seed); err != nil {
			return err
		}
	}
	return nil
}

// worth is figures 7.8, of few bids, and 7.9.
func (n *searchNumbers) worth(seed uint64) (err error) {
	for _, bids := range n.size.few {
		w, err := n.worths(bids, seed, true)
		if err != nil {
			return err
		}
		n.Few = append(n.Few, w)
	}
	for _, bids := range n.size.bids {
		w, err := n.worths(bids, seed, false)
		if err != nil {
			return err
		}
		n.Many = append(n.Many, w)
	}
	return nil
}

// worths are means over pools of so many bids.
func (n *searchNumbers) worths(bids int, seed uint64, best bool) (*worths, error) {
	w, tests := &worths{Bids: bids, ByDepth: make([]float64, len(n.size.depths))}, float64(n.size.tests)
	if best {
		w.Optimal = make([]int, len(n.size.depths)+1)
	}
	for test := range n.size.tests {
		p := pool(rand.New(rand.NewPCG(seed, uint64(10_000*bids+test))), bids, nodes, dayQuarter, dayQuarter)
		values, err := n.values(p, uint64(test))
		if err != nil {
			return nil, err
		}
		for k, depth := range values[:len(w.ByDepth)] {
			w.ByDepth[k] += depth / tests
		}
		w.Ours += values[len(w.ByDepth)] / tests
		if best {
			w.compare(values, everyOrder(p, true), tests)
		}
	}
	return w, nil
}

// values are what the thesis' searches find, by depth, and at last ours.
func (n *searchNumbers) values(p *reservation.Problem, seed uint64) (out []float64, err error) {
	for _, depth := range n.size.depths {
		out = append(out, randomOrders(p, len(p.Bids), depth, rand.New(rand.NewPCG(seed, uint64(depth)))).value)
	}
	r, err := reservation.Find(p, reservation.Search{Candidates: n.size.depth, Seed: seed})
	if err != nil {
		return nil, err
	}
	return append(out, r.Value), nil
}

// compare counts what is as good as the best. Values are whole numbers.
func (w *worths) compare(values []float64, best, tests float64) {
	w.Best += best / tests
	for k, value := range values {
		if value == best {
			w.Optimal[k]++
		}
	}
}
