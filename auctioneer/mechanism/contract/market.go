package contract

import (
	"cmp"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadlineaware"
	"github.com/candor-grid/candor/messages"
)

// Config describes a live market run by this mechanism.
type Config struct {
	Market messages.Market
	M      int // replicas of a quote; 0: 100
	Show   int // contracts of a menu that are shown; 0: 20
	// LateOnly: who completes early pays no more than was agreed.
	LateOnly bool
	// Quantile, in (0, 1], and Delta ≥ 0 say which run time is planned with, as in
	// deadlineaware.RobustQuantile; 0: deadlineaware.DefaultQuantile.
	Quantile, Delta float64
	Resolution      float64 // as in deadlineaware.Problem
	// Runtimes returns run times seen of tasks like those of a job, in seconds.
	// Where there are none, or where it is nil, the declared length is planned with.
	Runtimes func(bid *mechanism.Bid) []float64
	// Prior are types that are thought likely before any is known of a job's
	// class; of several classes.
	Prior []messages.Valuation
	// Refresh is how often the order of those who wait is made anew though nothing
	// happened; 0: 10 s.
	Refresh messages.Duration
}

// The defaults of Config.
const (
	defaultM       = 100
	defaultShow    = 20
	defaultRefresh = messages.Duration(10 * time.Second)
)

// Validate checks the configuration.
func (c *Config) Validate() error {
	name := c.Market.Name
	if len(c.Market.Classes) != 1 {
		return messages.Errorf(messages.Invalid, "market %s: classes: must be exactly one, there are %d", name, len(c.Market.Classes))
	}
	if c.M < 0 || c.M > MaxM {
		return messages.Errorf(messages.Invalid, "market %s: M: must be from 1 to %d, is %d", name, MaxM, c.M)
	}
	if c.Show < 0 || c.Show == 1 {
		return messages.Errorf(messages.Invalid, "market %s: show: must be at least 2, for the declared and the free contract, is %d", name, c.Show)
	}
	if c.Refresh < 0 || c.Refresh > 0 && c.Refresh < messages.Duration(time.Millisecond) {
		return messages.Errorf(messages.Invalid, "market %s: refresh: must be at least 1 ms, is %v", name, c.Refresh)
	}
	if !(c.Resolution >= 0 && c.Resolution <= deadlineaware.Largest) {
		return messages.Errorf(messages.Invalid, "market %s: resolution: must be from 0 to %g credits, is %g", name, deadlineaware.Largest, c.Resolution)
	}
	if _, err := deadlineaware.RobustQuantile([]float64{1}, c.Delta, cmp.Or(c.Quantile, 1)); err != nil {
		return messages.Errorf(messages.Invalid, "market %s: %s", name, messages.AsError("", err).Message)
	}
	for i := range c.Prior {
		if err := c.Prior[i].Validate(); err != nil {
			return messages.Errorf(messages.Invalid, "market %s: prior[%d].%s", name, i, messages.AsError("", err).Message)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.M = cmp.Or(c.M, defaultM)
	c.Show = cmp.Or(c.Show, defaultShow)
	c.Quantile = cmp.Or(c.Quantile, deadlineaware.DefaultQuantile)
	c.Refresh = cmp.Or(c.Refresh, defaultRefresh)
	return c
}

// Mechanism runs a live market. It remembers nothing from one call to the next:
// all that it goes by is in the view.
type Mechanism struct {
	config Config
	solver Solver
}

// NewMechanism makes the mechanism of a market, with its parameters.
func NewMechanism(c Config) (*Mechanism, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Mechanism{config: c.withDefaults()}, nil
}

var _ mechanism.Quoter = (*Mechanism)(nil)

// Admit refuses a bid without a contract, and one that could not be planned or
// charged. That the contract was quoted to this job is the caller's to check.
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
		return messages.Errorf(messages.Invalid, "budget: must cover %v credits, the most that the contract can come to if the job completes early, and be at most %v; is %v",
			most, messages.MaxCredits, bid.Budget)
	}
	return nil
}

// plannable refuses a job whose work cannot be planned.
func plannable(bid *mechanism.Bid) error {
	switch {
	case bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0, is %v: say how long a task runs", bid.Length)
	case bid.Width > 1:
		return messages.Errorf(messages.Invalid, "width: must be 1 in this market, which starts tasks one by one, is %d", bid.Width)
	case bid.Tasks < 0 || bid.Tasks > messages.MaxTasks:
		return messages.Errorf(messages.Invalid, "tasks: must be from 0 to %d, is %d", messages.MaxTasks, bid.Tasks)
	}
	return nil
}

// Allocate gives the slots that are idle to jobs in the order of the scheduler
// underneath, each as many as it has tasks for. The price is the sum of the
// prices agreed with the jobs, in credits.
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
	idle := min(pending, max(1, view.Classes[0].Idle)) // who gets the next slot is said though none is idle
	order, left := m.order(view), idle
	for _, i := range order {
		n := min(left, view.Jobs[i].Pending[0])
		flat[i], left = float64(n)/float64(max(1, idle)), left-n
	}
	if pending > 0 && len(view.Jobs) > 1 {
		a.Wake = view.Now.Add(m.config.Refresh)
	}
	return a
}
