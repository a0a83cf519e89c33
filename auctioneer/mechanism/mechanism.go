// Package mechanism is the one interface between the auctioneer and its
// mechanisms. A mechanism decides, from a view of its market and a time, what
// share of each class each job gets, and who owes what when a job ends. It is
// pure: no clock, no I/O, no goroutine that outlives a call, no dependence on
// the order of a map; the same calls give the same answers. It may keep what
// it worked out last to start from next time, but a mechanism made anew and
// given the same view must come to the same decisions within its stated error.
//
// The live auctioneer, the command `candor solve` and the simulator all use
// this interface or the whole-instance functions that the subpackages export
// beside it. Mechanisms import the standard library, gonum, and the value
// types of package messages.
package mechanism

import "github.com/candor-grid/candor/messages"

// Mechanism runs one market. It is not safe for concurrent use.
type Mechanism interface {
	// Admit checks a bid against the market's rules before it is taken. The
	// error is a *messages.Error that tells the bidder what to change.
	Admit(view *View, bid *Bid) error
	// Allocate decides. The view and all it points to stay unchanged during
	// the call; the allocation is valid until the next call.
	Allocate(view *View) *Allocation
	// Settle says who owes what when a job has ended: view.Now is when, and
	// the job is no longer among view.Jobs. Payments by the job itself must
	// not exceed its budget.
	Settle(view *View, job *Job, end End) []Payment
	// Explain says why a job of the view is where it is.
	Explain(view *View, job *Job) Explanation
}

// Bid is what a job declares. Classes are positions in View.Classes.
type Bid struct {
	Job        messages.JobID
	Account    messages.Name
	Arrived    messages.Time
	Budget     messages.Credits
	Form       messages.Form
	Weights    []float64 // by class; never negative, NaN or infinite
	MinUtility float64   // 0: none

	// The fields below are for mechanisms that assign slots; 0: the job declares nothing.

	Rate     messages.Credits  // bid for a slot-second
	Value    messages.Credits  // worth of the whole job
	Delay    messages.Credits  // cost of a second of delay
	Length   messages.Duration // run time, as declared
	Deadline messages.Time
	Width    int // slots that it needs at the same time
	Alone    int // slots of its widest task, where Width is of that and of no gang; 0: Width is of a gang, or 1

	// The fields below are for mechanisms that sell completion times.

	Tasks     int                 // of all its stages; 0: those that could be claimed or run
	Valuation *messages.Valuation // what completion is worth at each time; nil: nothing is declared
	Contract  *messages.Contract  // that was taken; nil: none
	Runtimes  *Runtimes           // what was seen of tasks like its; nil: nothing
}

// Job is a bid and how far its work has come.
type Job struct {
	*Bid
	Pending []int // by class: slots of tasks that could be claimed now
	Running []int // by class: slots of tasks claimed and not finished
	Started messages.Time

	// The fields below are for mechanisms that suspend, and that charge by time.

	Suspended []int            // by class: slots of tasks suspended, not counted in Running; nil: none
	Stuck     []int            // by class: of Suspended, those of tasks whose node has no slot for them; nil: none
	Nowhere   []int            // by class: of Pending, the slots of tasks for which no node has enough; nil: none
	Accrued   messages.Credits // owed so far, at the tariffs that were committed

	// Received is the slot time the job has had, for mechanisms that count it; 0
	// where the auctioneer does not say.
	Received messages.Duration
	// Lacked is the slot time that the job's shares were of since it had its first slot, while it had
	// tasks pending, at most a slot for each task that ran or could, less what it had then; below 0: it had more.
	Lacked messages.Duration
	// Done is how many tasks are over, for mechanisms that plan with what is left; 0
	// where the auctioneer does not say.
	Done int
	// Complete: for prices every task is complete, and what runs does so once more. Whole is what the
	// job had by then; nil: that is not known, or it is not complete.
	Complete bool
	Whole    *Used
}

// Used are Accrued, Received and Lacked of a job at an instant.
type Used struct {
	Accrued          messages.Credits
	Received, Lacked messages.Duration
}

// Sum is how many tasks there are in all classes together.
func Sum(byClass []int) (n int) {
	for _, k := range byClass {
		n += k
	}
	return n
}

// Class is a resource class of the market.
type Class struct {
	Name  messages.Name
	Slots int // of all nodes that are up
	Idle  int
}

// View is a market at an instant. Jobs are in the order of their numbers.
type View struct {
	Now     messages.Time
	Classes []Class
	Jobs    []*Job
	// Charge brings Accrued and Received of a job up to Now; nil: both are as of Now.
	Charge func(*Job)
}

// Read brings what a job has accrued up to the view's time.
func (v *View) Read(job *Job) {
	if v.Charge != nil {
		v.Charge(job)
	}
}

// Allocation is a decision. Weights[i][j] is the share of class j for
// view.Jobs[i], in [0, 1]; over the jobs that have tasks pending in a class
// the shares sum to one, and every other job has 0 there. Prices[j] is the sum
// of the sub-budgets bid for class j, in credits.
type Allocation struct {
	Weights [][]float64
	Prices  []float64
	// Wake is when the mechanism is to decide again if nothing changes before; 0: never.
	Wake messages.Time
	// Directives are orders, from mechanisms that assign slots.
	Directives []Directive
	// Tariffs, by class, are what running costs from now on, from mechanisms that
	// charge by time. A tariff that differs from the last is to be committed.
	Tariffs []Tariff
}

