package posted

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// Desk checks bids and settles jobs at the posted price, and makes allocations. Mechanisms with a posted price embed
// it.
type Desk struct {
	Classes []messages.Name

	price   messages.Credits // price of a slot-second, for display; the auctioneer charges the tariff, which is the market's reserve
	numbers []float64
	weights [][]float64
}

// Traits returns the traits that all mechanisms with a posted price have.
func Traits(name messages.Name, who string, parameters ...string) mechanism.Traits {
	return mechanism.Traits{
		Name: name, Who: who, Cost: "a posted price; a job ends when its budget is spent",
		Parameters: append(parameters, "reserve"), Bid: []string{"budget"},
		Manner: mechanism.Manner{Attentive: true, Raises: mechanism.Terms{Budget: true}}, Tells: mechanism.Queue,
		Owes: mechanism.ForTime, Rule: "the price is the time of its slots at present prices",
		Gains: "a job submitted as two halves, and jobs under false names",
	}
}

// NewDesk makes the desk of a valid market.
func NewDesk(m market.Market) *Desk { return &Desk{Classes: m.Classes, price: m.ReservePrice()} }

// Admit refuses jobs that cannot be run or charged for.
func (d *Desk) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Budget <= 0 || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Budget)
	case bid.Rate > 0 && bid.Rate < d.price: // no job pays more than its rate, so it would pay less than others
		return messages.Errorf(messages.Invalid, "rate: %s is less than the price here, %s: leave the rate out, or bid the price", messages.Price(bid.Rate).Words(), messages.Price(d.price).Words())
	case bid.Length < 0:
		return messages.Errorf(messages.Invalid, "length: must not be negative, is %v", bid.Length)
	case bid.Deadline < 0:
		return messages.Errorf(messages.Invalid, "deadline: must not be before 1970, is %v", bid.Deadline)
	case bid.Width < 0:
		return messages.Errorf(messages.Invalid, "width: must not be negative, is %d", bid.Width)
	}
	most := 0
	for _, c := range view.Classes {
		most = max(most, c.Slots)
	}
	if most > 0 && bid.Width > most {
		return messages.Errorf(messages.Invalid, "width: %d is more than the %d slots that any class has: ask for fewer", bid.Width, most)
	}
	return nil
}

// Settle charges the amount that accrued while the job held slots, at most its budget.
func (d *Desk) Settle(_ *mechanism.View, job *mechanism.Job, _ mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job, Amount: max(0, min(job.Accrued, job.Budget)), Reason: "the time of its slots, at the posted price"}
	if job.Accrued > job.Budget {
		p.Reason = fmt.Sprintf("its whole budget: the time of its slots costs %v credits at the posted price", job.Accrued)
	}
	return []mechanism.Payment{p}
}

// Allocation returns an allocation in which every weight is 0, for the mechanism to fill in. It discards the jobs whose
// budgets are spent. The next decision is due when the next budget is spent.
func (d *Desk) Allocation(view *mechanism.View) *mechanism.Allocation {
	m := len(d.Classes)
	d.numbers = append(d.numbers[:0], make([]float64, len(view.Jobs)*m)...)
	d.weights = d.weights[:0]
	for i := range view.Jobs {
		d.weights = append(d.weights, d.numbers[i*m:(i+1)*m:(i+1)*m])
	}
	a := &mechanism.Allocation{Weights: d.weights, Prices: make([]float64, m), Tariffs: make([]mechanism.Tariff, m)}
	for j := range a.Prices {
		a.Prices[j], a.Tariffs[j].Basis = d.price.Float(), mechanism.AtReserve
	}
	for _, job := range view.Jobs {
		if at := d.spent(view.Now, job); at != 0 && at <= view.Now {
			a.Directives = append(a.Directives, mechanism.Directive{Job: job.Job, Action: mechanism.Discard})
		} else {
			a.Wake = messages.Earlier(a.Wake, at)
		}
	}
	return a
}

// spent returns when a job will have spent its budget if it keeps its slots. If this time is very late, it returns an
// earlier time, and the caller must call spent again at that time. 0 means never.
func (d *Desk) spent(now messages.Time, job *mechanism.Job) messages.Time {
	if overdrawn(job) {
		return now
	}
	running := mechanism.Sum(job.Running)
	if running == 0 || d.price <= 0 || job.Budget == 0 {
		return 0
	}
	seconds := (job.Budget - job.Accrued).Float() / (d.price.Float() * float64(running))
	return now + messages.Time(math.Ceil(min(seconds, horizon)*1e6))
}

func overdrawn(job *mechanism.Job) bool { return job.Budget > 0 && job.Accrued >= job.Budget }

// horizon is how far the method [Desk.spent] looks ahead, in seconds.
const horizon = 3600

// Explain says how a job stands. The argument `rule` names the rule of the market. The argument `ahead` is how many
// jobs go before the job by this rule. Only jobs with pending tasks in the same classes count.
func (d *Desk) Explain(view *mechanism.View, job *mechanism.Job, ahead int, rule string) mechanism.Explanation {
	running, pending, slots := 0, 0, 0
	var waits []string
	for j, n := range job.Pending {
		running, pending = running+job.Running[j], pending+n
		if n > 0 {
			slots += view.Classes[j].Slots
			waits = append(waits, d.Classes[j])
		}
	}
	names := strings.Join(waits, " or ")
	switch {
	case overdrawn(job):
		return mechanism.ExplainBudget(job)
	case pending == 0 && running == 0:
		return mechanism.ExplainStage()
	case running > 0:
		return mechanism.Explain(mechanism.Running, mechanism.AtWork(running, pending))
	case slots == 0:
		return mechanism.ExplainSlots(names)
	case ahead > 0:
		return mechanism.Explain(mechanism.WaitingForTurn, fmt.Sprintf("%s before this job: %s", spelling.Number(ahead, "job goes", "jobs go"), rule),
			"the start or the end of the jobs before this job")
	default:
		return mechanism.Explain(mechanism.NextInTurn, "the job is next: "+rule, "a free slot of "+names)
	}
}

// Ahead returns how many jobs arrived before a job and have pending tasks in one of its classes.
func Ahead(view *mechanism.View, job *mechanism.Job) (n int) {
	for _, other := range view.Jobs {
		if Order(other, job) < 0 && compete(other, job) {
			n++
		}
	}
	return n
}

func compete(a, b *mechanism.Job) bool {
	for j := range a.Pending {
		if a.Pending[j] > 0 && b.Pending[j] > 0 {
			return true
		}
	}
	return false
}

// Order compares two jobs by arrival. Of two jobs with the same arrival, the job with the lower number goes first. The
// result is negative if job a goes before job b.
func Order(a, b *mechanism.Job) int {
	return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), cmp.Compare(a.Job, b.Job))
}
