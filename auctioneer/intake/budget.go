package intake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// The site assumes a budget for a job without one. If a task of such a job has no run time, the site assumes that it
// runs for assumedTime.
const assumedTime = messages.Duration(time.Hour)

// Assume sets the budget of a job that has none. Before that, the job's other defaults must be filled in. It returns a
// sentence about the budget that it has set.
func (r *Rules) Assume(spec *job.JobSpec) (said string, err error) {
	return assumeBudget(spec, r.Find(spec.Market), true)
}

// assumeBudget gives a job without a budget the default of its market, and says so in a sentence. Without a default,
// the budget is the job's value, or the cost of its slots for the time that it asks for. The argument `placed` says
// that the widths of the tasks are final, because their nodes are known.
func assumeBudget(spec *job.JobSpec, m *market.Market, placed bool) (said string, err error) {
	t, tasks := registry.Of(m), spec.TaskCount()
	switch {
	case m.DefaultBudget != 0 && tasks > int(messages.MaxCredits/m.DefaultBudget):
		return "", messages.Errorf(messages.TooLarge, "budget: the default of market %s is too much for %d tasks; name a budget", m.Name, tasks)
	case m.DefaultBudget != 0:
		spec.Budget = m.DefaultBudget * messages.Credits(tasks)
		return fmt.Sprintf(job.NoBudget+", and has the default budget of market %s: the job may cost %s", m.Name, spec.Budget.Words()), nil
	case spec.Value > 0 && t.Reads("value"):
		spec.Budget = spec.Value
		return fmt.Sprintf(job.NoBudget+", and may cost its value, %s", spec.Budget.Words()), nil
	}
	hourly := messages.Credit.Float() // the hourly rate that is assumed if slot time has no price
	if t.Owes == mechanism.ForTime {
		hourly = 3600 * max(m.ReservePrice(), spec.Rate).Float()
	}
	seconds, stated := asksFor(spec, m, placed, assumedTime)
	budget, ok := messages.RoundCredits(hourly * seconds / 3600)
	if !ok {
		return "", messages.Errorf(messages.TooLarge, "budget: the slots that the job asks for cost more than %v credits; name a budget, or a shorter time", messages.MaxCredits)
	}
	spec.Budget = max(budget, 1)
	said = fmt.Sprintf(job.NoBudget+", and may cost %s: %s of slot time at %s an hour", spec.Budget.Words(), span(seconds), words(hourly))
	if !stated {
		said += "; it names no time limit"
	}
	return said, nil
}

// asksFor returns how many slot-seconds all tasks of a job ask for, and whether every task has a run time. A task
// without a run time counts with the time `otherwise`, but at most with the market's time limit.
func asksFor(spec *job.JobSpec, m *market.Market, placed bool, otherwise messages.Duration) (seconds float64, stated bool) {
	stated = true
	for i := range spec.Stages {
		s := &spec.Stages[i]
		width := s.Slots()
		if !placed {
			width, _ = m.UnitOf(cmp.Or(s.Class, smallest(m, s), m.Classes[0])).Width(s.Needs())
		}
		limit := cmp.Or(s.TimeLimit, spec.Length)
		stated = stated && limit > 0
		seconds += float64(s.TaskCount()) * float64(max(width, 1)) * cmp.Or(limit, least(otherwise, m.TimeLimit)).Seconds()
	}
	return seconds, stated
}

func words(credits float64) string {
	if text := messages.Short3(credits); text != "1" {
		return text + " credits"
	}
	return "1 credit"
}

func span(seconds float64) string {
	if seconds >= 1e6 { // more than about eleven days
		return messages.Short3(seconds/3600) + " hours"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

// leastTime is the shortest slot time that a budget must buy. No process can start and end in less time.
const leastTime = 10 * time.Millisecond

// checkBudget returns an error if the budget buys less slot time than a task needs at least (leastTime). A quote can be
// for a job without a budget.
func checkBudget(spec *job.JobSpec, m *market.Market) error {
	price := m.ReservePrice()
	if registry.Of(m).Owes != mechanism.ForTime || spec.Budget == 0 || spec.Budget.Float() >= price.Float()*leastTime.Seconds() {
		return nil
	}
	return messages.Errorf(messages.Invalid, "budget: %s, and no task can run in that time; name a larger budget", buys(spec.Budget, price))
}

// buys says in words how much slot time a budget buys, given the price of a slot-second.
func buys(budget, price messages.Credits) string {
	verb := "buy"
	if budget == messages.Credit {
		verb = "buys"
	}
	return fmt.Sprintf("%s %s %s of slot time at %s an hour", budget.Words(), verb, span(budget.Float()/price.Float()), (3600 * price).Words())
}

// Buys says how long the job's slots can run on its budget. If time on slots has no price in this market, Buys says
// what the job pays for. The computation uses the lowest possible price, because the present price could disclose other
// bids. The result `short` is true if the budget pays for less time than the job asks for.
func Buys(s *Submission) (said string, short bool) {
	t := registry.Of(s.Market)
	price := s.Market.ReservePrice()
	if t.Owes != mechanism.ForTime || price == 0 {
		return t.Rule, false
	}
	bought := s.Spec.Budget.Float() / price.Float()
	said = buys(s.Spec.Budget, price)
	if t.Reads("rate") {
		said += ", the least price"
	}
	if asks, stated := asksFor(s.Spec, s.Market, true, 0); stated && asks > bought*1.001 { // allow for the rounding of prices
		return said + ", and the job asks for " + span(asks) + ": it ends when its budget is spent", true
	}
	return said, false
}
