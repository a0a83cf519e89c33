package book

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

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

	SetLicenses *SetLicenses
	SetBounds   *SetBounds
	// Leap is the part of the time since the last command by which the clock was set ahead: see
	// [Book.leap].
	Leap messages.Duration
	// TimeUnknown says that the proposer did not know the time: At only continues the time of the last
	// command.
	TimeUnknown bool
}

// Restored says that a backup was restored which began at a time: jobs get numbers after
// Last from now on, which no job had that the book has lost. Result: nil.
type Restored struct {
	Backup messages.Time
	Last   messages.JobID
}

// SetLicenses says how many licences the site has. Result: nil.
type SetLicenses struct {
	Totals messages.Licenses
}

// SetBounds says how much the tasks of accounts and projects have at once at most. A market that
// is not listed has no bounds. Result: nil.
type SetBounds struct {
	Markets []MarketBounds
}

// MarketBounds are the bounds of a market.
type MarketBounds struct {
	Market messages.Name
	AtOnce messages.AtOnce
}

func (m MarketBounds) compare(o MarketBounds) int { return strings.Compare(m.Market, o.Market) }

// BoundsOf returns the bounds of markets, in the order of the markets' names.
func BoundsOf(markets []messages.Market) (out []MarketBounds) {
	for i := range markets {
		if markets[i].AtOnce.Bounds() {
			out = append(out, MarketBounds{markets[i].Name, markets[i].AtOnce})
		}
	}
	slices.SortFunc(out, MarketBounds.compare)
	return out
}

// Begin lets jobs begin whose time has come. Result: nil.
type Begin struct{}

// Submit enters a job whose hold has been made. Result: Receipt, of the earlier
// job if the account has used the key before.
type Submit struct {
	Account messages.Name
	Key     string
	Digest  []byte // digest of the spec as the client sent it: the same key must have the same digest
	Payer   messages.Name
	Spec    *messages.JobSpec // complete: every default filled in
	Assumed string            // source of the utility function, if the user gave none
	Hold    string
	Held    messages.Credits
	// Contract is the contract that Spec.Contract names; it belongs to the quote Quote.
	Contract *messages.Contract
	Quote    uint64
	Visit    *Visit // set if the job comes from another site
	// MarketsVersion is 1 + how many times markets had been applied when the job was checked
	// against its own: with more since, it is not taken; 0: not said.
	MarketsVersion uint64
	// Deposit is the part of Held that is not budget; Most is how many pending jobs
	// the account may have with this one, 0: any number.
	Deposit messages.Credits
	Most    int
	// Seen is 1 + the latest effect in the book before the hold was asked for; 0: unknown, then
	// nothing is freed if the submission is refused.
	Seen uint64
}

// ApplyMarkets replaces the markets of the site, the first time the markets of its configuration. Result:
// Applied.
type ApplyMarkets struct {
	Markets []messages.Market
	Idle    []messages.Name // markets that must have no job, or nothing changes
	// MarketsVersion is 1 + how many times markets had been applied when this was checked:
	// with more since, nothing changes; 0: not said.
	MarketsVersion uint64
	// Applied is the answer to a request with a key; repeated requests get it too. Without Markets,
	// nothing else changes.
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
	Window messages.Duration // as in Cancel
}

// Register announces a node. Result: []messages.Attempt to stop.
type Register struct {
	Node    messages.Name
	Session uint64
	Slots   []messages.ClassSlots
	Running []messages.Attempt
	// Abilities says what the node can do with a task.
	Abilities []messages.Name
	Resources *messages.Resources // of the whole node; nil: unknown
	// Units are the resources in one slot of the node, by position in Slots; none: its slots have
	// no sizes.
	Units  []messages.Resources
	Labels []messages.Name
	// MostSuspended is how many suspended tasks the node should keep; 0: the default.
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
	// Sent has the meaning of Sent in [messages.Exchange].
	Sent messages.Time
}

// Claim takes up to Slots tasks of a class from Jobs, in that order of
// preference.
type Claim struct {
	Class messages.Name
	Slots int
	Jobs  []messages.JobID
	// Most is how many claims of the class each of Jobs may have at the same time; none: no bound.
	Most []int
	// Fits: a task of several slots is claimed only if the node has them, and none gathers.
	Fits bool
	// Ahead is how many tasks of the class the node may have that have no slot yet.
	Ahead int
}

