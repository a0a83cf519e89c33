package mutz

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/messages"
)

const searchName = "mutz-reservation-width"

// Search is the study of figures 7.1 to 7.11.
var Search = study.Study{
	Name:  searchName,
	About: "figures 7.1-7.11: reservations of any width: incentives, time and worth of the search, by its depth",
	Run:   search,
}

type searchSize struct {
	pools  int   // number of pools of competitors, in figures 7.1 to 7.4
	depth  int   // depth of the searches in these figures
	runs   int   // number of runs of each search in figures 7.10 and 7.11
	tests  int   // number of pools of figures 7.8 and 7.9
	depths []int // depths in figures 7.6 to 7.11
	bids   []int // numbers of bids in figures 7.5, 7.6 and 7.9
	few    []int // numbers of bids of figure 7.8
	brute  []int // numbers of bids of figure 7.7
}

var (
	fullSearch = searchSize{pools: 100, depth: 1000, runs: 40, depths: []int{100, 1000, 10_000},
		bids: []int{100, 200, 500, 1000, 2000}, few: []int{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}, tests: 20, brute: []int{2, 3, 4, 5, 6, 7, 8, 9, 10}}
	quickSearch = searchSize{pools: 8, depth: 50, runs: 8, depths: []int{10, 100, 400},
		bids: []int{20, 40, 80}, few: []int{2, 6, 10}, tests: 4, brute: []int{2, 4, 6}}
)

// The thesis does not give the numbers of nodes and of competitors for figures 7.1 to 7.4, 7.10 and 7.11. The constants
// `nodes` and `rivals` are our choice. With them, the participant's job runs about as often as in the thesis. In these
// figures, the auction's period is the same as in figures 5.5 to 5.7. In the other figures, the period is a day of
// dayQuarter quarters of an hour.
const (
	nodes      = 16
	rivals     = 40
	dayQuarter = 96
)

// searched is a bid whose chance to be served is measured. Its deadline, value and width come from an example in the
// thesis. The thesis does not give the length, so we chose it.
var searched = reservation.Bid{Length: 30, Deadline: 82, Value: 470, Width: 6}

type searchNumbers struct {
	Thesis []*sweep   `json:"thesis"` // figures 7.1 to 7.4
	Ours   []*sweep   `json:"ours"`
	Price  float64    `json:"price"`    // price of the participant in the pool of figures 7.10 and 7.11
	Depths []*byDepth `json:"by_depth"` // figures 7.10 and 7.11
	Table  *series    `json:"table"`    // figure 7.5: a schedule by the program for a whole machine
	Search []*series  `json:"search"`   // figures 7.5 and 7.6: by random orders, by depth
	Finds  *series    `json:"finds"`    // by our search, with the depth of figures 7.1 to 7.4
	Small  []*series  `json:"small"`    // figure 7.7: all orders, and by depth
	Few    []*worths  `json:"few"`      // figure 7.8
	Many   []*worths  `json:"many"`     // figure 7.9

	size searchSize
	failure
}

// The depth of a search is the number of orders that it tries. byDepth has the participant's results with one depth.
type byDepth struct {
	Name    string    `json:"name"`
	Payoffs *sweep    `json:"payoffs"` // figure 7.10
	Runs    []float64 `json:"runs"`    // part of the runs in which its bid is met, by declaration; figure 7.11
}

// worths has results for one number of bids: the value of the schedule that each search finds. Each value is a mean
// over the pools of bids.
type worths struct {
	Bids    int       `json:"bids"`
	ByDepth []float64 `json:"by_depth"` // over random orders
	Ours    float64   `json:"ours"`
	Best    float64   `json:"best,omitempty"`    // over all orders
	Optimal []int     `json:"optimal,omitempty"` // pools in which a search finds it: by depth, and ours
}

func search(o study.Options) (*study.Report, error) {
	n := &searchNumbers{size: study.Sized(o, fullSearch, quickSearch)}
	for _, part := range []func(uint64){n.payoffs, n.byDepth, n.byBids, n.small, n.worth} {
		part(o.Seed)
	}
	if n.err != nil {
		return nil, n.err
	}
	return &study.Report{Numbers: n, Page: n.page(), Figures: n.figures()}, nil
}

// contest returns a problem with the bids of the competitors and, as the last bid, `told`: the bid that the participant
// declares.
func contest(seed, number uint64, told reservation.Bid) *reservation.Problem {
	p := pool(rand.New(rand.NewPCG(seed, number)), rivals, nodes, units, units)
	p.Bids = append(p.Bids, told)
	return p
}

