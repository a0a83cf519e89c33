package reservation

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// input is the document of `candor solve reservation`.
type input struct {
	Nodes   *int         `json:"N,omitempty"`
	Horizon int          `json:"T"`
	Bids    []inputBid   `json:"bids"`
	Orders  [][]int      `json:"orders,omitempty"`
	Search  *inputSearch `json:"search,omitempty"`
}

type inputBid struct {
	L int     `json:"l"`
	D int     `json:"d"`
	V float64 `json:"v"`
	N *int    `json:"n,omitempty"`
}

type inputSearch struct {
	Orders int    `json:"orders"`
	Seed   uint64 `json:"seed,omitempty"`
}

// output is the answer that `candor solve reservation` prints. The start of a bid that is not served is null.
type output struct {
	Optimal  *float64   `json:"optimal_value,omitempty"`
	PerOrder []perOrder `json:"per_order,omitempty"`
	*found
	Winners  []int     `json:"winners"`
	Start    []*int    `json:"start"`
	Without  []float64 `json:"value_without"`
	Payments []float64 `json:"payments"`
	Revenue  float64   `json:"revenue"`
}

type found struct {
	BestOrder int     `json:"best_order"`
	BestValue float64 `json:"best_value"`
	Kind      string  `json:"kind,omitempty"`
	Tried     int     `json:"tried,omitempty"`
}

type perOrder struct {
	Start    []*int  `json:"start"`
	Accepted []int   `json:"accepted"`
	Value    float64 `json:"value"`
}

// SolveDocument answers a JSON document {"T", "bids": [{"l", "d", "v"}…]} for a whole machine, exactly. For bids of any
// width the document also has "N", an "n" for each bid, and "orders": [[…]…] or "search": {"orders", "seed"}.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	p, err := in.problem()
	if err != nil {
		return nil, err
	}
	switch {
	case in.Orders != nil && in.Search != nil:
		return nil, casefile.Invalid("search", "cannot go together with orders: give one of the two")
	case !p.wide() && (in.Orders != nil || in.Search != nil):
		return nil, casefile.Invalid("N", "the key is missing: orders and search need the number of nodes")
	case in.Orders != nil:
		return in.orders(p)
	case in.Search != nil:
		return in.search(p)
	case p.wide():
		return nil, casefile.Invalid("orders", "the key is missing: bids of any width need orders, or a search")
	}
	o, err := Solve(p)
	if err != nil {
		return nil, err
	}
	out := present(o)
	out.Optimal = &o.Value
	return out, nil
}

func (in *input) problem() (*Problem, error) {
	p := &Problem{Horizon: in.Horizon, Bids: make([]Bid, len(in.Bids))}
	if in.Nodes != nil {
		if p.Nodes = *in.Nodes; p.Nodes < 1 {
			return nil, casefile.Invalid("N", "must be at least 1 node, is %d", p.Nodes)
		}
	}
	for i, b := range in.Bids {
		p.Bids[i] = Bid{Length: b.L, Deadline: b.D, Value: b.V}
		if b.N != nil {
			p.Bids[i].Width = *b.N
		} else if p.wide() {
			return nil, casefile.Invalid("bids["+strconv.Itoa(i)+"].n", "the key is missing: it is required with N")
		}
	}
	return p, p.Check()
}

func (in *input) orders(p *Problem) (*output, error) {
	placed, best, o, err := Orders(p, in.Orders)
	if err != nil {
		return nil, err
	}
	out := present(o)
	out.found = &found{BestOrder: best, BestValue: o.Value}
	for _, x := range placed {
		out.PerOrder = append(out.PerOrder, perOrder{Start: nullable(x.Start), Accepted: x.Accepted, Value: x.Value})
	}
	return out, nil
}

func (in *input) search(p *Problem) (*output, error) {
	r, err := Find(p, Search{Candidates: in.Search.Orders, Seed: in.Search.Seed})
	if err != nil {
		return nil, err
	}
	out := present(&r.Outcome)
	out.found = &found{BestOrder: r.Best, BestValue: r.Value, Kind: r.Kind, Tried: in.Search.Orders}
	return out, nil
}

func present(o *Outcome) *output {
	out := &output{Winners: o.Winners(), Start: nullable(o.Start), Without: o.Without, Payments: o.Payments}
	for _, x := range o.Payments {
		out.Revenue += x
	}
	return out
}

func nullable(start []int) []*int {
	out := make([]*int, len(start))
	for i := range start {
		if start[i] != Lost {
			out[i] = &start[i]
		}
	}
	return out
}
