package book

import "github.com/candor-grid/candor/messages"

// Command is one change of the book. At is the proposer's time; exactly one of
// the others is set.
type Command struct {
	At           messages.Time
	Submit       *Submit
	Cancel       *Cancel
	Register     *Register
	Exchange     *Exchange
	Lost         *Lost
	Settle       *Settle
	Confirm      *Confirm
	Decide       *Decide
	Disband      *Disband
	Drain        *Drain
	Quote        *Quote
	ApplyMarkets *ApplyMarkets
	Admit        *Admit
	EnterRemote  *EnterRemote
	Advance      *Advance
	Park         *Park
	Requeue      *Requeue
	Change       *Change
	CancelJobs   *CancelJobs
	Notified     *Notified
	Begin        *Begin

	CancelTasks *CancelTasks

	Restored *Restored
	// Leap is the part of the time between the command before and At by which the clock was
	// set ahead: see [Book.leap].
	Leap messages.Duration
	// Carried: the proposer did not know the time, and At only continues that of the command before.
	Carried bool
}

// Restored says that a backup was restored which began at a time: jobs get numbers after
// Last from now on, which no job had that the book has lost. Result: nil.
type Restored struct {
	Backup messages.Time
	Last   messages.JobID
}

// Begin lets jobs begin whose time has come. Result: nil.
type Begin struct{}

// Submit enters a job whose hold has been made. Result: Receipt, of the earlier
// job if the account has used the key before.
type Submit struct {
	Account messages.Name
	Key     string
	Digest  []byte // of the spec as the client sent it: same key, same digest
	Payer   messages.Name
	Spec    *messages.JobSpec // complete: every default filled in
	Assumed string            // where the utility function comes from, if the user gave none
	Hold    string
	Held    messages.Credits
	// Contract is what Spec.Contract names, one of quote Quote.
	Contract *messages.Contract
	Quote    uint64
	Visit    *Visit // it comes from another site; nil: from a user of this one
	// MarketsVersion is 1 + how many times markets had been applied when the job was checked
	// against its own: with more since, it is not taken; 0: not said.
	MarketsVersion uint64
	// Deposit is the part of Held that is not budget; Most is how many pending jobs
	// the account may have with this one, 0: any number.
	Deposit messages.Credits
	Most    int
	// Seen is 1 + the latest effect in the book before the hold was asked for; 0: not said,
	// and nothing is freed where the submission is refused.
	Seen uint64
}

// ApplyMarkets makes these the markets of the site, instead of those of its
// configuration. Result: Applied.
type ApplyMarkets struct {
	Markets []messages.Market
	Idle    []messages.Name // markets that must have no job, or nothing changes
	// MarketsVersion is 1 + how many times markets had been applied when this was checked:
	// with more since, nothing changes; 0: not said.
	MarketsVersion uint64
	// Applied is what a request with a key is answered, then and when it is repeated; without
	// Markets nothing else changes.
	Applied *Applied
}

// Cancel ends a job. Result: messages.State before.
type Cancel struct {
	Job messages.JobID
	By  messages.Name
	// Window is within what time from the submission a cancellation by the owner
	// keeps the deposit.
	Window messages.Duration
}

// CancelJobs is Cancel of several jobs. Result: []CancelledJob, in their order.
type CancelJobs struct {
	Jobs   []messages.JobID
	By     messages.Name
	Window messages.Duration
}

// CancelledJob is the state of a job before it was cancelled, or why it was not.
type CancelledJob struct {
	State messages.State
	Err   *messages.Error
}

// CancelTasks cancels tasks of a stage, and the job goes on. Result: int, how many.
type CancelTasks struct {
	Job    messages.JobID
	Stage  int
	Tasks  messages.Array // positions in the stage
	By     messages.Name
	Window messages.Duration // as of Cancel
}

// Register announces a node. Result: []messages.Attempt to stop.
type Register struct {
	Node    messages.Name
	Session uint64
	Slots   []messages.ClassSlots
	Running []messages.Attempt
	// Abilities are what the node can do to a task.
	Abilities []messages.Name
	Resources *messages.Resources // in all; nil: not known
	// Units are what a slot is of the node's resources, by position in Slots; none: its classes have no shapes.
	Units  []messages.Resources
	Labels []messages.Name
	// MostSuspended is how many suspended tasks it is to keep at once; 0: the default.
	MostSuspended int
}

// Exchange carries an agent's finishes, and its claims as the leader resolved
// them. Result: []messages.Grant, the first answer if the number was seen before.
type Exchange struct {
	Node     messages.Name
	Session  uint64
	Seq      uint64
	Finished []messages.Finished
	Claims   []Claim
	// Sent is as in [messages.Exchange].
	Sent messages.Time
}

// Claim takes up to Slots tasks of a class from Jobs, in that order of
// preference.
type Claim struct {
	Class messages.Name
	Slots int
	Jobs  []messages.JobID
	// Most is how many claims of the class each of Jobs may come to have at once;
	// none: no bound.
	Most []int
	// Ahead is how many tasks of the class the node may have that have no slot yet.
	Ahead int
}

// Lost takes back every claim of a node's session. Result: int, how many.
type Lost struct {
	Node    messages.Name
	Session uint64
	Stopped bool // the agent said itself that it ends
}

// Settle says what an ended job owes to the site. Result: nil.
type Settle struct {
	Job    messages.JobID
	Charge messages.Credits
	Reason string
	Shares []Share
	// Promise is whether the job completed when its contract promised.
	Promise Promise
}

// Confirm says how effects turned out. Result: nil.
type Confirm struct {
	Effects []Confirmation
}

