package book

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// Command is one change of the book. At is the proposer's time. Exactly one of the commands below is set.
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

	// Leap is how far the wall clock was set ahead since the last command: see [Book.leap].
	Leap messages.Duration
	// TimeUnknown means that the proposer did not know the time. The time of the last command then applies.
	TimeUnknown   bool
	ChangeWindows *ChangeWindows
	Warn          *Warn
}

// Restored says that a backup was restored, and when the backup began. Jobs with numbers up to Last may be missing in
// the backup, so new jobs get higher numbers. Result: nil.
type Restored struct {
	Backup messages.Time
	Last   messages.JobID
}

// SetLicenses says how many licences the site has. Result: nil.
type SetLicenses struct {
	Totals job.Licenses
}

// SetBounds sets how much the tasks of accounts and projects may use at the same time. A market without an entry has no
// bounds. Result: nil.
type SetBounds struct {
	Markets []MarketBounds
}

// MarketBounds are the bounds of a market.
type MarketBounds struct {
	Market messages.Name
	AtOnce market.AtOnce
}

func (m MarketBounds) compare(o MarketBounds) int { return strings.Compare(m.Market, o.Market) }

// BoundsOf returns the bounds of the markets, ordered by market name.
func BoundsOf(markets []market.Market) (out []MarketBounds) {
	for i := range markets {
		if markets[i].AtOnce.Bounds() {
			out = append(out, MarketBounds{markets[i].Name, markets[i].AtOnce})
		}
	}
	slices.SortFunc(out, MarketBounds.compare)
	return out
}

// Begin starts the jobs whose begin time has come. Result: nil.
type Begin struct{}

// Submit enters a job that has a hold. Result: the Receipt of the job with this key.
type Submit struct {
	Account messages.Name
	Key     string
	Digest  []byte // digest of the spec as the client sent it: the same key must have the same digest
	Payer   messages.Name
	Spec    *job.JobSpec // complete: every default filled in
	Assumed string       // source of the utility function, if the user gave none
	Hold    string
	Held    messages.Credits
	// Contract is the contract that Spec.Contract names. The field Quote is the number of the quote that offered it.
	Contract *job.Contract
	Quote    uint64
	Visit    *Visit // set if the job comes from another site
	// MarketsVersion is the version of the site's markets with which the job was checked: 1, and 1 more for each
	// ApplyMarkets. If the version has changed since the check, the job is refused. 0 means unknown.
	MarketsVersion uint64
	// Deposit is the part of Held that is held in addition to the budget. So Held is the sum of the budget and Deposit.
	// Most is the largest number of pending jobs that the account may have, with this job included; 0 means no limit.
	Deposit messages.Credits
	Most    int
	// The book numbers its effects (actions outside the book, such as payments). Seen is 1 + the number of the latest
	// effect that the auctioneer knew when it asked the bank for the hold. 0 means that this number is unknown. In that
	// case, a refused submission does not free its hold.
	Seen uint64
}

// ApplyMarkets replaces the markets of the site. Result: Applied.
type ApplyMarkets struct {
	Markets []market.Market
	Idle    []messages.Name // these markets must have no jobs, otherwise nothing changes
	// MarketsVersion is 1 + the number of times that markets had been applied when this command was checked. If markets
	// were applied since then, the command changes nothing. 0 means unknown.
	MarketsVersion uint64
	// A request that applies markets can have a key. Applied is the answer to this request. It is stored, so that a
	// repeated request gets the same answer. If the command has no Markets, it only stores this answer.
	Applied *Applied
}

// Cancel ends a job. Result: the job.State before the command.
type Cancel struct {
	Job messages.JobID
	By  messages.Name
	// Window is a duration after the submission. If the owner cancels the job within this duration, the site keeps the
	// deposit.
	Window messages.Duration
}

// CancelJobs cancels several jobs. Result: []CancelledJob, in the same order.
type CancelJobs struct {
	Jobs   []messages.JobID
	By     messages.Name
	Window messages.Duration
}

// CancelledJob is the state of a job before it was cancelled, or the reason why it was not cancelled.
type CancelledJob struct {
	State job.State
	Err   *messages.Error
}

// CancelTasks cancels tasks of a stage, and the job continues. Result: int, the number of cancelled tasks.
type CancelTasks struct {
	Job    messages.JobID
	Stage  int
	Tasks  job.Array // positions of the tasks in the stage
	By     messages.Name
	Window messages.Duration // see the field Window of Cancel
}