// Lost takes back every claim of a node's session. Result: int, how many.
type Lost struct {
	Node    messages.Name
	Session uint64
	Stopped bool // the agent said itself that it ends
}

// Settle sets what an ended job owes to the site. Result: nil.
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

// Confirmation is the outcome of one effect. For a charge it is the amount that the bank moved, or
// why it refused.
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

// Park stops a job that has not ended from getting tasks; with Release it gets tasks again. If an
// operator parked the job, only an operator can release it. Result: Parking.
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
	Tasks []messages.TaskRef // none: all running tasks
	Stage *int               // only tasks of this stage; nil: of all stages
}

// Parking is the result of a Park.
type Parking struct {
	State   messages.State
	Running int  // tasks that go on
	Changed bool // false: the job was already so
}

// Drain gives a node no more work, and ends its remaining tasks at Until. With Until [ToTheirEnd]
// no task is ended. With Until 0 the node gets work again, also if it was in quarantine. Result:
// int, the number of its tasks.
type Drain struct {
	Node  messages.Name
	Until messages.Time
	Evict bool // Until has come
	// Reason is an operator's text. Remove takes the node off the list instead; the node must be
	// down.
	Reason string
	Remove bool
}

// Decide is a decision of a market. The book carries it out as a whole, except for
// attempts that have ended or moved since. Result: nil.
type Decide struct {
	Market  messages.Name
	Suspend []messages.Attempt
	Resume  []messages.Attempt
	Requeue []messages.Attempt // tasks to end and run again
	Start   []Starting
	Discard []Discarding
	Tariffs []Tariff // tariffs of all classes of the market; none: they do not change
	Notes   []Note   // notes that the mechanism wants to keep
	Forget  bool     // instead of all its notes before
}

// Starting orders that a job starts. The order is final.
type Starting struct {
	Job   messages.JobID
	Order Order
	Fixed *Fixed
	Legs  []Leg // payments that follow from the decision
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
// leap. carried: see [Command.TimeUnknown].
func (c *Command) Stamp(now messages.Time, leap messages.Duration, carried bool) {
	c.At, c.Leap, c.TimeUnknown = now, leap, carried
}

// Decode reads a command as Encode wrote it. It returns an error if the bytes are no command, or if
// the command has fields that this build does not have.
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

// Change changes the description of a job that has not ended. The leader has checked before that
// the job's market allows the change of the bid. Result: Changed.
type Change struct {
	Job messages.JobID
	Key string // a repeat of the last change with its key changes nothing
	// To is the new description without the budget; nil: it does not change. Only the job's name
	// and rate, and the time limits and bounds of its stages, may differ.
	To *messages.JobSpec
	// Budget is the new budget. The bank is asked for the difference; until it has set that aside,
	// the old budget applies. 0: no change.
	Budget messages.Credits
	// Unstarted: refused once a task has been started.
	Unstarted bool
	Version   int // Job.Changes of the job that To was made of
}

// Changed is the result of a Change.
type Changed struct {
	State  messages.State
	Effect uint64 // the effect that raises the budget; 0: the budget is not raised
}

// Notified reports the outcomes of notifications. Result: nil.
type Notified struct{ Outcomes []NoticeOutcome }

// NoticeOutcome is the outcome of a notification: it was sent, or refused and will not be tried
// again.
type NoticeOutcome struct {
	Notice  uint64
	Refused string
}

// EnterRemote enters a job that another site will run. If the account has used the key before, the
// result is the earlier job's. Result: RemoteReceipt.
type EnterRemote struct {
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *messages.JobSpec
	Peer    messages.Name
	Chosen  string
}

// RemoteReceipt is the answer to a submission for another site.
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

// Step is one new fact about a job. Exactly one field is set, apart from Job and Conclude.
type Step struct {
	Job        messages.JobID
	Authorised *messages.SignedAuthorisation // the bank set its budget aside
	Arrived    *messages.JobSummary          // the other site took it, and said this
	Status     *messages.JobSummary          // the other site said this later
	Refused    *messages.Error               // the other site refuses to run it
	Cancel     messages.Name                 // the account that asks to end the job
	Told       bool                          // the other site was told to end it
	Released   bool                          // its credits are no longer set aside
	Forgotten  *messages.JobSummary          // the other site no longer knows it
	Concluded  bool                          // the bank knows that it is over by the other site's word

	// Conclude, with Arrived or Status, tells the bank that the job has ended, if it has.
	Conclude bool
}
