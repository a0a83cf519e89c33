// Package mechanism is the interface between the auctioneer and its mechanisms. From a view of its
// market and a time, a mechanism decides what share of each class each job gets, and who owes what
// when a job ends.
//
// A mechanism is pure: it has no clock, no I/O and no goroutine that outlives a call, and does not
// depend on the order of a map. The same calls give the same answers. It may start from its last
// result to save time. But a new mechanism with the same view must decide the same, within the
// error that its package states.
//
// The live auctioneer and the simulator use this interface. The command `candor solve` uses
// functions for whole instances, which the subpackages also export. Mechanisms import the standard
// library, gonum, and the value types of package messages.
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
	// Settle returns who owes what when a job has ended, at view.Now. The job is no longer
	// among view.Jobs. Payments by the job itself must not exceed its budget.
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
	Alone    int // if Width is the slots of the widest single task: the same number; 0: Width is of a gang, or is 1

	// The fields below are for mechanisms that sell completion times.

	Tasks     int                 // in all stages; 0: count the tasks that run or could be claimed
	Serial    bool                // at most one task runs at a time: see [messages.JobSpec.Serial]
	Valuation *messages.Valuation // what completion is worth at each time; nil: nothing is declared
	Contract  *messages.Contract  // the contract that the bidder chose; nil: none
	Runtimes  *Runtimes           // observed run times of similar tasks; nil: none
}

// Job is a bid and how far its work has come.
type Job struct {
	*Bid
	Pending []int // by class: slots of tasks that could be claimed now
	Running []int // by class: slots of tasks claimed and not finished
	Started messages.Time

	// The fields below are for mechanisms that suspend, and that charge by time.

	Suspended []int            // by class: slots of tasks suspended, not counted in Running; nil: none
	Stuck     []int            // by class: the part of Suspended whose tasks have no free slot on their node; nil: none
	Nowhere   []int            // by class: the part of Pending whose tasks fit on no node; nil: none
	Accrued   messages.Credits // owed so far, at the tariffs that were committed

	// Received is the slot time the job has had, for mechanisms that count it; 0
	// where the auctioneer does not say.
	Received messages.Duration
	// Lacked is the slot time that the job's shares entitled it to and that it did not receive.
	// It counts from the job's first slot on, while tasks were pending, and for each task that
	// ran or could run at most one slot. Below 0: the job received more than its shares.
	Lacked messages.Duration
	// Done is the number of tasks that are over, for mechanisms that plan the rest; 0
	// where the auctioneer does not say.
	Done int
	// Complete: every task has ended once, so prices treat the job as complete. A task that still
	// runs is a repetition. Whole is what the job had used when it became complete; nil if it is
	// not complete, or the use is not known.
	Complete bool
	Whole    *Used
}

// Used are Accrued, Received and Lacked of a job at an instant.
type Used struct {
	Accrued          messages.Credits
	Received, Lacked messages.Duration
}

// Sum returns the sum over all classes.
func Sum(byClass []int) (n int) {
	for _, k := range byClass {
		n += k
	}
	return n
}

// Class is a resource class of the market.
type Class struct {
	Name  messages.Name
	Slots int // on all nodes that are up
	Idle  int
}

// View is a market at an instant. Jobs are in the order of their numbers.
type View struct {
	Now     messages.Time
	Classes []Class
	Jobs    []*Job
	// Charge updates Accrued and Received of a job to Now; nil: both are up to date.
	Charge func(*Job)
}

// Read updates what a job has accrued to the view's time.
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
	// Wake is when the mechanism must decide again if nothing changes before; 0: never.
	Wake messages.Time
	// Directives are orders, from mechanisms that assign slots.
	Directives []Directive
	// Tariffs, by class, are what running costs from now on, from mechanisms that
	// charge by time. A changed tariff must be committed.
	Tariffs []Tariff
}

// Tariff says what a second on a slot costs each job, in integers, so that what
// a job owes can be worked out from the tariffs committed while it ran.
type Tariff struct {
	Basis  Basis
	Rate   messages.Credits  // with AtLevel: what the job that sets the level bids for a slot-second
	Length messages.Duration // with AtLevel: that job's length, if prices depend on length; else 0
}

// Basis is what a price is computed from.
type Basis uint8

// The bases. With AtLevel each job pays the rate. If the tariff has a length, the rate is multiplied
// by the job's own length and divided by the tariff's. If the market is capped, no job pays more
// than its own bid.
const (
	AtReserve Basis = iota // the market's reserve
	OwnBid                 // the job's own bid
	AtLevel                // the best bid among the jobs that wait
	// Contention is not a price: Rate is the part of the slots that others also want. One
	// credit means all of them.
	Contention
)

// Directive orders something for one job. A job without a directive goes on as before.
type Directive struct {
	Job    messages.JobID
	Action Action
	At     messages.Time // with Start: when; 0: now
	Slots  int           // with Start: how many at once; with Suspend and Resume: how many, 0: all
	Class  int           // position in View.Classes
}

