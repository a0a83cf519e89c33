package mechanism

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Traits are all that the site, the command line and the pages know of a mechanism. Each
// mechanism describes itself by a function from a market to Traits, since parameters of the
// market may change them. The function reads the parameters only, so that it answers for an
// empty market too.
type Traits struct {
	Name messages.Name
	Make func(messages.Market) (Mechanism, error)
	// Solve runs the mechanism on a document of `candor solve`; the answer is what prints as JSON.
	Solve func(document []byte) (any, error)
	// Who says in the table of mechanisms who runs, and Cost what is paid.
	Who, Cost string

	// Parameters are the fields of a market that the mechanism uses, of those that not all
	// mechanisms do, as a configuration spells them. Modes are the words of the field mode.
	Parameters, Modes []string

	// Bid are the fields of a bid that the mechanism reads, beginning with the budget. Any other
	// one of them is refused; see intake.
	Bid []string
	Manner
	Tells Disclosure
	// Decides is the term of a bid by which it decides who gets how much: messages.TermBudget or
	// TermRate, as far as users may ask what another bid would change. Unasked says why they
	// may not; "": as Tells says.
	Decides, Unasked string

	// Owes and Rule are the amount and the words of the price in an offer.
	Owes Owes
	Rule string
	// Capped: no job pays more than its own bid where prices have a level.
	Capped bool
	// AtDeadline: a job is charged at its deadline. Keeps: outputs and logs are kept until then.
	AtDeadline, Keeps bool
	// Reserves: it sells reservations, of which there is a timetable.
	Reserves bool
}

// Reads says whether a field of a bid counts.
func (t *Traits) Reads(field string) bool { return slices.Contains(t.Bid, field) }

// Owes is what an offer expects a job to pay.
type Owes uint8

// What jobs pay.
const (
	UpToBudget Owes = iota
	UpToValue       // or the budget, if that is less
	ForTime         // the time of its slots, at present prices
)

// Disclosure is what a market tells users of the jobs of others. An operator is told
// everything, and everybody everything of the own jobs, slots and how many jobs there
// are. The reasons stand with each mechanism.
type Disclosure uint8

// The disclosures. Where nothing is said, nothing is told.
const (
	// Secret: users see nothing else, because nobody needs the bids of others to bid
	// well.
	Secret Disclosure = iota
	// Prices: also the price and how many tasks wait, but not while the bids of exactly
	// one other account make them.
	Prices
	// Queue: also who waits and runs, with its tasks and shares, and who is next, as
	// no bid decides these.
	Queue
)

// Manner is how a market deals with its mechanism.
type Manner struct {
	// Attentive: the mechanism is to decide whenever any number of the view has
	// changed, not just who bids and how many slots there are.
	Attentive bool
	// Shares: weights are shares of slot time, of which agents draw tasks by themselves.
	Shares bool
	// Directs: tasks may be claimed only as its directives say.
	Directs bool
	// Commits: its word that a job starts, or does not run, is final, and what
	// that costs is settled at once.
	Commits bool
	// Gangs: the mechanism keeps the tasks of a gang together.
	Gangs bool
	// Wide: a task may take several slots of a node.
	Wide bool
	// Even: the tasks of a job take as many slots of a class each.
	Even bool
	// Displaces: a job takes slots of those that come after it by Order, so that a task of several slots
	// has its node chosen, and none gathers.
	Displaces bool
	// Spans: a job has its slots for its declared length and no longer.
	Spans bool
	// Stays: what others owe depends on a job from when it bids until it ends, so that it
	// cannot be put on hold meanwhile.
	Stays bool
	// Raises says which terms of a bid may be raised once it was taken; none may be lowered,
	// and the others stay. Each mechanism's doc says why.
	Raises Terms
	// Plans: the mechanism plans with the likely run times of tasks.
	Plans bool
	// Order compares two jobs by who gets a slot first, where that never changes and the
	// mechanism heeds [Job].Stuck; nil: neither.
	Order func(x, y *Job) int
}

// Terms are terms of a bid.
type Terms struct {
	Budget bool
	Rate   bool // as long as no task has been started
}

// Names are the terms, as a job spells them.
func (t Terms) Names() (out []string) {
	if t.Budget {
		out = append(out, messages.TermBudget)
	}
	if t.Rate {
		out = append(out, messages.TermRate)
	}
	return out
}

// Maker makes a constructor return an interface, nil where there is an error.
func Maker[M Mechanism](make func(messages.Market) (M, error)) func(messages.Market) (Mechanism, error) {
	return func(m messages.Market) (Mechanism, error) {
		made, err := make(m)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}
