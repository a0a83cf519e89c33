package contract

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// Contract is an entry of a menu: a completion time and what it costs. Who
// takes it has its job scheduled as if it had declared the surrogate, and owes
// the price, adjusted afterwards by what the replica's valuation got.
type Contract struct {
	Completion float64 `json:"completion"` // X_k, seconds after submission
	Price      float64 `json:"price"`      // credits
	Value      float64 `json:"value"`      // v(r_j, X_k), at least the price
	Replica    int     `json:"replica"`    // j
	Surrogate  int     `json:"surrogate"`  // k
	Free       bool    `json:"free"`       // its price is 0
	Declared   bool    `json:"declared"`   // its replica is the declared type
}

// Menu returns the contracts of a matching in the order of their completion
// times, then of their surrogates. At least one is free, and completing later
// never costs more, if the weights are non-increasing in the completion times.
func Menu(matching *Matching, weights, completion []float64, declared int) []Contract {
	m := len(completion)
	menu := make([]Contract, m)
	for k, x := range completion {
		j, p := matching.Replica[k], matching.Prices[k]
		menu[k] = Contract{Completion: x, Price: p, Value: weights[j*m+k], Replica: j, Surrogate: k, Free: p == 0, Declared: j == declared}
	}
	slices.SortFunc(menu, func(a, b Contract) int {
		return cmp.Or(cmp.Compare(a.Completion, b.Completion), cmp.Compare(a.Surrogate, b.Surrogate))
	})
	return menu
}

// Sample shows n contracts of a longer menu, in its order: the declared one,
// the earliest free one, and others uniformly at random; all if n is as many or
// not positive. Which others does not depend on anything declared, only on the
// seed and the length.
func Sample(menu []Contract, n int, seed uint64) []Contract {
	if n <= 0 || n >= len(menu) {
		return slices.Clone(menu)
	}
	n = max(n, 2)
	show := make([]bool, len(menu))
	left := n
	for _, must := range []func(Contract) bool{
		func(c Contract) bool { return c.Declared },
		func(c Contract) bool { return c.Free },
	} {
		if i := slices.IndexFunc(menu, must); i >= 0 && !show[i] {
			show[i] = true
			left--
		}
	}
	for _, i := range rand.New(rand.NewPCG(seed, 0x6d656e75)).Perm(len(menu)) {
		if left > 0 && !show[i] {
			show[i] = true
			left--
		}
	}
	out := make([]Contract, 0, n)
	for i, c := range menu {
		if show[i] {
			out = append(out, c)
		}
	}
	return out
}

// Adjust is the price owed when a contract has been kept or broken: the price
// agreed, times the value received over the value promised, both of the
// replica's valuation; 0 if nothing of value was promised. A price of at most
// the value promised becomes one of at most the value received.
func Adjust(price, promised, received float64) float64 {
	if promised <= 0 {
		return 0
	}
	owed := price * received / promised
	if price <= promised { // in exact numbers it would be without saying
		owed = min(owed, received)
	}
	return owed
}

// AdjustLate adjusts the price only of a job that completed late: one that is
// early pays what was agreed.
func AdjustLate(price, promised, received float64, late bool) float64 {
	if late || promised <= 0 {
		return Adjust(price, promised, received)
	}
	return price
}

// Settle is the price owed for a contract whose job completed at a time, in
// seconds after submission, given the valuation of its replica.
func (c *Contract) Settle(replica *valuation.Curve, completed float64, lateOnly bool) float64 {
	received := replica.At(completed)
	if lateOnly {
		return AdjustLate(c.Price, c.Value, received, completed > c.Completion)
	}
	return Adjust(c.Price, c.Value, received)
}

// Scheduler is the black box: it returns, for each of the types, by when the
// job would be expected to complete if it declared that type and all other jobs
// stayed as they are, in seconds after submission.
type Scheduler func(types []messages.Valuation) ([]float64, error)

// Offer is a menu and all that it was made from.
type Offer struct {
	Draw
	Weights  []float64 // replica by replica
	Matching *Matching // of the solver that made it
	Menu     []Contract
}

// NewOffer makes the menu of contracts of one job: what is drawn for it, when
// it would complete as each surrogate, the matching and its prices. It uses the
// solver's memory until the solver's next call.
func NewOffer(s *Solver, d *Draw, schedule Scheduler) (*Offer, error) {
	curves, err := d.Curves()
	if err != nil {
		return nil, err
	}
	completion, err := schedule(d.Surrogates)
	if err != nil {
		return nil, err
	}
	if len(completion) != len(d.Surrogates) {
		return nil, messages.Errorf(messages.Invalid, "schedule: gives %d completion times for %d surrogates: it must give one for each",
			len(completion), len(d.Surrogates))
	}
	for k, x := range completion {
		if !(x >= 0) || math.IsInf(x, 0) {
			return nil, messages.Errorf(messages.Invalid, "schedule: the completion time of surrogate %d is %v: it must be 0 or more", k, x)
		}
	}
	o := &Offer{Draw: *d, Weights: Weights(curves, completion)}
	if o.Matching, err = s.Solve(len(curves), o.Weights); err != nil {
		return nil, err
	}
	o.Menu = Menu(o.Matching, o.Weights, completion, d.Declared)
	return o, nil
}
