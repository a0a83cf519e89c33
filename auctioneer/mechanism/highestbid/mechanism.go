package highestbid

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Config describes a live market run by this mechanism.
type Config struct {
	Market  messages.Market
	Rule    Rule
	Reserve messages.Credits // for a slot-second
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	if err := c.Rule.Validate(); err != nil {
		return messages.Errorf(messages.Invalid, "market %s: %v", c.Market.Name, messages.AsError("", err).Message)
	}
	if c.Rule.Algorithm == WSPT {
		return messages.Errorf(messages.Invalid, "market %s: algorithm: WSPT needs the run times themselves, a live market knows what jobs declare: use WSEPT", c.Market.Name)
	}
	if len(c.Market.Classes) == 0 {
		return messages.Errorf(messages.Invalid, "market %s: classes: name at least one", c.Market.Name)
	}
	if c.Reserve < 0 || c.Reserve > MostRate {
		return messages.Errorf(messages.Invalid, "market %s: reserve: must be from 0 to %v credits, is %v", c.Market.Name, MostRate, c.Reserve)
	}
	return nil
}

// Mechanism runs a live market, each class of slots an auction of its own, in
// which a task is a bidder with its job's bid. It remembers nothing between
// calls. It implements mechanism.Mechanism.
type Mechanism struct{ config Config }

// New makes the mechanism of a market: HB at the k-th price, with a reserve of
// one credit.
func New(m messages.Market) (mechanism.Mechanism, error) {
	return NewMechanism(Config{Market: m, Rule: Rule{Algorithm: HB, Price: Kth}, Reserve: messages.Credit})
}

// NewMechanism makes the mechanism of a market.
func NewMechanism(c Config) (*Mechanism, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Mechanism{c}, nil
}

var _ mechanism.Mechanism = (*Mechanism)(nil)

// Admit refuses a bid that this market cannot weigh, or that is below the
// reserve: it would be charged more than it bids.
func (c *Mechanism) Admit(_ *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Rate < c.config.Reserve || bid.Rate > MostRate:
		return messages.Errorf(messages.Invalid, "rate: must be from the reserve, %v, to %v credits for a slot-second, is %v", c.config.Reserve, MostRate, bid.Rate)
	case bid.Budget <= 0 || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Budget)
	case bid.Width > 1:
		return messages.Errorf(messages.Invalid, "width: this market starts tasks one by one and cannot keep %d together: use 1, or another market", bid.Width)
	case c.config.Rule.byLength() && bid.Length <= 0:
		return messages.Errorf(messages.Invalid, "length: must be above 0, is %v: declare the expected run time of a task", bid.Length)
	}
	return nil
}

// Settle charges what was accrued while tasks ran, however the job ended, and
// at most the budget.
func (c *Mechanism) Settle(_ *mechanism.View, job *mechanism.Job, end mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job, Amount: job.Accrued, Reason: ended(end.State) + ": the price of the slots it had, for the time it had them"}
	if job.Accrued > job.Budget {
		p.Amount, p.Reason = job.Budget, ended(end.State)+": its budget, which its slots cost at least"
	}
	return []mechanism.Payment{p}
}

func ended(s messages.State) string {
	switch s {
	case messages.Completed:
		return "completed"
	case messages.Cancelled:
		return "cancelled"
	case messages.Discarded:
		return "discarded"
	default:
		return "failed"
	}
}

// Allocate decides. A job's weight in a class is its part of the slots that
// are to be taken by tasks pending; if there are none, the best who waits has
// it all. A job whose budget is spent is discarded. Prices are what a slot-second
// costs, in credits: of AtLevel, the level, by a second of length where prices
// are by length; of OwnBid, the lowest bid that runs.
func (c *Mechanism) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: matrix(len(view.Jobs), len(view.Classes)),
		Prices: make([]float64, len(view.Classes)), Tariffs: make([]mechanism.Tariff, len(view.Classes))}
	order := seniority(view)
	for _, job := range view.Jobs {
		if spent(job) {
			a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Discard})
		}
	}
	rates := make([]float64, len(view.Jobs)) // what a job will pay in a second, in credits
	for j := range view.Classes {
		s := c.stand(view, order, j)
		a.Prices[j], a.Tariffs[j] = s.price(), s.tariff()
		a.Directives = s.directives(a.Directives)
		s.weigh(a.Weights)
		s.spend(rates)
	}
	a.Wake = exhausted(view, rates)
	return a
}

func matrix(n, m int) [][]float64 {
	flat, rows := make([]float64, n*m), make([][]float64, n)
	for i := range rows {
		rows[i] = flat[i*m : (i+1)*m : (i+1)*m]
	}
	return rows
}

// seniority is the positions of the view's jobs, earlier arrival first, then
// smaller number.
func seniority(view *mechanism.View) []int {
	order := make([]int, len(view.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := view.Jobs[a], view.Jobs[b]
		return cmp.Or(cmp.Compare(x.Arrived, y.Arrived), cmp.Compare(x.Job, y.Job))
	})
	return order
}

// spent says whether a job has used up its budget.
func spent(job *mechanism.Job) bool { return job.Accrued >= job.Budget }

// exhausted is when the first job will have spent its budget, if nothing
// changes; 0: none will.
func exhausted(view *mechanism.View, rates []float64) messages.Time {
	first := math.Inf(1)
	for i, job := range view.Jobs {
		if rates[i] > 0 {
			first = min(first, (job.Budget-job.Accrued).Float()/rates[i])
		}
	}
	if first > 1e9 { // thirty years: not worth a wake
		return 0
	}
	return view.Now + messages.Time(math.Ceil(first*1e6)) + 1
}
