package contract

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Contract is an entry of a menu: a completion time and its price. It belongs to a pair of valuations, the replica and
// the surrogate. A job with this contract is scheduled as if it had declared the surrogate, and owes the price. After
// completion, the price is adjusted: it depends on what the actual completion time is worth according to the replica.
type Contract struct {
	Completion float64 `json:"completion"` // X_k, in seconds after submission
	Price      float64 `json:"price"`      // in credits
	Value      float64 `json:"value"`      // v(r_j, X_k), in credits; at least the price
	Replica    int     `json:"replica"`    // the index j
	Surrogate  int     `json:"surrogate"`  // the index k
	Free       bool    `json:"free"`       // the price is 0
	Declared   bool    `json:"declared"`   // the replica is the declared type
}

// Menu returns the contracts of a matching by completion time, then by surrogate. If the weights do not rise with the
// completion time, at least one contract is free, and a later completion never costs more.
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

// Sample returns n contracts of a longer menu, in the order of the menu: the declared contract, the earliest free
// contract, and other contracts that are chosen uniformly at random. If n is not positive, or if the menu has at most n
// contracts, Sample returns the whole menu. The random choice depends only on the seed and on the length of the menu,
// not on the declared type.
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

// Adjust returns the price owed for a contract after its job has completed. The result is the agreed price, multiplied
// by the received value and divided by the promised value. The caller computes both values with the valuation of the
// contract's replica. The result is 0 if the promised value was 0. If the agreed price is at most the promised value,
// the result is at most the received value.
func Adjust(price, promised, received float64) float64 {
	if promised <= 0 {
		return 0
	}
	owed := price * received / promised
	if price <= promised { // rounding must not break the bound
		owed = min(owed, received)
	}
	return owed
}

// AdjustLate does the same as Adjust for a job that is late. A job that is not late pays the agreed price.
func AdjustLate(price, promised, received float64, late bool) float64 {
	if late || promised <= 0 {
		return Adjust(price, promised, received)
	}
	return price
}

// Settle returns the price owed for a contract. `completed` is the completion time, in seconds after the submission.
// The argument `replica` is the valuation to which the menu gave this contract; see the package comment. If lateOnly is
// true, the price is adjusted only for jobs that complete later than promised.
func (c *Contract) Settle(replica *valuation.Curve, completed float64, lateOnly bool) float64 {
	received := replica.At(completed)
	if lateOnly {
		return AdjustLate(c.Price, c.Value, received, completed > c.Completion)
	}
	return Adjust(c.Price, c.Value, received)
}

// Scheduler is a function that predicts completion times; the menu knows nothing else about the scheduling of jobs. For
// each type in `types`, it returns when the job is expected to complete, in seconds after its submission. It assumes
// that the job declares this type, and that all other jobs stay unchanged.
type Scheduler func(types []job.Valuation) ([]float64, error)

// Offer is a menu and all data from which it was made.
type Offer struct {
	Draw
	Weights  []float64 // row: replica, column: surrogate
	Matching *Matching // in the solver's memory
	Menu     []Contract
}

// NewOffer makes the menu of contracts of one job, from the types that were drawn for it and from the scheduler. The
// result uses the solver's memory and is valid until the solver's next call.
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
