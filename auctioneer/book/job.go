package book

import (
	"fmt"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Job is a job in the book. The value that Spec points to never changes: a change of the description
// sets another pointer.
type Job struct {
	ID      messages.JobID
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Spec    *messages.JobSpec
	Assumed string
	Hold    string
	Held    messages.Credits

	State     messages.State
	Outcome   messages.State // the final state that Settling leads to
	Reason    string         // stable CamelCase, once it has ended or is ending
	Submitted messages.Time
	Started   messages.Time // first claim
	Ended     messages.Time // last accepted finish, failure or cancellation
	ExitCode  int
	Stages    []Stage

	Settled bool // the amount due has been decided
	Owed    messages.Credits
	Why     string // the reason of the charge
	Charged messages.Credits
	Refused string // why the bank refused the charge
	Shares  []Share

	// The following fields are for markets that order and charge by decisions.

	Contract *messages.Contract // the contract that it accepted; nil: none
	Blocked  int                // number of jobs that it waits for, plus 1 while it waits for its begin time
	Met      bool               // one of the jobs did what is said, and that is enough (Spec.AfterAny)
	Paired   bool               // its tasks wait for those of the array Spec.AfterEach, which has not ended
	Admitted bool               // Paired, and a task of the array has completed, so that Blocked does not count the array
	Order    *Order             // when and on how many slots it may start; nil: the market decides again each time
	Fixed    *Fixed             // the amount due, if it was decided in advance
	Paid     messages.Credits   // paid to other jobs in rounds
	Gained   messages.Credits   // received from other jobs and from the site
	Back     messages.Credits   // part of Gained: returned by the site from Charged
	Drawn    messages.Credits   // part of Paid: confirmed by the bank
	LastDraw uint64             // the round that did so last; 0: none
	Message  string             // the market's explanation of its end
	Change   []string           // changes to the bid that would have prevented its end

	Visit   *Visit // the other site's view of the job, if it is another site's; nil: a job of this site
	Deposit Deposit
	// Doubts has the tasks that failed quickly, by stage and index.
	Doubts map[[2]uint32]*Doubt `json:"-"`

	Parked   *Parked       // the job gets no tasks; nil: it does
	Released messages.Time // when it was last unparked, or stopped waiting for another job; 0: never

	Changes   int                     // number of changes of its description
	ChangeKey string                  // key of the last change
	Raise     Raise                   // the last change of its budget
	Notices   []messages.NoticeStatus // notifications about it
	// Kept are some of the attempts that failed; Omitted is how many earlier ones are not in it.
	Kept    Attempts
	Omitted int
	// Cause says in a sentence what ended the job; "": the job ended well, or nobody
	// noted the cause.
	Cause string
	// Promised has payments to the job, which the site keeps until the market has considered it.
	Promised []Leg

	metered uint64 // the last change of tariffs for which it is metered; 0: it has none
}

// Deposit is the part of a job's hold in addition to its budget.
type Deposit struct {
	Amount messages.Credits
	Kept   bool // kept by the site: the owner cancelled too soon
}

// Order says that a job may start tasks of a class, on up to a number of slots at the same time.
type Order struct {
	Class messages.Name
	Slots int
	At    messages.Time
}

// Fixed is what a job owes to the site, provided that it was started.
type Fixed struct {
	Amount messages.Credits
	Reason string
}

// Active reports whether tasks of the job may be claimed.
func (j *Job) Active() bool { return j.State <= messages.Running }

// Claimable returns the number of tasks of stage i that could be claimed now.
func (j *Job) Claimable(i int) int {
	s := &j.Stages[i]
	if !j.Active() || s.Unmet > 0 || j.Blocked > 0 || s.Broken || j.Parked != nil {
		return 0
	}
	n := len(s.Again) - s.gone - s.Nodes
	if !j.Paired {
		n += s.Total - len(s.Tasks) - int(s.Skipped.Count())
	}
	if most := j.Spec.Stages[i].MaxRunning; most > 0 {
		n = min(n, max(0, most-s.Running-s.Nodes))
	}
	return max(n, 0)
}

// Count returns the job's tasks: in all, running, and finished well.
func (j *Job) Count() (total, running, done int) {
	for i := range j.Stages {
		s := &j.Stages[i]
		total, running, done = total+s.Total, running+s.Running-s.Ahead, done+s.Done
	}
	return total, running, done
}

// Failures returns how many tasks of the job failed in all their attempts before it ended.
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

// live reports whether a task of the job can still run: a stage has not ended, and does not wait,
// directly or through other stages, for a stage with failed tasks.
func (j *Job) live() bool {
	lost := map[messages.Name]bool{} // stages that never end well
	for range j.Stages {             // each round finds the stages that wait for stages of the round before
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

// Began returns the number of tasks of the job that have had a slot. It leaves out tasks that run
// again because the site broke their attempts. Tasks that the user requeued count: otherwise a job
// could be requeued and then cancelled without paying.
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

// Receipt returns the answer to the job's submission.
func (j *Job) Receipt() Receipt {
	total, _, _ := j.Count()
	return Receipt{Job: j.ID, Market: j.Spec.Market, Payer: j.Payer, Held: j.Held, Tasks: total}
}

// HoldID names the hold that a job's credits are under now; "" if rounds have
// used it up, or another site's bank vouches for them.
func (j *Job) HoldID() string {
	switch {
	case j.Visit != nil, j.Drawn == j.Held:
		return ""
	case j.LastDraw != 0:
		return j.RestID(j.LastDraw)
	}
	return j.Hold
}

// RestID names the hold that a round leaves a job that pays.
func (j *Job) RestID(round uint64) string { return fmt.Sprintf("%s/rest/%d", j.Hold, round) }

// Cost returns what a job has paid, minus what it received from other jobs and the site.
func (j *Job) Cost() messages.Credits { return j.Charged + j.Paid - j.Gained }

// Left returns the rest of a job's budget: the rest of its hold without the deposit.
func (j *Job) Left() messages.Credits { return j.Held - j.Deposit.Amount - j.Paid }

// SlotsOf returns how many slots of a class the job's claims have, without claims that are about to
// lose them.
func (j *Job) SlotsOf(class messages.Name) int {
	n := 0
	for i := range j.Stages {
		if s := &j.Stages[i]; j.Spec.Stages[i].Class == class {
			n += s.OnSlots() * j.Spec.Stages[i].Slots()
		}
	}
	return n
}

// Doubt remembers a task that failed at once, until its job ends.
type Doubt struct {
	Nodes  []uint32 // nodes on which it failed, ascending, without repeats
	Spared int      // attempts that were not counted
}

// place returns a task within its job.
func place(r messages.TaskRef) [2]uint32 { return [2]uint32{r.Stage, r.Index} }

// Visit tells which job of another site this is, and which authorisation pays for it. It never
// changes.
type Visit struct {
	messages.Visit
	Authorisation string        // identifier of the authorisation at the home bank
	Until         messages.Time // when it can no longer be charged
}

// Parked says that a job gets no tasks, and who asked for that. Users say that the job is on hold;
// in the book, a hold is of credits.
type Parked struct {
	By       messages.Name
	Operator bool // an operator who is not the owner put it on hold: only an operator releases it
}

// Raise is a rise of a budget: the bank is asked to set aside the amount.
type Raise struct {
	Effect  uint64
	Amount  messages.Credits
	Refused string // why the bank did not; the last raise is over then
}

// Pending reports whether the bank has not answered yet.
func (r *Raise) Pending() bool { return r.Amount > 0 }

// Leg is a payment from the account of one job to the account of another job. Job 0
// stands for the site.
type Leg struct {
	From, To messages.JobID
	Amount   messages.Credits
	Reason   string
	// Later: the site keeps the payment until To has been considered, and gives it back
	// if To ends before.
	Later bool
}

// Share is a share of a class averaged over the time in which the job had work
// pending there, in millionths.
type Share struct {
	Class     messages.Name
	Allocated int64
	Received  int64
	Over      messages.Duration
}

// copy returns a job that can change while an image has the first.
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

// Arrived returns since when the job wants slots: a job that was on hold, or waited for its time to
// begin or for other jobs to end, keeps no place in a queue by that.
func (j *Job) Arrived() messages.Time { return max(j.Submitted, j.Released, j.Spec.Begin) }

// Away reports whether the job takes no part in its market: it is on hold, and none of its tasks
// has been started.
func (j *Job) Away() bool { return j.Parked != nil && j.Started == 0 }

// by returns who cancelled, as a phrase.
func by(who, owner messages.Name) string {
	if who == owner {
		return "User"
	}
	return "Operator"
}

// cancellers describes who may cancel.
var cancellers = map[string]string{"User": "its owner", "Operator": "an operator"}

// claimed reports whether a node still has a task of the job.
func (j *Job) claimed() bool {
	return slices.ContainsFunc(j.Stages, func(s Stage) bool { return s.Running > 0 })
}

// Owner is an account or a project in a market, whose tasks a bound counts. All accounts of another
// site are one owner.
type Owner struct {
	Market, Name messages.Name
	Project      bool
}

// ownersOf returns the owners whose bounds count the tasks of a job.
func ownersOf(account messages.Name, spec *messages.JobSpec) []Owner {
	owners := append(make([]Owner, 0, 2), Owner{Market: spec.Market, Name: messages.Participant(account)})
	if spec.Project != "" {
		owners = append(owners, Owner{Market: spec.Market, Name: spec.Project, Project: true})
	}
	return owners
}

// Owners returns the owners whose bounds count the tasks of a job.
func (j *Job) Owners() []Owner { return ownersOf(j.Account, j.Spec) }
