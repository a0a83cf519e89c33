package book

import (
	"fmt"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Job is a job in the book. The description that Spec points to never changes; a change sets another Spec.
type Job struct {
	ID      messages.JobID
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *job.JobSpec
	Assumed string
	Hold    string
	Held    messages.Credits

	State     job.State
	Outcome   job.State // the job's final state, which follows the state Settling
	Reason    string    // a fixed word in CamelCase, for programs; set when the job is ending
	Submitted messages.Time
	Started   messages.Time // time of the first claim
	Ended     messages.Time // time of the last accepted finish, failure or cancellation
	ExitCode  int
	Stages    []Stage

	Settled bool // the amount that the job owes has been decided
	Owed    messages.Credits
	Why     string // the reason of the charge
	Charged messages.Credits
	Refused string // why the bank refused the charge
	Shares  []Share

	// The following fields are for markets that decide in which order jobs start and what they pay.

	Contract *job.Contract    // the contract that the job accepted; nil means none
	Blocked  int              // number of jobs that the job waits for; a begin time in the future counts as one more
	Met      bool             // one of the awaited jobs has ended as required, and one is enough (Spec.AfterAny)
	Paired   bool             // the array Spec.AfterEach has not ended, and each task of the job waits for one task of the array
	Admitted bool             // the job is Paired, and a task of the array has completed; Blocked then omits the array
	Order    *Order           // when the job may start, and on how many slots; nil means that the market decides each time
	Fixed    *Fixed           // the amount that the job owes, if that was decided in advance
	Paid     messages.Credits // paid to other jobs in rounds
	Gained   messages.Credits // received from other jobs and from the site
	Back     messages.Credits // part of Gained: returned by the site from Charged
	Drawn    messages.Credits // part of Paid: confirmed by the bank
	LastDraw uint64           // the last round that the bank confirmed; 0 means none
	Message  string           // the market's explanation of the job's end
	Change   []string         // changes to the bid that would have prevented the job's end

	Visit   *Visit // for a job of another site: what that site sent; nil means a job of this site
	Deposit Deposit
	// Doubts records, by stage and index, the tasks that failed as soon as they started.
	Doubts map[[2]uint32]*Doubt `json:"-"`

	Parked   *Parked       // the job is on hold and gets no tasks; nil if the job is not on hold
	Released messages.Time // when the job was last released from a hold or stopped waiting for another job; 0 means never

	Changes   int                // number of changes of the description
	ChangeKey string             // key of the last change
	Raise     Raise              // the last change of the budget
	Notices   []job.NoticeStatus // notifications about the job
	// Kept are some of the failed attempts. Omitted is how many are not kept.
	Kept    Attempts
	Omitted int
	// Cause is a sentence that says what ended the job, or "".
	Cause string
	// Promised are payments to the job. The site keeps them until the market has considered the job.
	Promised []Leg
	Warned   messages.Credits `json:",omitempty"` // the budget for which the last Warn was carried out

	metered uint64 // number of the last change of tariffs that the job's meter includes; 0 means none
}

// Deposit is the part of a job's hold in addition to its budget.
type Deposit struct {
	Amount messages.Credits
	Kept   bool // the site keeps the deposit, because the owner cancelled the job too soon
}

// Order lets a job start tasks of a class, as long as the job's tasks use at most the given number of slots at the same
// time.
type Order struct {
	Class messages.Name
	Slots int
	At    messages.Time
}

// Fixed is the amount that a job owes to the site because its market decided to start it.
type Fixed struct {
	Amount messages.Credits
	Reason string
}

// Active reports whether the job has not ended, so that its tasks may still be claimed.
func (j *Job) Active() bool { return j.State <= job.Running }

// Claimable returns the number of tasks of stage i that could be claimed now. Tasks do not count if a node is already
// keeping slots free for them.
func (j *Job) Claimable(i int) int { return j.claimable(i, j.Stages[i].Nodes) }

// claimable returns what Claimable would return if nodes kept slots free for the given number of tasks (`gathered`).
func (j *Job) claimable(i, gathered int) int {
	s := &j.Stages[i]
	if !j.Active() || s.Unmet > 0 || j.Blocked > 0 || s.Broken || j.Parked != nil || j.Spec.Together && !j.turn(i) {
		return 0
	}
	n := len(s.Again) - s.gone - gathered
	if !j.Paired {
		n += s.Total - len(s.Tasks) - int(s.Skipped.Count())
	}
	if most := j.Spec.Stages[i].MaxRunning; most > 0 {
		n = min(n, max(0, most-s.Running-gathered))
	}
	return max(n, 0)
}

// Gathers reports whether a node may continue to collect slots for a task of stage i. If not, it stops at the next
// exchange of its agent.
func (j *Job) Gathers(i int) bool { return j.claimable(i, j.Stages[i].Nodes-1) > 0 }

// The stages of a heterogeneous job get their nodes one after another. turn reports whether stage i may get its nodes
// now. It returns false if attempts of an earlier start have not ended, or if a stage before stage i lacks nodes.
func (j *Job) turn(i int) bool {
	for k := range j.Stages {
		if s := &j.Stages[k]; s.Broken || k != i && s.Running < s.Total && j.Spec.GathersBefore(k, i) {
			return false
		}
	}
	return true
}

// gang returns the range of the stages whose tasks start together with the tasks of the given stage. In a heterogeneous
// job, these are all stages. In any other job, it is only this stage. In an allocation, the first task of the first
// stage in the range runs the command.
func (j *Job) gang(stage int) (first, end int) {
	if j.Spec.Together {
		return 0, len(j.Stages)
	}
	return stage, stage + 1
}

// Finishing reports whether an allocation is about to end: its command has ended without an error, so its other tasks
// will be ended too.
func (j *Job) Finishing(stage int) bool {
	first, _ := j.gang(stage)
	return j.Spec.Stages[stage].Allocation && j.Active() && len(j.Stages[first].Tasks) > 0 && j.Stages[first].Tasks[0].Phase == Done
}

// An allocation gets its nodes one after another. assembles reports whether the allocation has begun to get them, and
// still waits for more. It has begun if at least one node has slots for it, or if a node keeps freed slots for it.
func (j *Job) assembles(stage int) bool {
	for i, end := j.gang(stage); i < end; i++ {
		if s := &j.Stages[i]; s.Gathering > 0 || s.Nodes > 0 {
			return true
		}
	}
	return false
}

// Count returns the number of all tasks, of the running tasks, and of the tasks that succeeded.
func (j *Job) Count() (total, running, done int) {
	for i := range j.Stages {
		s := &j.Stages[i]
		total, running, done = total+s.Total, running+s.Running-s.Ahead, done+s.Done
	}
	return total, running, done
}

// Failures returns how many tasks failed in all their attempts before the job ended.
func (j *Job) Failures() (n int) {
	for i := range j.Stages {
		n += j.Stages[i].Failed
	}
	return n
}

// CancelledTasks returns how many tasks of the job were cancelled while the job went on.
func (j *Job) CancelledTasks() (n int) {
	for i := range j.Stages {
		n += j.Stages[i].Cancelled
	}
	return n
}

// live reports whether a task of the job can still run: a stage has not ended, and waits for no failed stage, directly
// or indirectly.
func (j *Job) live() bool {
	lost := map[messages.Name]bool{} // stages that can no longer end well
	for range j.Stages {             // each round adds the stages that wait for a stage found in the round before
		for i := range j.Stages {
			waits := slices.ContainsFunc(j.Spec.Stages[i].After, func(name messages.Name) bool { return lost[name] })
			if waits || j.Stages[i].short() {
				lost[j.Spec.Stages[i].Name] = true
			}
		}
		if len(lost) == 0 {
			break
		}
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if !s.over() && (s.short() || !lost[j.Spec.Stages[i].Name]) {
			return true
		}
	}
	return false
}

// Began returns how many tasks of the job have had a slot. Tasks whose attempts the site ended do not count. Tasks that
// the user requeued do count: otherwise a user could requeue and cancel a job without paying.
func (j *Job) Began() (n int) {
	for i := range j.Stages {
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if t.Attempt > 0 && (t.Phase != Pending && t.Claimed != 0 || t.Ender != NoEnder) {
				n++
			}
		}
	}
	return n
}

