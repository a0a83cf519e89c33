// Package mechanism is the interface between the auctioneer and its mechanisms. A mechanism gets a view, which is the
// state of its market at an instant. From this view, it decides what share of each class each job gets. When a job
// ends, the mechanism decides who owes how much.
//
// A mechanism is pure: it has no clock, no I/O and no goroutine that outlives a call, and does not depend on the order
// of a map. It may start from its last result. But a new mechanism with the same view must make the same decision,
// except for numerical errors. The documentation of its package says how large these may be.
//
// The live auctioneer and the simulator use this interface. The command `candor solve` uses functions of the
// subpackages for whole instances. Mechanisms import the standard library, gonum, and the value types of package
// messages.
package mechanism

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Mechanism runs one market. It is not safe for concurrent use.
type Mechanism interface {
	// Admit checks a bid against the market's rules before the site takes the bid. The error is a *messages.Error that
	// tells the bidder what to change.
	Admit(view *View, bid *Bid) error
	// Allocate decides how slots are shared. The view stays unchanged during the call. The allocation is valid until
	// the next call.
	Allocate(view *View) *Allocation
	// Settle returns the payments that are due when a job has ended. The job ended at view.Now, and is no longer in
	// view.Jobs. Payments by the job itself must not exceed its budget.
	Settle(view *View, job *Job, end End) []Payment
	// Explain says why a job of the view runs or waits, and what would change that.
	Explain(view *View, job *Job) Explanation
}

// Bid is what a job declares. A slice with one element for each class has the same order as View.Classes.
type Bid struct {
	Job        messages.JobID
	Account    messages.Name
	Arrived    messages.Time
	Budget     messages.Credits
	Form       job.Form
	Weights    []float64 // by class; never negative, NaN or infinite
	MinUtility float64   // 0 if the job declares none

	// The fields below are for mechanisms that assign slots to jobs. 0 means that the job does not declare the value.

	Rate     messages.Credits  // bid for a slot-second
	Value    messages.Credits  // worth of the whole job
	Delay    messages.Credits  // cost of a second of delay
	Length   messages.Duration // run time, as declared
	Limit    messages.Duration // the longest time limit of a task; 0 means that some task has no limit
	Deadline messages.Time
	Width    int // slots that it needs at the same time
	Alone    int // equal to Width if a single task needs all these slots; 0 for a gang, or if Width is 1

	// The fields below are used only by mechanisms that sell completion times.

	Tasks     int            // number of tasks in all stages; 0 means the tasks that run or could be claimed
	Serial    bool           // at most one task runs at a time: see [job.JobSpec.Serial]
	Valuation *job.Valuation // what completion is worth at each time; nil if nothing is declared
	Contract  *job.Contract  // the contract that the bidder chose, or nil
	Runtimes  *Runtimes      // observed run times of similar tasks, or nil
}

// Gang reports whether the tasks of the job start together. If they do, Width is the sum of the slots of all tasks.
func (b *Bid) Gang() bool { return b.Width > 1 && b.Alone == 0 }

// Job is a bid, together with the number of its slots that wait and that run.
type Job struct {
	*Bid
	Pending []int // by class: slots of tasks that could be claimed now
	Running []int // by class: slots of tasks that were claimed and have not finished
	Started messages.Time

	// The fields below are for mechanisms that suspend tasks or charge by time.

	Suspended []int            // by class: slots of tasks suspended, not counted in Running; nil means none
	Stuck     []int            // by class: the part of Suspended without a free slot on its node; nil means none
	Nowhere   []int            // by class: the part of Pending whose tasks fit on no node; nil means none
	Accrued   messages.Credits // what the job owes so far, by the tariffs that were committed

	// Received is the slot time that the job has had, or 0 if the auctioneer does not give it.
	Received messages.Duration
	// Lacked is the slot time that the job was entitled to by its shares, minus the slot time that it received. It is
	// counted from the job's first slot on, and only while the job had pending tasks. At each moment, the job is
	// entitled to at most as many slots as it has tasks that run or could run. Lacked is negative if the job received
	// more than its shares.
	Lacked messages.Duration
	// Done is the number of tasks that are over, or 0 if the auctioneer does not give it.
	Done int
	// Complete is true if every task has ended at least once. Then the job counts as complete for prices, and a task
	// that still runs is a repetition. Whole has the amounts that the job had used when it became complete, or nil if
	// they are not known.
	Complete bool
	Whole    *Used
}