// payoffs computes figures 7.1 to 7.4. A figure shows dots. A dot is one random auction, in which one bidder makes
// several declarations. The thesis draws new random orders for each declaration of a dot. Our search uses the same
// orders for all declarations of a dot.
func (n *searchNumbers) payoffs(seed uint64) {
	for _, d := range []reservationDeclaration{
		{sweep{Figure: "7.1", Declares: "v", Truth: searched.Value}, steps(0, mostWorth, 21), value},
		{sweep{Figure: "7.2", Declares: "d", Truth: float64(searched.Deadline)}, steps(2, float64(searched.Deadline), 21), deadline},
		{sweep{Figure: "7.3", Declares: "l", Truth: float64(searched.Length)}, steps(float64(searched.Length), 80, 11), length},
		{sweep{Figure: "7.4", Declares: "n", Truth: float64(searched.Width)},
			steps(float64(searched.Width), nodes, nodes-searched.Width+1), breadth},
	} {
		n.Thesis = append(n.Thesis, n.explore(d.sweep, d.at, n.size.pools, func(x float64, dot int) (float64, error) {
			p := contest(seed, uint64(dot), d.told(searched, x))
			return payoffOf(anewSearch(p, n.size.depth, rand.New(rand.NewPCG(uint64(dot), math.Float64bits(x))))), nil
		}))
		n.Ours = append(n.Ours, n.explore(d.sweep, d.at, n.size.pools, func(x float64, dot int) (float64, error) {
			met, payment, err := ourSearch(contest(seed, uint64(dot), d.told(searched, x)), n.size.depth, uint64(dot))
			return payoffOf(met, payment), err
		}))
	}
}

func payoffOf(met bool, payment float64) float64 {
	if !met {
		return 0
	}
	return searched.Value - payment
}

// Figures 7.10 and 7.11 show one bidder, the participant, among other bidders. They use the first pool of bidders in
// which the participant's price is from lowestPrice to highestPrice. This range is around 100, because in the thesis
// the participant gets its slots from a declared value of about 100 on.
const (
	lowestPrice, highestPrice = 90, 110
	mostPools                 = 10_000
)

// priced looks for a pool of bids in which the participant is served and pays from lowestPrice to highestPrice. It
// returns the number of the first such pool. It uses our search, not the thesis' search.
func (n *searchNumbers) priced(seed uint64) (number uint64, err error) {
	for ; number < mostPools; number++ {
		met, price, err := ourSearch(contest(seed, number, searched), n.size.depth, seed)
		if err != nil {
			return 0, err
		}
		if met && price >= lowestPrice && price <= highestPrice {
			n.Price = price
			return number, nil
		}
	}
	return 0, messages.Errorf(messages.Internal, "in %d pools no participant's price is from %d to %d: try another seed", mostPools, lowestPrice, highestPrice)
}

// byDepth computes figures 7.10 and 7.11 for all depths of the thesis' search, and for two depths of ours.
func (n *searchNumbers) byDepth(seed uint64) {
	pool, err := n.priced(seed)
	if err != nil {
		n.err = cmp.Or(n.err, err)
		return
	}
	contest := func(x float64) *reservation.Problem {
		told := searched
		told.Value = x
		return contest(seed, pool, told)
	}
	for k, depth := range n.size.depths {
		n.depth(depthName(depth), func(x float64, run int) (bool, float64, error) {
			met, payment := anewSearch(contest(x), depth, rand.New(rand.NewPCG(uint64(run+k*n.size.runs), math.Float64bits(x))))
			return met, payment, nil
		})
	}
	for _, depth := range []int{n.size.depth, n.size.depths[len(n.size.depths)-1]} {
		n.depth("ours, "+depthName(depth), func(x float64, run int) (bool, float64, error) {
			return ourSearch(contest(x), depth, uint64(run))
		})
	}
}

// depth computes the numbers of figures 7.10 and 7.11 for one kind of search.
func (n *searchNumbers) depth(name string, try func(x float64, run int) (met bool, payment float64, err error)) {
	d, often := &byDepth{Name: name}, map[float64]float64{}
	s := sweep{Figure: "7.10", Declares: "v", Truth: searched.Value}
	d.Payoffs = n.explore(s, steps(0, mostWorth, 21), n.size.runs, func(x float64, run int) (float64, error) {
		met, payment, err := try(x, run)
		if met {
			often[x] += 1 / float64(n.size.runs)
		}
		return payoffOf(met, payment), err
	})
	if n.err == nil {
		d.Runs = study.Each(d.Payoffs.Points, func(p *point) float64 { return often[p.At] })
		n.Depths = append(n.Depths, d)
	}
}