// Receipt is the answer to a submission.
type Receipt struct {
	Job    messages.JobID
	Market messages.Name
	Payer  messages.Name
	Held   messages.Credits
	Tasks  int
}

// Receipt returns the answer to the submission.
func (j *Job) Receipt() Receipt {
	total, _, _ := j.Count()
	return Receipt{Job: j.ID, Market: j.Spec.Market, Payer: j.Payer, Held: j.Held, Tasks: total}
}

// HoldID returns the name of the hold that has the job's credits now. It is "" in two cases: the job's payments in
// rounds have used all credits of the hold, or another site's bank guarantees the job's payment.
func (j *Job) HoldID() string {
	switch {
	case j.Visit != nil, j.Drawn == j.Held:
		return ""
	case j.LastDraw != 0:
		return j.RestID(j.LastDraw)
	}
	return j.Hold
}

// In a round, jobs pay other jobs from their holds. RestID returns the name of the hold that a paying job has after the
// round: it keeps the credits that the job did not pay.
func (j *Job) RestID(round uint64) string { return fmt.Sprintf("%s/rest/%d", j.Hold, round) }

// Cost returns what a job has paid, minus what it received from other jobs and the site.
func (j *Job) Cost() messages.Credits { return j.Charged + j.Paid - j.Gained }