// Used has three amounts of a job at an instant: what its slots have cost until then, the slot time that it received,
// and the slot time that it lacked. See [Job] for their definitions.
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
	Slots int // number of slots on all nodes that are up
	Idle  int
	// Closings are the effects of maintenance windows on Slots: how many slots each window will take away, and when.
	// They are in the order of time.
	Closings []Closing
}

// Closing takes slots away between the times From and To.
type Closing struct {
	From, To messages.Time
	Slots    int
}

// View is a market at an instant. Jobs are in the order of their numbers.
type View struct {
	Now     messages.Time
	Classes []Class
	Jobs    []*Job
	// Charge, if not nil, updates Accrued and Received of a job to Now.
	Charge func(*Job)
}

// Read updates job.Accrued, the amount that a job owes so far, to the view's time.
func (v *View) Read(job *Job) {
	if v.Charge != nil {
		v.Charge(job)
	}
}

// Allocation is a decision. Weights[i][j] is the share of class j for view.Jobs[i], in [0, 1]. For each class, the
// shares of the jobs with pending tasks in the class sum to one, and all other jobs have the share 0. Prices[j] is the
// price of class j, in credits. If the tariff of the class has a price, Prices[j] is the price of a slot-second.
// Otherwise Prices[j] is an amount for the whole class, such as the sum of all that the jobs bid for it.
type Allocation struct {
	Weights [][]float64
	Prices  []float64
	// Wake is when the mechanism must decide again even without a change, or 0 for never.
	Wake messages.Time
	// Directives are orders about single jobs. Only mechanisms that assign slots give them.
	Directives []Directive
	// Tariffs has one element for each class: the price of slot time from now on. Only mechanisms that charge by time
	// set it. A changed tariff must be committed.
	Tariffs []Tariff
}

// Tariff says what a second on a slot costs each job, in integers. What a job owes can be computed from the tariffs
// that were committed while it ran.
type Tariff struct {
	Basis  Basis
	Rate   messages.Credits  // with AtLevel: the bid for a slot-second of the job that sets the level
	Length messages.Duration // with AtLevel: that job's length, if prices depend on length; otherwise 0
}

// Basis says from which amount a price is computed.
type Basis uint8

// These are the possible prices. AtLevel is the price of a tariff: each job pays the tariff's Rate. If the tariff has a
// Length, the job pays the rate multiplied by its own length and divided by the tariff's Length. If the tariff is
// capped, no job pays more than its own bid.
const (
	AtReserve Basis = iota // the price is the market's reserve price
	OwnBid                 // the price is the job's own bid
	AtLevel                // the best bid among the waiting jobs
	// With Contention, the rate of a tariff is not a price, but the level of contention of the class (see
	// proportional.Contention). A level of 1 is written as one credit.
	Contention
)

// Directive is an order for one job. A job without a directive continues as before.
type Directive struct {
	Job    messages.JobID
	Action Action
	At     messages.Time // with Start: when to start; 0 means now
	Slots  int           // number of slots: Start gives all of them at once; with Suspend and Resume, 0 means all slots of the job
	Class  int           // position in View.Classes
}

// Action is an order that a mechanism gives about a job in a directive.
type Action uint8

// These are the orders that a mechanism may give about a job.
const (
	Start   Action = iota // start the job's tasks together
	Suspend               // take the job's slots away; the job continues later
	Resume
	Discard // the job will not be run
)

// End says how a job ended. From it, the mechanism computes the job's payments.
type End struct {
	State  job.State // Completed, Failed or Cancelled
	Tasks  int
	Done   int     // number of tasks that are complete for prices
	Began  int     // number of tasks that had a slot; tasks that failed by the site's fault do not count
	Shares []Share // by class
	// At is when the job ended. The settlement may come long after this time. 0 means view.Now.
	At messages.Time
	// Completed is the completion time from which the job's price is computed. It is 0 if the site ended the job before
	// it was complete. A job is complete when each task has had an attempt that its program or its owner ended, with
	// any exit code. A job that had slots is also complete when its owner or its program ends the job. Later attempts
	// do not change this time. Delivered is the slot time that the job had until it was complete.
	Completed messages.Time
	Delivered messages.Duration
}