// Register announces a node. Result: []messages.Attempt, which the agent must stop.
type Register struct {
	Node      messages.Name
	Session   uint64
	Slots     []job.ClassSlots
	Running   []messages.Attempt
	Abilities []messages.Name
	Resources *job.Resources // resources of the whole node, or nil if unknown
	// Units are the resources of one slot, in the order of Slots. Without units, slots have no sizes.
	Units  []job.Resources
	Labels []messages.Name
	// MostSuspended is how many suspended tasks the node should keep at most. 0 means the default.
	MostSuspended int
	Level         int // level of the agent's release; see [messages.Level]
}

// Exchange carries the ends of attempts and the claims of an agent. The leader has chosen jobs for the claims. Result:
// []agent.Grant. If the exchange is repeated, the result is the same.
type Exchange struct {
	Node     messages.Name
	Session  uint64
	Seq      uint64
	Finished []agent.Finished
	Claims   []Claim
	// Sent has the meaning of Sent in [agent.Exchange].
	Sent messages.Time
}

// Claim asks for up to Slots tasks of a class. The jobs in Jobs are tried in order.
type Claim struct {
	Class messages.Name
	Slots int
	Jobs  []messages.JobID
	// Most has a limit for each job in the field Jobs: the number of claims of the class that the job may have at the
	// same time. If Most is empty, there are no limits.
	Most []int
	// Fits means that a task may be claimed only if the node has enough free slots for it now. The leader sets Fits if it
	// expects that the node would not collect enough free slots in time.
	Fits bool
	// Ahead is the maximum number of tasks of the class that the node may hold before they have a slot.
	Ahead int
	// If Lent is not 0, the claim may use slots that the node keeps free for another task. Only tasks with a time limit of
	// at most Lent may use such slots. A negative Lent allows no task.
	Lent messages.Duration `json:",omitempty" since:"2"`
}

// Lost takes back all claims of a node's session. Result: int, the number of claims.
type Lost struct {
	Node    messages.Name
	Session uint64
	Stopped bool // the agent itself said that it stops
}

// Settle sets what an ended job owes to the site. Result: nil.
type Settle struct {
	Job    messages.JobID
	Charge messages.Credits
	Reason string
	Shares []Share
	// Promise says whether the job completed at the time that its contract promised.
	Promise Promise
}

// Confirm reports the outcomes of effects. Result: nil.
type Confirm struct {
	Effects []Confirmation
}

// Confirmation tells the book the outcome of an effect. For a charge, Amount is what the bank moved. If the bank
// refused the effect, Refused has the reason.
type Confirmation struct {
	Effect  uint64
	Amount  messages.Credits
	Refused string
}

// Disband makes the tasks of a gang pending again. It does so only if the gang began to wait for its slots at the time
// Since, and still waits. Result: nil.
type Disband struct {
	Job   messages.JobID
	Stage uint32
	Since messages.Time
}

// Park stops the market from giving slots to a job. With Release set, the job gets slots again. If an operator parked
// the job, only an operator can release it. Result: Parking.
type Park struct {
	Job      messages.JobID
	By       messages.Name
	Operator bool // the account By may see all jobs
	Release  bool
}

// Requeue ends running tasks of a job, which then run again. The job pays for the time of the ended attempts. Result:
// int, the number of tasks.
type Requeue struct {
	Job   messages.JobID
	Tasks []messages.TaskRef // empty means all running tasks
	Stage *int               // only tasks of this stage; nil means all stages
}

// Parking is the result of the command Park, which puts a job on hold or ends the hold.
type Parking struct {
	State   job.State
	Running int  // number of tasks that still run
	Changed bool // false means that the job was already in this state
}

// Drain stops a node from getting new work. At the time Until, the tasks that still run there are ended. If Until is
// [ToTheirEnd], they may run to their end. If Until is 0, the drain is cancelled: the node gets work again, even if it
// was in quarantine. Result: int, the number of tasks on the node.
type Drain struct {
	Node  messages.Name
	Until messages.Time
	Evict bool // Until is over: end the tasks now
	// Reason is a text of the operator. If Remove is true, the command removes the node, which must be down. Otherwise
	// it drains the node.
	Reason string
	Remove bool
}

// ChangeWindows adds a window, or removes the window with the number Remove. Adding the same window again changes
// nothing. Result: the market.Window.
type ChangeWindows struct {
	Add    *market.Window
	Remove uint32
}