// Left returns what is left of a job's budget: the amount of its hold, without the deposit and without what was already
// paid.
func (j *Job) Left() messages.Credits { return j.Held - j.Deposit.Amount - j.Paid }

// SlotsOf returns how many slots of a class the job's claims have. Claims that are about to end do not count.
func (j *Job) SlotsOf(class messages.Name) int {
	n := 0
	for i := range j.Stages {
		if s := &j.Stages[i]; j.Spec.Stages[i].Class == class {
			n += s.OnSlots() * j.Spec.Stages[i].Slots()
		}
	}
	return n
}

// Doubt records the nodes on which a task failed as soon as it started.
type Doubt struct {
	Nodes  []uint32 // nodes on which the task failed, ascending, without repeats
	Spared int      // attempts that were not counted
}

func place(r messages.TaskRef) [2]uint32 { return [2]uint32{r.Stage, r.Index} }

// Visit identifies a visiting job at its home site, and the authorisation that pays for it. It never changes.
type Visit struct {
	job.Visit
	Authorisation string        // identifier of the authorisation at the home bank
	Until         messages.Time // from this time on, nothing can be charged
}

// Parked says that no tasks of a job may be claimed, and which account asked for that. Users say that such a job is "on
// hold". The book does not use this word here, because in the book a hold is a sum of credits.
type Parked struct {
	By       messages.Name
	Operator bool // an operator who is not the owner put the job on hold, so only an operator may release it
}

// Raise is a request to raise a job's budget. The bank is asked to hold the additional amount.
type Raise struct {
	Effect  uint64
	Amount  messages.Credits
	Refused string // why the bank refused the raise; the raise is then over
}

// Pending reports whether the bank has not answered yet.
func (r *Raise) Pending() bool { return r.Amount > 0 }

// Leg is a payment from the account of one job to the account of another job. Job 0
// stands for the site.
type Leg struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
	// Later means that the site does not make the payment to the job To at once. The site keeps the payment until the
	// market has considered this job. If this job ends before that, the site gives the payment back.
	Later bool
}

// Share is a job's share of a class, in millionths. It is an average over the time in which the job had pending tasks
// of the class.
type Share struct {
	Class     messages.Name
	Allocated int64
	Received  int64
	Over      messages.Duration
}

func (j *Job) copy() *Job {
	c := *j
	c.Stages = slices.Clone(j.Stages)
	for i := range c.Stages {
		c.Stages[i].Tasks = slices.Clone(c.Stages[i].Tasks)
		c.Stages[i].Again = slices.Clone(c.Stages[i].Again)
		c.Stages[i].Skipped = slices.Clone(c.Stages[i].Skipped)
	}
	c.Doubts = maps.Clone(j.Doubts)
	for at, d := range c.Doubts {
		c.Doubts[at] = &Doubt{slices.Clone(d.Nodes), d.Spared}
	}
	c.Promised = slices.Clone(j.Promised)
	return &c
}

// Arrived returns the time since which the job has wanted slots. The time in which the job was on hold does not count.
// The time before its earliest begin does not count either.
func (j *Job) Arrived() messages.Time { return max(j.Submitted, j.Released, j.Spec.Begin) }

// Away reports whether the job takes no part in its market: it is on hold, and none of its tasks has started.
func (j *Job) Away() bool { return j.Parked != nil && j.Started == 0 }

// This function says who cancelled a job: it returns "User" for the job's owner, and "Operator" for anybody else.
func by(who, owner messages.Name) string {
	if who == owner {
		return "User"
	}
	return "Operator"
}

// cancellers are phrases for the kinds of accounts that may cancel.
var cancellers = map[string]string{"User": "its owner", "Operator": "an operator"}

func (j *Job) claimed() bool {
	return slices.ContainsFunc(j.Stages, func(s Stage) bool { return s.Running > 0 })
}

// Owner is an account or a project in a market; a bound counts its tasks. All accounts of another site together are
// one owner.
type Owner struct {
	Market, Name messages.Name
	Project      bool
}

// ownersOf returns the owners of a job's tasks: its account and, if it has one, its project. The tasks count against
// the bounds of both owners.
func ownersOf(account messages.Name, spec *job.JobSpec) []Owner {
	owners := append(make([]Owner, 0, 2), Owner{Market: spec.Market, Name: messages.Participant(account)})
	if spec.Project != "" {
		owners = append(owners, Owner{Market: spec.Market, Name: spec.Project, Project: true})
	}
	return owners
}

// Owners returns the owners whose bounds count the tasks of the job.
func (j *Job) Owners() []Owner { return ownersOf(j.Account, j.Spec) }
