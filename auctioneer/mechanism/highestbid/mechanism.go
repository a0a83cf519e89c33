package highestbid

import (
	"cmp"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Mechanism runs a live market. Each class of slots is an auction, in which each task competes with its job's bid. It
// remembers the bidders, so the cost of an update depends on the number of changes. A new Mechanism that sees the same
// view makes the same decision. It implements mechanism.Incremental.
type Mechanism struct {
	rule    Rule
	market  messages.Name
	reserve messages.Credits  // in credits for a slot-second
	horizon messages.Duration // how long waiting counts in pivot prices
	roster  *roster           // nil before the first decision
}

// New makes the mechanism of a valid market. The defaults are algorithm HB and the k-th price.
func New(m market.Market) (*Mechanism, error) {
	c := &Mechanism{market: m.Name, reserve: m.ReservePrice(), rule: ruleOf(&m)}
	if c.reserve > MostRate {
		return nil, messages.Errorf(messages.Invalid, "reserve: must be from 0 to %v credits, is %v", MostRate, c.reserve)
	}
	return c, nil
}

func ruleOf(m *market.Market) Rule {
	return Rule{Algorithm: cmp.Or(Algorithm(m.Algorithm), HB), Price: cmp.Or(Price(m.Price), Kth), Capped: m.Capped}
}

var (
	_ mechanism.Incremental = (*Mechanism)(nil)
	_ mechanism.Lining      = (*Mechanism)(nil)
)

// Admit refuses a bid that this market cannot rank, and a bid below the reserve: its job could be charged more than it
// bids.
func (c *Mechanism) Admit(_ *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Rate == 0 && c.reserve > 0:
		return messages.Errorf(messages.Invalid, "rate: market %s needs a bid for an hour of a slot: add --rate %s or more", c.market, messages.Price(c.reserve).Hour())
	case bid.Rate < c.reserve:
		return messages.Errorf(messages.Invalid, "rate: %s is too low: the reserve of market %s is %s; bid --rate %s or more", messages.Price(bid.Rate).Words(), c.market, messages.Price(c.reserve).Words(), messages.Price(c.reserve).Hour())
	case bid.Rate > MostRate:
		return messages.Errorf(messages.Invalid, "rate: %v is too high: the limit is %v credits for a slot-second", bid.Rate, MostRate)
	case bid.Budget <= 0 || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Budget)
	case bid.Width > 1 && c.rule.Price == Pivot:
		return messages.Errorf(messages.Invalid, "width: a task of a market with price %s has one slot, this task takes %d: ask for less, or use another market", Pivot, bid.Width)
	case c.rule.byLength() && bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0, is %v: declare the expected run time of a task", bid.Length)
	}
	return nil
}

// Order compares two jobs under the algorithm HB (highest bid). The job with the higher bid gets a slot first. If the
// bids are equal, the job that was submitted earlier gets it.
func Order(x, y *mechanism.Job) int {
	return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(x.Arrived, y.Arrived), cmp.Compare(x.Job, y.Job))
}

// Settle charges the price of the slots that the job had, for the time in which it had them. The charge is at most the
// job's budget. It does not matter how the job ended.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	ended := lower(end.State)
	p := mechanism.Payment{From: job.Job, Amount: job.Accrued, Reason: ended + ": the price of the slots it had, for the time it had them"}
	if job.Accrued > job.Budget {
		p.Amount, p.Reason = job.Budget, ended+": its slots cost its whole budget"
	}
	return []mechanism.Payment{p}
}

func lower(s job.State) string { return strings.ToLower(s.String()) }

// Allocate decides which jobs get slots. The weight of a job in a class is its share of the slots that pending tasks
// get. If pending tasks get no slots, the best waiting job gets all the weight. A job whose budget is spent is
// discarded.
//
// Prices are in credits for a slot-second. The basis of a tariff says which bid is the price. With the basis AtLevel,
// the price is the level of the class, which is the best bid of a waiting job. If prices depend on the length, the
// price is the level for a length of one second. With the basis OwnBid, the price shown is the lowest bid of a running
// task.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	c.roster = c.newRoster(len(view.Classes))
	d := c.Update(view, view.Jobs, nil)
	weights := make([][]float64, len(view.Jobs))
	for i, job := range d.Jobs {
		weights[c.roster.number[job.Job]] = d.Weights[i] // numbers are in the order of the view
	}
	for i := range weights {
		if weights[i] == nil {
			weights[i] = make([]float64, len(view.Classes))
		}
	}
	return &mechanism.Allocation{Weights: weights, Prices: d.Prices, Tariffs: d.Tariffs, Directives: d.Directives, Wake: d.Wake}
}

// Update applies the changes to the jobs, and then decides as Allocate does.
func (c *Mechanism) Update(view *mechanism.View, changed []*mechanism.Job, gone []messages.JobID) *mechanism.Change {
	if c.roster == nil {
		c.roster = c.newRoster(len(view.Classes))
	}
	r := c.roster
	r.update(view, changed, gone)
	r.decide(view)
	d := &mechanism.Change{Directives: r.orders(), Wake: r.wake(view.Now)}
	d.Jobs, d.Weights = r.weights()
	for _, s := range r.classes {
		d.Prices, d.Tariffs = append(d.Prices, s.price()), append(d.Tariffs, s.tariff())
	}
	r.undo()
	return d
}

// Next returns the best waiting job. It returns 0 if this job has a suspended task, because the suspended task goes
// first.
func (c *Mechanism) Next(class int) messages.JobID {
	if c.roster == nil {
		return 0
	}
	return c.roster.classes[class].next()
}