// Decide is a decision of a market. The book ignores the parts about attempts that ended after the market had decided.
// Result: nil.
type Decide struct {
	Market  messages.Name
	Suspend []messages.Attempt
	Resume  []messages.Attempt
	Requeue []messages.Attempt // tasks to end and run again
	Start   []Starting
	Discard []Discarding
	Tariffs []Tariff // tariffs of all classes of the market; empty means no change
	Notes   []Note   // notes that the mechanism wants to keep
	Forget  bool     // drop all earlier notes of the mechanism
	Owed    bool     // jobs pay for the time of the tasks in Requeue
}

// Starting is a market's final decision to start a job.
type Starting struct {
	Job   messages.JobID
	Order Order
	Fixed *Fixed
	Legs  []Leg // payments that follow from the decision
}

// Discarding ends a job that its market will not run.
type Discarding struct {
	Job     messages.JobID
	Reason  string // a fixed word in CamelCase, for programs
	Message string
	Change  []string
	Legs    []Leg
}

// Stamp sets the time of the command to `now`. The argument `leap` is how far the clock was set ahead since the last
// command. The argument `carried` becomes the field [Command.TimeUnknown].
func (c *Command) Stamp(now messages.Time, leap messages.Duration, carried bool) {
	c.At, c.Leap, c.TimeUnknown = now, leap, carried
}

// Decode decodes a command. It returns an error if the bytes are no command, or have fields that this version does not
// have.
func Decode(data []byte) (*Command, error) {
	c, _, err := decode(data)
	return c, err
}

// LevelOf returns the level that a replica needs to read an encoded command; see [messages.Level].
func LevelOf(data []byte) (int, error) {
	_, level, err := decode(data)
	return level, err
}

func decode(data []byte) (*Command, int, error) {
	c := new(Command)
	if len(data) == 0 {
		return nil, 0, messages.Errorf(messages.Invalid, "a command of the book has no bytes")
	}
	level, err := wire.UnmarshalLevel(data, wire.Msgpack, c)
	if err != nil {
		return nil, 0, err
	}
	return c, level, nil
}

// Encode returns the bytes that [Decode] reads.
func (c *Command) Encode() ([]byte, error) { return wire.Marshal(c, wire.Msgpack) }

// Change changes the description or the budget of a job that has not ended. Result: Changed.
type Change struct {
	Job messages.JobID
	Key string // if the last change had the same key, this change does nothing
	// To is the new description without the budget; nil means no change. It may change only the job's name, comment,
	// rate and start conditions, and the time limits and bounds of its stages.
	To *job.JobSpec
	// Budget is the new budget; 0 means no change. The old budget applies until the bank has set the difference aside.
	Budget messages.Credits
	// If Unstarted is true, the change is refused if a task of the job has started.
	Unstarted bool
	Version   int // value of Job.Changes when To was copied from the job
}

// Changed is the result of a Change.
type Changed struct {
	State  job.State
	Effect uint64 // the effect that raises the budget, or 0 if the budget is not raised
}

// Warn tells the owner that the job will soon have spent its budget. A second Warn for the same budget changes nothing.
// Result: nil.
type Warn struct {
	Job messages.JobID
}

// Notified reports the outcomes of notifications. Result: nil.
type Notified struct{ Outcomes []NoticeOutcome }

// NoticeOutcome is the outcome of a notification: it was sent, or refused and will not be tried
// again.
type NoticeOutcome struct {
	Notice  uint64
	Refused string
}

// EnterRemote enters a job that another site will run. Result: the RemoteReceipt of the job with this key.
type EnterRemote struct {
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *job.JobSpec
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

// Advance moves remote jobs to their next phases. A step that does not fit its job's phase is ignored. The result is
// nil, except for a step that cancels a job. For such a step, it is the job.State before the cancellation, or the error
// that says why the job cannot be cancelled.
type Advance struct {
	Steps []Step
}

// Step is one new fact about a remote job. Exactly one field is set in addition to Job and Conclude.
type Step struct {
	Job        messages.JobID
	Authorised *clearing.SignedAuthorisation // the bank set the budget aside
	Arrived    *job.JobSummary               // first status of the job: the other site has accepted the job
	Status     *job.JobSummary               // a later status from the other site
	Refused    *messages.Error               // the other site refused the job
	Cancel     messages.Name                 // the account that asks to cancel the job
	Told       bool                          // the other site was told to end the job
	Released   bool                          // the credits of the job are no longer set aside
	Forgotten  *job.JobSummary               // the other site no longer knows the job
	Concluded  bool                          // the bank knows from the other site's message that the job is over

	// Conclude says that the bank must be told of the end of the job, if the job has ended. It is set only together
	// with Arrived or Status.
	Conclude bool
}
