package mechanism

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Traits describe a mechanism to the site, the command line and the pages. Each mechanism has a function that returns
// its Traits for a market, from the market's parameters only.
type Traits struct {
	Name messages.Name
	Make func(market.Market) (Mechanism, error)
	// Solve runs the mechanism on a document of `candor solve`, which prints the answer as JSON.
	Solve func(document []byte) (any, error)
	// Who and Cost are two columns of the table of mechanisms: who gets slots, and what a job pays.
	Who, Cost string
	// Gains lists the known actions with which an owner can gain more than an owner who tells the truth. The
	// documentation page about markets has the measured gains.
	Gains string

	// Parameters are names of fields in a market's configuration. The mechanism uses these fields, and at least one
	// other mechanism does not. Modes are the accepted values of the field "mode".
	Parameters, Modes []string

	// Bid lists the fields of a bid that the mechanism reads, the budget first. A bid with other fields is refused; see
	// package intake.
	Bid []string
	Manner
	Tells Disclosure
	// Decides names the field of a bid that decides how much a job gets, market.TermBudget or market.TermRate, if users
	// may ask what another bid would change. If they may not ask, Unasked may say why. If Decides and Unasked are both
	// "", users may ask only if the field Tells permits it.
	Decides, Unasked string

	// Owes and Rule tell, in an offer, how much a job will pay. Owes tells it as an amount, and Rule tells it in words.
	Owes Owes
	Rule string
	// Hourly is true if the price of a class follows the demand, and every job pays this price for each second on a
	// slot.
	Hourly bool
	// Capped is true if no job pays more than its own bid for a slot-second, even if the tariff is a common price level
	// (the basis AtLevel).
	Capped bool
	// AtDeadline is true if a job is charged at its deadline. Keeps is true if the site shows outputs and logs only
	// from the deadline on.
	AtDeadline, Keeps bool
	// Reserves is true if the mechanism sells reservations, which the site lists in a timetable.
	Reserves bool
}

// Reads reports whether the mechanism reads a field of a bid.
func (t *Traits) Reads(field string) bool { return slices.Contains(t.Bid, field) }

// FixesTimes reports whether the mechanism promises start times or end times to jobs.
func (t *Traits) FixesTimes() bool { return t.Commits || t.Reads("contract") }

// Owes says which amount an offer shows as a job's payment.
type Owes uint8

// A job owes at most one of these amounts:
const (
	UpToBudget Owes = iota
	UpToValue       // the job's declared value, or its budget if this is less
	ForTime         // the price of its slot time, at present prices
)

// Disclosure says what a market shows to users about the jobs of others. Operators see everything. Every user sees
// their own jobs, the slots and the number of jobs.
type Disclosure uint8

const (
	// Secret means that users see neither prices nor other users' jobs. They can bid well without knowing other bids.
	Secret Disclosure = iota
	// Prices means that users also see the price and the number of waiting tasks. There is an exception: if all waiting
	// tasks are from a single other account, users see neither the price nor this number.
	Prices
	// Queue means that users see the same as with Prices. They also see which jobs wait and run, with their tasks and
	// shares, and which job is next. A mechanism may use Queue only if none of this depends on bids, because users
	// could otherwise infer the bids.
	Queue
)

// Manner says how a market must call its mechanism, and what it must observe.
type Manner struct {
	// Attentive is true if the mechanism must decide whenever any number in the view has changed. Otherwise it decides
	// only when the set of bidders or the number of slots has changed.
	Attentive bool
	// Shares is true if weights are shares of slot time, with which agents choose jobs.
	Shares bool
	// Directs is true if tasks may be claimed only when the mechanism has ordered this with a directive.
	Directs bool
	// Commits is true if the mechanism decides only once whether a job starts or will never run. This decision settles
	// the job's price at once.
	Commits bool
	// Gangs is true if the mechanism keeps the tasks of a gang together.
	Gangs bool
	// Wide is true if a task may take several slots of a node.
	Wide bool
	// Assembles is true if a job may be an allocation of several nodes. These nodes reserve slots for the job one after
	// another, and then start its tasks together.
	Assembles bool
	// Even is true if all tasks of a job must take the same number of slots of a class.
	Even bool
	// Displaces is true if a job takes slots from jobs that come later in Order. If it is true, the market chooses the
	// node for each task that takes several slots.
	Displaces bool
	// Spans is true if a job has its slots for exactly its declared length.
	Spans bool
	// Stays is true if a job makes other jobs pay more during the whole time from its submission to its end. Then a job
	// cannot be put on hold.
	Stays bool
	// Raises says which terms of an accepted bid may be raised. No term may be lowered.
	Raises Terms
	// Plans is true if the mechanism plans with the likely run times of tasks.
	Plans bool
	// Order compares two jobs: the job that gets a slot first is the smaller one. A mechanism sets Order only if its
	// order of jobs never changes and it reads [Job].Stuck. Otherwise Order is nil.
	Order func(x, y *Job) int
}

// Terms names some terms of a bid, such as the terms that a user may raise.
type Terms struct {
	Budget bool
	Rate   bool // the user may raise the rate, but only until the first task has started
}

// Names returns the names of the terms, as they are written in a job.
func (t Terms) Names() (out []string) {
	if t.Budget {
		out = append(out, market.TermBudget)
	}
	if t.Rate {
		out = append(out, market.TermRate)
	}
	return out
}

// Maker takes the constructor of a concrete mechanism, and returns a constructor that returns the interface
// [Mechanism]. If the constructor fails, this interface is nil. Without Maker, the interface would contain a nil
// pointer, and an interface with a nil pointer is not equal to nil.
func Maker[M Mechanism](make func(market.Market) (M, error)) func(market.Market) (Mechanism, error) {
	return func(m market.Market) (Mechanism, error) {
		made, err := make(m)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}