// Confirmation is the outcome of one effect: for a charge, what the bank
// moved, or why it refused.
type Confirmation struct {
	Effect  uint64
	Amount  messages.Credits
	Refused string
}

// Disband gives back the tasks of a gang that has gathered since Since and is
// not complete. Result: nil.
type Disband struct {
	Job   messages.JobID
	Stage uint32
	Since messages.Time
}

// Park has a job that has not ended get no tasks, or with Release get some again. What
// an operator parked only an operator releases. Result: Parking.
type Park struct {
	Job      messages.JobID
	By       messages.Name
	Operator bool // By may see everybody's jobs
	Release  bool
}

// Requeue ends running tasks of a job, to be run again: its owner, or an operator, wants
// that, and so the job pays for the time that they had. Result: int, how many.
type Requeue struct {
	Job   messages.JobID
	Tasks []messages.TaskRef // none: all that run
	Stage *int               // only of this stage; nil: of all
}

// Parking is what came of a Park.
type Parking struct {
	State   messages.State
	Running int  // tasks that go on
	Changed bool // false: the job was as it is asked to be
}

// Drain gives a node no more work, and ends its remaining tasks at Until, never with Until
// [ToTheirEnd]. With Until 0 the node gets work again, also from quarantine. Result: int, the number
// of its tasks.
type Drain struct {
	Node  messages.Name
	Until messages.Time
	Evict bool // it is Until
	// Reason is why, in an operator's words. Remove takes the node off the list instead; it
	// must be down.
	Reason string
	Remove bool
}

// Decide is a decision of a market. The book carries it out as a whole, except for
// attempts that have ended or moved since. Result: nil.
type Decide struct {
	Market  messages.Name
	Suspend []messages.Attempt
	Resume  []messages.Attempt
	Requeue []messages.Attempt // to end and be run again
	Start   []Starting
	Discard []Discarding
	Tariffs []Tariff // of all classes of the market; none: as before
	Notes   []Note   // for the mechanism to remember
	Forget  bool     // instead of all its notes before
}

// Starting orders the start of a job for good.
type Starting struct {
	Job   messages.JobID
	Order Order
	Fixed *Fixed
	Legs  []Leg // what its decision moves
}

// Discarding ends a job that its market will not run.
type Discarding struct {
	Job     messages.JobID
	Reason  string // stable CamelCase
	Message string
	Change  []string
	Legs    []Leg
}

// Stamp makes the command one of now. Since the command before, the clock was set ahead by
// leap. carried: see Carried.
func (c *Command) Stamp(now messages.Time, leap messages.Duration, carried bool) {
	c.At, c.Leap, c.Carried = now, leap, carried
}

// Decode reads a command as Encode wrote it. The error is for bytes that are none, and for a
// command with fields that this build does not have.
func Decode(data []byte) (*Command, error) {
	c := new(Command)
	if len(data) == 0 {
		return nil, messages.Errorf(messages.Invalid, "a command of the book has no bytes")
	}
	if err := messages.Unmarshal(data, messages.Msgpack, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Encode writes a command.
func (c *Command) Encode() ([]byte, error) { return messages.Marshal(c, messages.Msgpack) }

// Change has a job that has not ended be described otherwise. Whether its market allows a
// bid to change the leader has checked. Result: Changed.
type Change struct {
	Job messages.JobID
	Key string // a repeat of the last change with its key changes nothing
	// To is the new description, but for the budget; nil: as before. Only its name, its
	// rate, and the time limits and bounds of its stages may differ.
	To *messages.JobSpec
	// Budget is the new budget: the bank is asked for what it is more, and until the bank
	// has set it aside the old one is in force. 0: as before.
	Budget messages.Credits
	// Unstarted: refused once a task has been started.
	Unstarted bool
	Version   int // Job.Changes of the job that To was made of
}

// Changed is what came of a Change.
type Changed struct {
	State  messages.State
	Effect uint64 // that raises the budget; 0: nothing is raised
}

// Notified says what became of notices. Result: nil.
type Notified struct{ Outcomes []NoticeOutcome }

// NoticeOutcome is the outcome of a notice: it was sent, or refused for good.
type NoticeOutcome struct {
	Notice  uint64
	Refused string
}

// EnterRemote enters a job that another site is to run. Result: RemoteReceipt, of the
// earlier job if the account has used the key before.
type EnterRemote struct {
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *messages.JobSpec
	Peer    messages.Name
	Chosen  string
}

// RemoteReceipt is what a submission to another site is answered with.
type RemoteReceipt struct {
	Job    messages.JobID
	Payer  messages.Name
	Held   messages.Credits
	Tasks  int
	Peer   messages.Name
	Chosen string
}

// Advance takes remote jobs from phase to phase. A step that does not fit the phase of
// its job is an old word, and is let pass. Result: nil; of a step that cancels,
// the messages.State before, or why it cannot.
type Advance struct {
	Steps []Step
}

// Step is one thing that became known about a job. Exactly one field beside Job
// and Conclude is set.
type Step struct {
	Job        messages.JobID
	Authorised *messages.SignedAuthorisation // the bank set its budget aside
	Arrived    *messages.JobSummary          // the other site took it, and said this
	Status     *messages.JobSummary          // the other site said this later
	Refused    *messages.Error               // it will not run there
	Cancel     messages.Name                 // who wants it ended
	Told       bool                          // the other site was told to end it
	Released   bool                          // nothing is set aside for it any more
	Forgotten  *messages.JobSummary          // the other site knows nothing of it any more
	Concluded  bool                          // the bank knows that it is over by the other site's word

	// Conclude, with Arrived or Status, has the bank told where the job is over by that.
	Conclude bool
}