// Tariff says what a second on a slot costs each job, in integers, so that what
// a job owes can be worked out from the tariffs committed while it ran.
type Tariff struct {
	Basis  Basis
	Rate   messages.Credits  // of AtLevel: what the job that sets the level bids for a slot-second
	Length messages.Duration // of AtLevel: its length, where prices are by length; else 0
}

// Basis is what a price is made of.
type Basis uint8

// The bases. At a level each pays the rate, times its own length over the
// tariff's where there is one, and not above its own bid where the market says so.
const (
	AtReserve Basis = iota // the market's reserve
	OwnBid                 // the job's own bid
	AtLevel                // the level of those who wait
	// Contention is no price: Rate is the part of a slot-second that is contended, a
	// credit for all of it.
	Contention
)

// Directive orders something for one job. A job without one goes on as it is.
type Directive struct {
	Job    messages.JobID
	Action Action
	At     messages.Time // of Start: when; 0: now
	Slots  int           // of Start: how many at once; of Suspend and Resume: how many, 0: all
	Class  int           // position in View.Classes
}

// Action is what a directive orders.
type Action uint8

// The actions.
const (
	Start   Action = iota // start the job's tasks together
	Suspend               // take its slots away, to go on later
	Resume
	Discard // it will not be run
)

// End says how a job ended.
type End struct {
	State  messages.State // Completed, Failed or Cancelled
	Tasks  int
	Done   int     // tasks that are complete for prices
	Began  int     // tasks that had a slot, but for those that the site broke
	Shares []Share // by class
	// At is when it ended, which may be long before it is settled; 0: view.Now.
	At messages.Time
	// Completed is when the job was complete for prices: when for each of its tasks an
	// attempt had been ended by its program, with any exit code, or by its owner; or when its
	// owner or its program ended the job after it had slots. Later attempts change nothing. 0:
	// the site took the job away before. Delivered is the slot time until then.
	Completed messages.Time
	Delivered messages.Duration
}

// Share is the share of a class that a job was allocated and received,
// averaged over the time it had work pending there.
type Share struct{ Allocated, Received float64 }

// Payment is credits owed by one account holder to another: a job number
// stands for the account that pays for it, 0 for the site.
type Payment struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
	// Now: it is made when the market decides on the job, and not with the job's charge.
	Now bool
}

// Explanation is the part of a WhyReply that the mechanism knows.
type Explanation struct {
	Reason  string // stable CamelCase
	Message string
	Change  []string // what would change it, a sentence each
}

// Deferred is a Mechanism whose prices depend on what happens after a job has
// ended. Settle asked earlier than SettleAt answers from what is known by then.
type Deferred interface {
	Mechanism
	// SettleAt is when a job that has ended is to be settled; it is asked again when
	// that time has come, and may put the settlement off.
	SettleAt(now messages.Time, job *Job, end End) messages.Time
}

// Incremental is a Mechanism that can decide at a cost that depends on what
// has changed rather than on how many jobs there are.
type Incremental interface {
	Mechanism
	// Update decides as Allocate does. Changed are the jobs of the view that arrived,
	// or whose counts of tasks changed, since the last call of either method; gone
	// are the jobs that left, some of which view.Jobs may still have here, in Admit and
	// in Settle. What other jobs have accrued is as of their last Read.
	Update(view *View, changed []*Job, gone []messages.JobID) *Change
}

// Lining is a Mechanism that has those who wait in line between two decisions.
type Lining interface {
	Mechanism
	// Next is the job of which a pending task gets the next slot of a class that becomes
	// free on any node, as the last decision has it; 0: none, or it is not known.
	Next(class int) messages.JobID
}

// Change is a decision as far as it differs from the one before: the jobs it
// does not list keep their weights, within the mechanism's stated error.
type Change struct {
	// Whole: Jobs is all of view.Jobs; else some of them.
	Whole bool
	Jobs  []*Job
	// Weights, by job, then by class, are shares as in Allocation once they are multiplied
	// with Scale. So are the weights of the jobs that are not listed.
	Weights [][]float64
	Scale   []float64 // by class, above 0; nil: 1 for each
	// The rest is as in Allocation, whole.
	Prices     []float64
	Wake       messages.Time
	Directives []Directive
	Tariffs    []Tariff
}

// Runtimes are the observed run times of tasks like those of a job, over all its
// stages.
type Runtimes struct {
	Seconds    []float64 // equally likely
	Divergence float64   // in nats: how far from the truth they may be
	Runs       float64   // tasks or jobs that they rest on
}

// Quoter is a Mechanism that sells contracts: its bids must carry one that it
// quoted, as Bid.Contract. The auctioneer sees to that: it keeps what it quoted,
// and a submission names a quote and a place on it.
type Quoter interface {
	Mechanism
	// Quote makes the menu of contracts of a job that is about to be submitted,
	// or of a job of the view. The bid needs Arrived (0: now), Length, Tasks and
	// Valuation; class are types of earlier jobs of the same class, never the type of
	// this job. The bidder must not know the seed before it has bid, and must get the
	// same seed each time: else it could choose its draw. The same seed gives the
	// same menu. The mechanism does not change.
	Quote(view *View, bid *Bid, class []messages.Valuation, seed uint64) (*Quote, error)
	// Kept reports whether a job that has ended completed as its contract promised; known: that
	// can be told.
	Kept(job *Job, end End) (kept, known bool)
}

// Quote is a menu.
type Quote struct {
	Contracts []messages.Contract // by completion
	Most      []messages.Credits  // by contract: what it costs at most
	// Declared is the contract that nobody of exactly the declared type likes less
	// than another: to be taken where the bidder has no wish of its own.
	Declared int
	Free     int // the earliest contract that costs nothing
}
