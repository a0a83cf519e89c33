package posted

import (
	"fmt"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Config describes a market with a posted price.
type Config struct {
	Market messages.Market
	// Price of a slot-second, as shown; what is charged is the tariff that the
	// auctioneer commits, at the market's reserve. 0: a credit.
	Price messages.Credits
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	if len(c.Market.Classes) == 0 {
		return messages.Errorf(messages.Invalid, "market %s: classes: name at least one", c.Market.Name)
	}
	if c.Price < 0 || c.Price > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "market %s: price: must be from 0 to %v credits, is %v", c.Market.Name, messages.MaxCredits, c.Price)
	}
	return nil
}

// Desk admits and settles at the posted price, and keeps the memory of the
// allocations.
type Desk struct {
	Classes []messages.Name

	price   messages.Credits
	numbers []float64
	weights [][]float64
}

// NewDesk makes the desk of a market.
func NewDesk(c Config) (*Desk, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Price == 0 {
		c.Price = messages.Credit
	}
	return &Desk{Classes: c.Market.Classes, price: c.Price}, nil
}

// Admit refuses what cannot be run or charged for.
func (d *Desk) Admit(view *mechanism.View, bid *mechanism.Bid) error {
	switch {
	case bid.Budget <= 0 || bid.Budget > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "budget: must be above 0 and at most %v credits, is %v", messages.MaxCredits, bid.Budget)
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

// Settle charges what has accrued at the tariffs while the job held slots, at
// most its budget.
func (d *Desk) Settle(_ *mechanism.View, job *mechanism.Job, _ mechanism.End) []mechanism.Payment {
	p := mechanism.Payment{From: job.Job, Amount: max(0, min(job.Accrued, job.Budget)), Reason: "the slot-seconds it used, at the posted price"}
	if job.Accrued > job.Budget {
		p.Reason = fmt.Sprintf("its budget: the slot-seconds it used come to %v credits at the posted price", job.Accrued)
	}
	return []mechanism.Payment{p}
}

// Allocation returns an allocation with no weight yet on any job.
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
	return a
}

// The reasons that Explain gives.
const (
	Running         = "Running"         // some of its tasks run
	WaitingForStage = "WaitingForStage" // no task can be claimed before an earlier stage is done
	WaitingForSlots = "WaitingForSlots" // no node that is up has the class it waits for
	WaitingForTurn  = "WaitingForTurn"  // others go first
	NextInTurn      = "NextInTurn"      // nobody goes first: it waits for a slot
)

// Explain says where a job stands; ahead is how many jobs with work pending in
// the same classes go before it, by the rule that is named.
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
	case pending == 0 && running == 0:
		return mechanism.Explanation{Reason: WaitingForStage, Message: "none of its tasks can start before an earlier stage is done",
			Change: []string{"the stages it comes after finishing"}}
	case running > 0:
		return mechanism.Explanation{Reason: Running, Message: fmt.Sprintf("%d of its tasks run and %d can start", running, pending), Change: []string{}}
	case slots == 0:
		return mechanism.Explanation{Reason: WaitingForSlots, Message: "no node that is up has a slot of " + names,
			Change: []string{"a node with slots of " + names + " coming up"}}
	case ahead > 0:
		return mechanism.Explanation{Reason: WaitingForTurn, Message: fmt.Sprintf("%d jobs go before it: %s", ahead, rule),
			Change: []string{"jobs that go before it starting or ending"}}
	default:
		return mechanism.Explanation{Reason: NextInTurn, Message: "it is next: " + rule, Change: []string{"a slot of " + names + " coming free"}}
	}
}

// Older says whether a job goes before another that bids in the same market:
// by arrival, ties by number.
func Older(a, b *mechanism.Job) bool {
	return a.Arrived < b.Arrived || a.Arrived == b.Arrived && a.Job < b.Job
}