// Share has two parts of a class, as numbers from 0 to 1. Allocated is the part that the mechanism gave to a job, and
// Received is the part that the job really had. Both are averages over the time in which the job had tasks pending in
// the class.
type Share struct{ Allocated, Received float64 }

// Payment is an amount that one party owes to another. A job number stands for the job's account; 0 stands for the
// site.
type Payment struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
	// Now is true if the payment is made when the market decides on the job, not when the job is charged.
	Now bool
}

// Explanation is the part of a WhyReply that comes from the mechanism.
type Explanation struct {
	Reason  string // a word in CamelCase that does not change between releases, such as "WaitingForTurn"
	Message string
	Change  []string // sentences that say what would improve the job's place
}

// Deferred is a Mechanism whose prices depend on what happens after a job has ended. SettleAt returns the time at which
// the price is certain. If Settle is called earlier, it computes the price from what is known until then.
type Deferred interface {
	Mechanism
	// SettleAt returns when to settle a job that has ended. It is called again at that time, and may return a later
	// time.
	SettleAt(now messages.Time, job *Job, end End) messages.Time
}

// Incremental is a Mechanism whose decision takes time in proportion to the number of jobs that have changed, and not
// to the number of all jobs.
type Incremental interface {
	Mechanism
	// Update makes the same decision as Allocate. The list `changed` has the jobs of the view that arrived, or whose
	// counts of tasks changed, since the last call of Update or Allocate. The list `gone` has the jobs that left.
	// During Update, Admit and Settle, view.Jobs may still have jobs that left. The field Accrued of an unchanged job
	// may be old: it is the amount at the last call of View.Read for the job.
	Update(view *View, changed []*Job, gone []messages.JobID) *Change
}

// A Lining mechanism has a queue of jobs that stays valid between two decisions. So the market can ask it at any time
// which job gets the next slot.
type Lining interface {
	Mechanism
	// Next returns the job that gets the next free slot of a class, by the last decision. It does not matter on which
	// node this slot is. The result is 0 if there is no such job, or if it is not known.
	Next(class int) messages.JobID
}

// Change is the difference between two decisions. It lists jobs with new weights. All other jobs keep their weights. A
// kept weight may be inexact, but only within the error that the mechanism states.
type Change struct {
	// Whole is true if Jobs lists all of view.Jobs. Otherwise Jobs lists some of them.
	Whole bool
	Jobs  []*Job
	// Weights are by job, then by class. A weight multiplied by the Scale of its class is a share, as in the type
	// Allocation. Scale also applies to jobs that are not listed.
	Weights [][]float64
	Scale   []float64 // by class, positive; nil means 1 for each class
	// The fields above may have only a part of the jobs. The other fields are complete, as in Allocation.
	Prices     []float64
	Wake       messages.Time
	Directives []Directive
	Tariffs    []Tariff
}

// Runtimes are observed run times of tasks that resemble a job's tasks.
type Runtimes struct {
	Seconds    []float64 // run times in seconds, all with the same probability
	Divergence float64   // bound of their divergence from the true distribution, in nats
	Runs       float64   // number of tasks or jobs that were observed
}

// Quoter is a Mechanism that sells contracts. Each bid must carry a contract that the mechanism quoted, as
// Bid.Contract. The auctioneer keeps the quotes, and a submission names a quote and a position on its menu.
type Quoter interface {
	Mechanism
	// Quote makes the menu of contracts for a job that is about to be submitted, or for a job of the view. The bid
	// needs Arrived (0 means now), Length, Tasks and Valuation. The argument `class` has the types of earlier jobs of
	// the same class, never the type of this job. Quote does not change the mechanism.
	//
	// The same seed gives the same menu. The bidder must not know the seed before it has bid, and must get the same
	// seed each time; otherwise it could choose its draw.
	Quote(view *View, bid *Bid, class []job.Valuation, seed uint64) (*Quote, error)
	// Kept reports whether an ended job was completed as its contract promised. If this is not known, `known` is false.
	Kept(job *Job, end End) (kept, known bool)
}

// Quote is a menu of contracts.
type Quote struct {
	Contracts []job.Contract     // ordered by completion time
	Most      []messages.Credits // by contract: the highest possible price
	// Declared is the position, in Contracts, of the contract that is best for the job by the valuation that the job
	// declares.
	Declared int
	Free     int // position of the earliest contract with a price of 0
}
