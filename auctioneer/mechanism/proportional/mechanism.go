package proportional

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// The shares of a job are stored in a row, one for each class. shareTolerance is the largest relative error that these
// shares may have. A decision computes a row again only if its error may exceed shareTolerance. With fewer than some
// 200 bidders all rows are exact.
const shareTolerance = 1e-4

// Each job of the market has a seat. The row of a seat contains the shares of the job. When the total of a class has
// changed by more than the factor mostScale since the rows were computed, the rows of all seats are computed again.
const mostScale = 2

// To decide which jobs with a minimum utility are served, the market computes fixed points. In one decision it computes
// at most mostEvaluations fixed points. Jobs that have not been tried by then must wait for a later decision.
const mostEvaluations = 256

// Mechanism runs a live market. It implements mechanism.Mechanism and mechanism.Incremental.
type Mechanism struct {
	classes []messages.Name
	market  *Market
	seats   []*seat // seats of all jobs of the view, by job number
	left    int     // number of seats whose jobs are gone
	placed  []*seat // seats in the market, by position
	changed []*seat // seats that changed since the last decision
	worked  []*seat // seats whose rows the last decision computed, if not all
	minimum int     // number of bidding seats with a minimum utility
	pending []int   // by class: number of jobs with pending tasks there
	sharing []int   // by class: number of jobs that bid in the market when all rows were last computed
	prices  []float64
	faced   []float64      // by class: the total when the shares of seats were computed
	scale   []float64      // by class: factor that corrects those shares: faced divided by the present total
	torn    map[*seat]bool // seats that want several classes: their rows depend on all totals
	seen    []float64      // by class: the total when torn seats were last computed
	pool    pooling
	weights [][]float64
	pooled  bool // the last decision kept jobs out so that a minimum utility is met
	lone    bool // some class has fewer than two bidders
	// contention has one element for each class. It is nil if jobs owe their budgets on completion.
	contention []*Contention
}

// A seat can stay after its job is gone. At most 1/mostLeft of all seats may be such seats.
const mostLeft = 64

// If a list of changes has room for at most mostKept entries, its memory is used again for the next decision. The
// memory of a larger list is given up.
const mostKept = 4096

// seat is a job in the market, with what it bids in each class.
type seat struct {
	job      *mechanism.Job
	at       int32 // position in the market; −1 if the seat bids nothing
	gone     bool  // the job of the seat is gone
	rejected bool  // the job is not served, because its own minimum utility or another job's could not be met with it
	bids     bool
	numbers  []float64 // weights, spends and shares
	parts    []part    // by class: see the type part
}

// weights returns the weights with which the seat bids, one for each class. In a class without pending tasks, the
// weight is 0.
func (s *seat) weights() []float64 { return s.numbers[:len(s.parts):len(s.parts)] }

// spends returns the seat's sub-budgets, by class.
func (s *seat) spends() []float64 { return s.numbers[len(s.parts) : 2*len(s.parts) : 2*len(s.parts)] }

// shares returns the shares of a seat's job by class. The caller must multiply each of them by Mechanism.scale.
func (s *seat) shares() []float64 { return s.numbers[2*len(s.parts):] }

// Describe returns the traits of the mechanism.
func Describe(m *marketmsg.Market) mechanism.Traits {
	t := mechanism.Traits{
		Name: marketmsg.Proportional, Make: mechanism.Maker(New), Solve: SolveDocument,
		Who:        "each job has slots in proportion to its bid for a class",
		Cost:       "the budget, for the part of its slot time in which other accounts competed for the slots, and less if it had less than its share; nothing on an idle site",
		Parameters: []string{"alpha", "settle"}, Bid: []string{"budget", "utility"},
		Manner: mechanism.Manner{Shares: true, Wide: true, Assembles: true, Raises: mechanism.Terms{Budget: true}}, Tells: mechanism.Prices, Decides: marketmsg.TermBudget,
		Gains: "a budget other than the job's worth, all work in one task, a slot that is kept after the work, tasks that nobody needs, and, with many classes, a false utility",
		Rule:  "the price is at most the budget, and depends on the competition for its slots",
	}
	if m.Settle == marketmsg.SettleOnCompletion {
		t.Rule = "the price is the budget, on completion"
	}
	return t
}

// New makes the mechanism of a market.
func New(m marketmsg.Market) (*Mechanism, error) {
	alpha, n := 0.5, len(m.Classes)
	if m.Alpha != nil {
		alpha = *m.Alpha
	}
	market, err := NewMarket(alpha, n, shareTolerance)
	if err != nil {
		return nil, err
	}
	mech := &Mechanism{classes: m.Classes, market: market, pending: make([]int, n), sharing: make([]int, n),
		prices: make([]float64, n), faced: make([]float64, n), seen: make([]float64, n), scale: slices.Repeat([]float64{1}, n), torn: map[*seat]bool{}}
	if m.Settle != marketmsg.SettleOnCompletion {
		for range n {
			mech.contention = append(mech.contention, NewContention(alpha))
		}
	}
	return mech, nil
}

var _ mechanism.Incremental = (*Mechanism)(nil)

// Admit refuses a bid that this mechanism cannot compare with other bids.
func (c *Mechanism) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	if bid.Budget <= 0 || bid.Budget > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "budget: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Budget)
	}
	if bid.Form != jobmsg.Linear && bid.Form != jobmsg.Log {
		return messages.Errorf(messages.Invalid, "utility.form: must be %q or %q, is %.64q", jobmsg.Linear, jobmsg.Log, bid.Form)
	}
	if len(bid.Weights) != len(c.classes) {
		return messages.Errorf(messages.Invalid, "utility.weights: must be one for each of the %d classes, there are %d", len(c.classes), len(bid.Weights))
	}
	for j, w := range bid.Weights {
		if w != 0 && !(w >= Smallest && w <= Largest) {
			return messages.Errorf(messages.Invalid, "utility.weights.%s: must be 0 or from %g to %g, is %g",
				c.classes[j], Smallest, Largest, w)
		}
	}
	if !slices.ContainsFunc(bid.Weights, positive) {
		return messages.Errorf(messages.Invalid, "utility.weights: are all zero: give a positive weight to a class that the job uses")
	}
	return c.admitMinimum(bid)
}

// admitMinimum refuses a minimum utility that the job could not reach with all slots of all classes.
func (c *Mechanism) admitMinimum(bid *mechanism.Bid) error {
	x := bid.MinUtility
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return messages.Errorf(messages.Invalid, "utility.minimum: must be a finite number, is %v", x)
	}
	whole := slices.Repeat([]float64{1}, len(c.classes))
	if most := utility(bid.Form == jobmsg.Log, bid.Weights, whole); x != 0 && x > most {
		return messages.Errorf(messages.Invalid, "utility.minimum: %g is more than %g, the utility of all slots of every class; use a smaller minimum", x, most)
	}
	return nil
}
