package contract

import (
	"cmp"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	defaultReplicas = 100
	mostShown       = 20                                  // the largest number of contracts of a menu that are shown
	refresh         = messages.Duration(10 * time.Second) // the waiting jobs are ordered again after this time at the earliest
)

// Mechanism runs a live market. Its decisions depend only on the view.
type Mechanism struct {
	config marketmsg.Market
	solver Solver
}

// Describe returns the traits of the mechanism.
func Describe(*marketmsg.Market) mechanism.Traits {
	return mechanism.Traits{
		Name: marketmsg.ContractMenu, Make: mechanism.Maker(NewMechanism), Solve: SolveDocument,
		Who:        "jobs in an order that keeps the promised completion times",
		Cost:       "a price from a menu, times the received value over the promised value",
		Parameters: []string{"settle", "quote", "replicas", "late_only", "prior"}, Bid: []string{"budget", "length", "valuation", "contract"},
		Manner: mechanism.Manner{Attentive: true, Wide: true, Even: true, Assembles: true, Plans: true, Stays: true},
		Rule:   "the price is at most the budget",
		Gains:  "a length other than the true one",
	}
}

// NewMechanism makes the mechanism of a valid market.
func NewMechanism(m marketmsg.Market) (*Mechanism, error) {
	if len(m.Classes) != 1 {
		return nil, messages.Errorf(messages.Invalid, "market %s: classes: must be exactly one, there are %d", m.Name, len(m.Classes))
	}
	m.Replicas = cmp.Or(m.Replicas, defaultReplicas)
	return &Mechanism{config: m}, nil
}

var _ mechanism.Quoter = (*Mechanism)(nil)

// Admit refuses a bid without a contract, and a bid that cannot be planned or charged. The caller must check that the
// contract was quoted to this job.
func (m *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	if bid.Contract == nil {
		return messages.Errorf(messages.Invalid, "contract: this market sells completion times: ask for a quote, and submit with one of its contracts")
	}
	if err := bid.Contract.Validate(); err != nil {
		return within("contract", err)
	}
	if err := plannable(bid); err != nil {
		return err
	}
	if bid.Contract.Completion <= view.Now {
		return messages.Errorf(messages.Expired, "contract: its completion time, %v, has passed: ask for another quote", bid.Contract.Completion)
	}
	if most := Most(bid.Contract, m.config.LateOnly); bid.Budget < most || bid.Budget > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "budget: must cover %v credits, the most that the contract can cost if the job completes early, and be at most %v; is %v",
			most, messages.MaxCredits, bid.Budget)
	}
	return sold(view, bid)
}

func plannable(bid *mechanism.Bid) error {
	switch {
	case bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0, is %v: say how long a task runs", bid.Length)
	case bid.Gang() && bid.Width != width(bid)*bid.Tasks:
		return messages.Errorf(messages.Invalid, "width: %d tasks that start together must each take the same number of slots, so %d slots in all are not possible", bid.Tasks, bid.Width)
	case bid.Tasks < 0 || bid.Tasks > job.MaxTasks:
		return messages.Errorf(messages.Invalid, "tasks: must be from 0 to %d, is %d", job.MaxTasks, bid.Tasks)
	}
	return nil
}

// Allocate gives the idle slots to jobs in the order of the scheduler. A job gets at most as many slots as it has
// tasks. The allocation's price is the sum of the prices in the contracts of all jobs, in credits.
func (m *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: []float64{0}}
	flat := make([]float64, len(view.Jobs))
	pending := 0
	for i, job := range view.Jobs {
		a.Weights[i] = flat[i : i+1 : i+1]
		pending += job.Pending[0]
		if job.Contract != nil {
			a.Prices[0] += job.Contract.Price.Float()
		}
	}
	idle := min(pending, max(1, view.Classes[0].Idle)) // if no slot is idle, still compute which job gets the next slot
	left := idle
	for _, i := range order(view) {
		n := min(left, view.Jobs[i].Pending[0])
		flat[i], left = float64(n)/float64(max(1, idle)), left-n
	}
	if pending > 0 && len(view.Jobs) > 1 {
		a.Wake = view.Now.Add(max(refresh, free(view)/10)) // no job gets a slot before the next slot is free
	}
	return a
}