// Action is what a directive orders.
type Action uint8

// The actions.
const (
	Start   Action = iota // start the job's tasks together
	Suspend               // take its slots away; it continues later
	Resume
	Discard // it will not be run
)

// End says how a job ended.
type End struct {
	State  messages.State // Completed, Failed or Cancelled
	Tasks  int
	Done   int     // tasks that are complete for prices
	Began  int     // tasks that had a slot, without tasks that failed by the site's fault
	Shares []Share // by class
	// At is when it ended, which may be long before it is settled; 0: view.Now.
	At messages.Time
	// Completed is when the job became complete for prices: each task had an attempt that its
	// program ended, with any exit code, or that its owner ended. A job that had slots is also
	// complete when its owner or its program ends the job. Later attempts change nothing. 0:
	// the site ended the job before. Delivered is the slot time until then.
	Completed messages.Time
	Delivered messages.Duration
}

// Share is the share of a class that a job was allocated and received, averaged over the time
// in which it had work pending in the class.
type Share struct{ Allocated, Received float64 }

// Payment is an amount that one party owes to another. A job number stands for the account that pays
// for the job, 0 for the site.
type Payment struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
	// Now: the payment is made when the market decides on the job, not with the job's charge.
	Now bool
}

// Explanation is the part of a WhyReply that the mechanism knows.
type Explanation struct {
	Reason  string // stable CamelCase
	Message string
	Change  []string // sentences that say what would improve the job's place
}

// Deferred is a Mechanism whose prices depend on what happens after a job has ended. If Settle is
// called before SettleAt, it answers from what is known at that time.
type Deferred interface {
	Mechanism
	// SettleAt returns when to settle a job that has ended. It is called again at that time,
	// and may return a later time.
	SettleAt(now messages.Time, job *Job, end End) messages.Time
}

// Incremental is a Mechanism that can decide at a cost that depends on the number of changes, not
// on the number of jobs.
type Incremental interface {
	Mechanism
	// Update decides as Allocate does. changed has the jobs of the view that arrived, or
	// whose counts of tasks changed, since the last call of either method. gone has the jobs
	// that left; view.Jobs may still contain some of them here, in Admit and in Settle. The
	// accrued amounts of unchanged jobs are as of their last Read.
	Update(view *View, changed []*Job, gone []messages.JobID) *Change
}

// Lining is a Mechanism that can tell between two decisions which job is next in line.
type Lining interface {
	Mechanism
	// Next returns the job that, by the last decision, gets the next slot of a class that
	// becomes free on any node. 0: no job does, or it is not known.
	Next(class int) messages.JobID
}

// Change is the difference between a decision and the one before. Jobs that it does not list keep
// their weights, within the mechanism's stated error.
type Change struct {
	// Whole: Jobs lists all of view.Jobs; otherwise some of them.
	Whole bool
	Jobs  []*Job
	// Weights, by job, then by class. Multiplied by Scale they are shares as in Allocation.
	// Scale also applies to the weights of jobs that are not listed.
	Weights [][]float64
	Scale   []float64 // by class, above 0; nil: 1 for each
	// The other fields are complete, as in Allocation.
	Prices     []float64
	Wake       messages.Time
	Directives []Directive
	Tariffs    []Tariff
}

// Runtimes are observed run times of tasks that resemble a job's tasks, over all its stages.
type Runtimes struct {
	Seconds    []float64 // run times, equally likely
	Divergence float64   // bound on how far they are from the true distribution, in nats
	Runs       float64   // number of tasks or jobs that were observed
}

// Quoter is a Mechanism that sells contracts. Each bid must carry a contract that the mechanism
// quoted, as Bid.Contract. The auctioneer ensures this: it keeps the quotes, and a submission names
// a quote and a position on its menu.
type Quoter interface {
	Mechanism
	// Quote makes the menu of contracts for a job that is about to be submitted, or for a
	// job of the view. The bid needs Arrived (0: now), Length, Tasks and Valuation. class has
	// the types of earlier jobs of the same class, never the type of this job.
	//
	// The same seed gives the same menu. The bidder must not know the seed before it has bid,
	// and must get the same seed each time; otherwise it could choose its draw. Quote does not
	// change the mechanism.
	Quote(view *View, bid *Bid, class []messages.Valuation, seed uint64) (*Quote, error)
	// Kept reports whether a job that has ended completed as its contract promised. If this
	// cannot be told, known is false.
	Kept(job *Job, end End) (kept, known bool)
}

// Quote is a menu.
type Quote struct {
	Contracts []messages.Contract // by completion
	Most      []messages.Credits  // by contract: the highest possible price
	// Declared is the best contract for a bidder of exactly the declared type: the choice for
	// bidders without a wish of their own.
	Declared int
	Free     int // position of the earliest contract that costs nothing
}
