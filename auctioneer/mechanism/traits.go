package mechanism

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Traits are all that the site, the command line and the pages know about a mechanism. Each
// mechanism describes itself with a function from a market to Traits, because the market's
// parameters may change them. The function reads only the parameters, so it also works for an
// empty market.
type Traits struct {
	Name messages.Name
	Make func(messages.Market) (Mechanism, error)
	// Solve runs the mechanism on a document of `candor solve`, which prints the answer as JSON.
	Solve func(document []byte) (any, error)
	// Who and Cost are two columns of the table of mechanisms: who gets slots, and what a job pays.
	Who, Cost string
	// Gains says by what an owner can gain more than by the truth, as far as is known. The page of markets
	// has the figures.
	Gains string

	// Parameters are the market's fields that this mechanism uses and some others do not, as a
	// configuration spells them. Modes are the accepted values of the field mode.
	Parameters, Modes []string

	// Bid lists the fields of a bid that the mechanism reads, the budget first. A bid with
	// another field is refused; see package intake.
	Bid []string
	Manner
	Tells Disclosure
	// Decides is the field of a bid that decides how much a job gets, messages.TermBudget or
	// TermRate, if users may ask what another bid would change. Unasked says why they may not;
	// "": Tells decides.
	Decides, Unasked string

	// Owes and Rule say in an offer how much a job will pay: as an amount, and in words.
	Owes Owes
	Rule string
	// Capped: with the basis AtLevel no job pays more than its own bid.
	Capped bool
	// AtDeadline: a job is charged at its deadline. Keeps: outputs and logs are kept until then.
	AtDeadline, Keeps bool
	// Reserves: the mechanism sells reservations, which the site lists in a timetable.
	Reserves bool
}

// Reads reports whether the mechanism reads a field of a bid.
func (t *Traits) Reads(field string) bool { return slices.Contains(t.Bid, field) }

// FixesTimes reports whether the mechanism promises jobs when they start, or when they end.
func (t *Traits) FixesTimes() bool { return t.Commits || t.Reads("contract") }

// Owes is what an offer expects a job to pay.
type Owes uint8

// What jobs pay.
const (
	UpToBudget Owes = iota
	UpToValue       // at most its declared value, or the budget if that is less
	ForTime         // the time of its slots, at present prices
)

// Disclosure is what a market tells users about the jobs of others. Operators see everything.
// Every user sees the own jobs, the slots and the number of jobs. Each mechanism gives the reason
// for its disclosure.
type Disclosure uint8

// The disclosures. The zero value discloses nothing.
const (
	// Secret: users see nothing else, because nobody needs the bids of others to bid
	// well.
	Secret Disclosure = iota
	// Prices: also the price and the number of waiting tasks, unless they come from the bids of
	// a single other account.
	Prices
	// Queue: also which jobs wait and run, with their tasks and shares, and which is next. No bid
	// decides these.
	Queue
)

// Manner says how a market must use its mechanism.
type Manner struct {
	// Attentive: the mechanism must decide whenever any number of the view has changed, not
	// only the set of bidders or the number of slots.
	Attentive bool
	// Shares: weights are shares of slot time, and agents draw jobs from them by themselves.
	Shares bool
	// Directs: tasks may be claimed only as the directives say.
	Directs bool
	// Commits: the decision that a job starts or will not run is final, and its price is settled
	// at once.
	Commits bool
	// Gangs: the mechanism keeps the tasks of a gang together.
	Gangs bool
	// Wide: a task may take several slots of a node.
	Wide bool
	// Even: all tasks of a job take the same number of slots of a class.
	Even bool
	// Displaces: a job takes slots from jobs that come after it by Order. The market then chooses
	// the node for a task of several slots, and such tasks never gather slots.
	Displaces bool
	// Spans: a job has its slots for its declared length and no longer.
	Spans bool
	// Stays: from its bid to its end, a job affects what other jobs owe. So it cannot be put on
	// hold in between.
	Stays bool
	// Raises says which terms of an accepted bid may be raised. No term may be lowered. Each
	// mechanism's doc.go says why.
	Raises Terms
	// Plans: the mechanism plans with the likely run times of tasks.
	Plans bool
	// Order compares two jobs by who gets a slot first. It is for mechanisms whose order never
	// changes and that read [Job].Stuck; nil for the others.
	Order func(x, y *Job) int
}

// Terms is a set of terms of a bid.
type Terms struct {
	Budget bool
	Rate   bool // as long as no task has been started
}

// Names returns the terms, as a job spells them.
func (t Terms) Names() (out []string) {
	if t.Budget {
		out = append(out, messages.TermBudget)
	}
	if t.Rate {
		out = append(out, messages.TermRate)
	}
	return out
}

// Maker converts a constructor of a concrete mechanism into one that returns a [Mechanism]: nil, not
// a nil pointer, if there is an error.
func Maker[M Mechanism](make func(messages.Market) (M, error)) func(messages.Market) (Mechanism, error) {
	return func(m messages.Market) (Mechanism, error) {
		made, err := make(m)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}
