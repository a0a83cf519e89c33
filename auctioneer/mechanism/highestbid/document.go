package highestbid

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/document"
)

// input is the document of `candor solve highest-bid`.
type input struct {
	Nodes     int        `json:"nodes"`
	Algorithm string     `json:"algorithm"`
	Price     string     `json:"price"`
	Capped    bool       `json:"capped,omitempty"`
	Reserve   *float64   `json:"reserve,omitempty"`
	Jobs      []inputJob `json:"jobs"`
}

type inputJob struct {
	Submit   float64  `json:"submit"`
	Runtime  float64  `json:"runtime"`
	Value    float64  `json:"value"`
	Bid      float64  `json:"bid"`
	Estimate *float64 `json:"estimate,omitempty"` // required by WSEPT
}

// output is what it prints, by job in the order of the input.
type output struct {
	Start       []float64    `json:"start"`
	Finish      []float64    `json:"finish"`
	Flow        []float64    `json:"flow"`
	Payment     []float64    `json:"payment"`
	Slowdown    []float64    `json:"bsd"`
	Severe      []bool       `json:"ssj"`
	Utility     []float64    `json:"utility"`
	Revenue     float64      `json:"revenue"`
	Weighted    float64      `json:"twft"`
	Payoff      *float64     `json:"designer_payoff"` // null: no weighted flow time
	Preemptions int          `json:"preemptions"`
	Intervals   [][]Interval `json:"intervals"`
}

// SolveDocument answers a JSON document: {"nodes", "algorithm", "price",
// "capped"?, "reserve"?, "jobs": [{"submit", "runtime", "value", "bid",
// "estimate"?}…]}; without "reserve" it is Reserve.
func SolveDocument(data []byte) (any, error) {
	var in input
	if err := document.Decode(data, &in); err != nil {
		return nil, err
	}
	o, err := Run(in.problem())
	if err != nil {
		return nil, err
	}
	return present(o), nil
}

func (in *input) problem() *Problem {
	p := &Problem{Nodes: in.Nodes, Reserve: Reserve, Jobs: make([]Job, len(in.Jobs)),
		Rule: Rule{Algorithm: Algorithm(in.Algorithm), Price: Price(in.Price), Capped: in.Capped}}
	if in.Reserve != nil {
		p.Reserve = *in.Reserve
	}
	for i, j := range in.Jobs {
		p.Jobs[i] = Job{Submit: j.Submit, Runtime: j.Runtime, Value: j.Value, Bid: j.Bid}
		if j.Estimate != nil {
			p.Jobs[i].Estimate = *j.Estimate
		}
	}
	return p
}

func present(o *Outcome) *output {
	out := &output{o.Start, o.Finish, o.Flow, o.Payment, o.Slowdown, o.Severe, o.Utility,
		o.Revenue, o.Weighted, nil, o.Preemptions, o.Intervals}
	if payoff := o.Payoff(); !math.IsNaN(payoff) && !math.IsInf(payoff, 0) {
		out.Payoff = &payoff
	}
	for i := range out.Intervals {
		if out.Intervals[i] == nil {
			out.Intervals[i] = []Interval{}
		}
	}
	return out
}
