package highestbid

import "github.com/candor-grid/candor/auctioneer/mechanism/casefile"

// input is the document of `candor solve highest-bid`.
type input struct {
	Nodes     int        `json:"nodes"`
	Algorithm string     `json:"algorithm"`
	Price     string     `json:"price"`
	Capped    bool       `json:"capped,omitempty"`
	Reserve   *float64   `json:"reserve,omitempty"`
	Horizon   float64    `json:"horizon,omitempty"` // of price pivot, in seconds; 0: none
	Jobs      []inputJob `json:"jobs"`
}

type inputJob struct {
	Submit   float64  `json:"submit"`
	Runtime  float64  `json:"runtime"`
	Value    float64  `json:"value"`
	Bid      float64  `json:"bid"`
	Estimate *float64 `json:"estimate,omitempty"` // required by WSEPT
}

// SolveDocument answers a JSON document: {"nodes", "algorithm", "price",
// "capped"?, "reserve"?, "horizon"?, "jobs": [{"submit", "runtime", "value", "bid",
// "estimate"?}…]}; without "reserve" it is Reserve. The answer is an Outcome.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	return Run(in.problem())
}

func (in *input) problem() *Problem {
	p := &Problem{Nodes: in.Nodes, Reserve: Reserve, Horizon: in.Horizon, Jobs: make([]Job, len(in.Jobs)),
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
