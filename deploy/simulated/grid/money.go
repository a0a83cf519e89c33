package grid

import (
	"fmt"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// A bank can hold only a limited amount. If the budgets of a study exceed this amount, the study is converted: each
// credit at the simulated site stands for 1,024 credits of the study. If this is not enough, each credit stands for
// 1,024² credits.
const (
	unitStep = 1024 // a power of two, so that floats are scaled exactly
	mostUnit = unitStep * unitStep
)

// fit converts a study to a larger unit of money, if needed, so that a bank can hold the budgets of the study.
func fit(p *core.Problem) (fitting *core.Problem, unit float64, err error) {
	for unit = 1; ; unit *= unitStep {
		fitting = in(unit, p)
		if _, err = budgets(fitting); err == nil || unit == mostUnit {
			return fitting, unit, err
		}
	}
}

// This function converts a study to another unit of money.
func in(unit float64, p *core.Problem) *core.Problem {
	if unit == 1 {
		return p
	}
	scaled, market := *p, *p.Market
	scaled.Prior = nil
	for _, t := range p.PriorJobs() {
		t.Value, t.Delay = core.Money(t.Value.Float()/unit), core.Money(t.Delay.Float()/unit)
		scaled.Prior = append(scaled.Prior, t)
	}
	scaled.Market, scaled.Bids = &market, make([]bids.Bid, len(p.Bids))
	for i, b := range p.Bids {
		b.Value, b.Rate, b.Budget = b.Value/unit, b.Rate/unit, b.Budget/unit
		scaled.Bids[i] = b
	}
	if market.Reserve != nil {
		reserve := *market.Reserve / unit
		market.Reserve = &reserve
	}
	if price, ok := market.Price.(float64); ok {
		market.Price = price / unit
	}
	return &scaled
}

// If budgets are too large for the simulated bank, one of its credits stands for several credits of the study. back
// converts the amounts of an outcome to credits of the study.
func back(unit float64, o *core.Outcome) {
	if unit == 1 {
		return
	}
	o.Notes = append(o.Notes, fmt.Sprintf("budgets sum to more than %v credits for one user, so one credit of the simulated bank stands for %.0f here", messages.MaxCredits, unit))
	for i := range o.Jobs {
		j := &o.Jobs[i]
		j.Paid = core.Money(j.Paid.Float() * unit)
	}
}

// A job may be split into parts, which are separate jobs. budgetOf returns the budget for one part. At pivot prices, a
// part also pays for its place in the order. So its budget is larger by the largest possible price of a place.
func budgetOf(p *core.Problem, i int) float64 {
	b := &p.Bids[i]
	if p.Market.Price == market.PricePivot {
		return b.Budget/float64(partsOf(p, i)) + b.Rate*core.Horizon(p.Market)
	}
	return b.Budget / float64(partsOf(p, i))
}

// budgets returns for each user the most that all its jobs can cost. If a job has parts, each part has its own hold, so
// the budget of each part is rounded separately.
func budgets(p *core.Problem) ([]messages.Credits, error) {
	need := make([]messages.Credits, len(p.Work.Users))
	for i := range p.Bids {
		parts := partsOf(p, i)
		budget, ok := messages.RoundCredits(budgetOf(p, i))
		user := p.Work.Jobs[i].User
		ok = ok && budget <= (messages.MaxCredits-need[user])/messages.Credits(parts)
		if need[user] += budget * messages.Credits(parts); !ok {
			return nil, messages.Errorf(messages.Invalid, "job %d: budget: the budgets of its user's jobs sum to more than %v credits: choose a smaller unit of value", p.Work.Jobs[i].Number, messages.MaxCredits)
		}
	}
	return need, nil
}

func (g *Grid) open() error {
	need, err := budgets(g.Problem)
	if err != nil {
		return err
	}
	grant := func(name messages.Name, amount messages.Credits, key string) error {
		if amount == 0 {
			return nil
		}
		c := &ledger.Command{Verb: ledger.Grant, At: g.now, By: "operator", Grant: money.GrantRequest{
			Key: "open/" + key, Account: name, Amount: amount, Reason: "the simulation begins"}}
		if r := g.bank.Apply(c.Encode()); r.Error != nil {
			return r.Error
		}
		return nil
	}
	for user, amount := range need {
		if err := grant(account(user), amount, account(user)); err != nil {
			return err
		}
	}
	for i := range g.Bids { // in a fixed order, so that runs can be repeated
		if o := g.config.Owners[i]; o != nil {
			if err := grant(account(g.Work.Jobs[i].User), core.Money(o.extra()*budgetOf(g.Problem, i)*float64(partsOf(g.Problem, i))), fmt.Sprint("owner/", i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// The account of an owner who raises budgets needs more credits. extra returns how many more, as a multiple of the
// job's budget.
func (o *Owner) extra() (x float64) {
	for _, a := range o.Acts {
		if a.Do == RaiseBudget {
			x += a.By
		}
	}
	return x
}
