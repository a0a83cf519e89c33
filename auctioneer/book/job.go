package book

import (
	"bytes"
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// Job is a job in the book. Spec and what hangs on it never change.
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

	Settled bool // what is owed has been decided
	Owed    messages.Credits
	Why     string // what the charge is for
	Charged messages.Credits
	Refused string // why the bank refused the charge
	Shares  []Share

	// What follows is of markets that order and charge by decisions.

	Contract *messages.Contract // that it took; nil: none
	Blocked  int                // jobs that it waits for
	Order    *Order             // when and on how many slots it may start; nil: the market orders anew each time
	Fixed    *Fixed             // what it will owe if that was decided in advance
	Paid     messages.Credits   // to other jobs, by rounds
	Gained   messages.Credits   // from other jobs
	Drawn    messages.Credits   // of Paid, what the bank has confirmed
	LastDraw uint64             // the round that did so last; 0: none
	Message  string             // how its market explained its end
	Change   []string           // what would have changed it

	Visit   *Visit  `msgpack:"-"` // it comes from another site; kept in an image's annex
	Deposit Deposit `msgpack:"-"` // likewise
	// Doubts are of tasks that failed at once, by stage and index; in an image's supplement.
	Doubts map[[2]uint32]*Doubt `msgpack:"-"`
}

// Order says that a job may start tasks of a class, on so many slots at once.
type Order struct {
	Class messages.Name
	Slots int
	At    messages.Time
}

// Fixed is what a job owes to the site if it was started at all.
type Fixed struct {
	Amount messages.Credits
	Reason string
}

// Stage is how far a stage has come.
type Stage struct {
	Total    int
	Unmet    int      // stages it waits for
	Tasks    []Task   // those claimed at least once: a prefix of the stage's tasks
	Again    []uint32 // tasks to be claimed again, in the order they came back
	Running  int
	Done     int
	Retried  int
	Started  messages.Time
	Ended    messages.Time
	SlotTime messages.Duration // of accepted attempts, from claim to finish
	CPU      messages.Duration // processor time of accepted attempts
	MaxRSS   int64             // largest memory of a process of theirs, in bytes

	// Of the claims that Running counts:
	Suspended int // have given up their slot for now
	Gathering int // have their slot, and wait for the rest of their gang
	Leaving   int // are to end, to be claimed again; no part of the two above

	Gathered messages.Time // when the first of a gang that gathers was claimed
	Broken   bool          // the gang has lost a member: all of it starts anew
	Meter    Meter
}

// Phase is where a task is.
type Phase uint8

// The phases of a task that has been claimed at least once.
const (
	Claimed Phase = iota
	Done
	Failed
	Pending // came back, to be claimed again
)

var phaseNames = [...]string{"Claimed", "Done", "Failed", "Pending"}

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// Task is the latest attempt of a task.
type Task struct {
	Attempt uint32
	Tries   uint32 // attempts that failed by the task's own doing
	Phase   Phase
	Node    uint32 // position in Book.Nodes
	Exit    int32
	Claimed messages.Time
	Ended   messages.Time
}

// Active says whether tasks of the job may be claimed.
func (j *Job) Active() bool { return j.State <= messages.Running }

// Claimable is the number of tasks of stage i that could be claimed now.
func (j *Job) Claimable(i int) int {
	s := &j.Stages[i]
	if !j.Active() || s.Unmet > 0 || j.Blocked > 0 || s.Broken {
		return 0
	}
	n := s.Total - len(s.Tasks) + len(s.Again)
	if most := j.Spec.Stages[i].MaxRunning; most > 0 {
		n = min(n, max(0, most-s.Running))
	}
	return n
}

// Count returns the job's tasks: in all, running, and finished well.
func (j *Job) Count() (total, running, done int) {
	for i := range j.Stages {
		s := &j.Stages[i]
		total, running, done = total+s.Total, running+s.Running, done+s.Done
	}
	return total, running, done
}

// Receipt is what a submission is answered with.
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

func (b *Book) submit(c *Submit) any {
	if j := b.ByKey(c.Account, c.Key); j != nil {
		if !bytes.Equal(j.Digest, c.Digest) {
			return messages.Errorf(messages.Conflict,
				"key %q was used for job %d with another description; choose a new key for a new job", c.Key, j.ID)
		}
		return j.Receipt()
	}
	if b.taken(c.Account, c.Key) {
		return messages.Errorf(messages.Conflict, "key %q was used for a job at another site; choose a new key for a new job", c.Key)
	}
	if c.Visit != nil && b.visits[c.Visit.Visit] != 0 {
		return messages.Errorf(messages.Conflict, "job %v is of another account here", c.Visit.Visit)
	}
	if c.Visit != nil && len(b.visits) >= MaxVisits {
		return messages.Errorf(messages.Exhausted, "the site remembers %d jobs of other sites; submit again later", MaxVisits)
	}
	if b.Active() >= MaxActive {
		return messages.Errorf(messages.Exhausted, "the site holds %d jobs that have not ended; submit again later", MaxActive)
	}
	if err := b.crowded(c); err != nil {
		return err
	}
	if err := b.Dependable(c.Spec); err != nil {
		return err
	}
	if err := b.unapplied(c.Applies); err != nil {
		return err
	}
	q, err := b.take(c)
	if err != nil {
		return err
	}
	b.lastJob++
	if q != nil {
		q.Job = b.lastJob
	}
	j := &Job{
		ID: b.lastJob, Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Assumed: c.Assumed, Hold: c.Hold, Held: c.Held, Submitted: b.now, Stages: make([]Stage, len(c.Spec.Stages)),
		Contract: c.Contract, Visit: c.Visit, Deposit: Deposit{Amount: c.Deposit},
	}
	for i := range c.Spec.Stages {
		j.Stages[i] = Stage{Total: c.Spec.Stages[i].TaskCount(), Unmet: len(c.Spec.Stages[i].After)}
	}
	b.jobs[j.ID] = j
	b.keys[j.Account+"/"+j.Key] = j.ID
	b.count(j.Account, 1)
	b.list(j.Account, j.ID)
	if j.Visit != nil {
		b.visits[j.Visit.Visit] = j.ID
		b.countGuest(j, 1, 1)
	}
	b.await(j)
	b.touch(j.ID)
	return j.Receipt()
}

func (b *Book) cancel(c *Cancel) any {
	j := b.jobs[c.Job]
	if j == nil {
		return messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	}
	if !j.Active() {
		return messages.Errorf(messages.Ended, "job %d is %v already", j.ID, j.Outcome)
	}
	was := j.State
	b.forfeit(j, c)
	b.end(j, messages.Cancelled, "CancelledBy"+by(c.By, j.Account))
	return was
}

func by(who, owner messages.Name) string {
	if who == owner {
		return "User"
	}
	return "Operator"
}

// end stops a job: no task of it may be claimed any more, those that run are
// to be stopped, and what it owes is to be decided. Jobs that waited for it go
// on, or end with it.
func (b *Book) end(j *Job, outcome messages.State, reason string) {
	for i := range j.Stages {
		b.meter(j, i)
	}
	delete(b.metered[j.Spec.Market], j.ID)
	j.Doubts = nil
	delete(b.ordered, j.ID)
	j.State, j.Outcome, j.Reason, j.Ended = messages.Settling, outcome, reason, b.now
	b.touch(j.ID)
	for i := range j.Stages {
		if j.Stages[i].Running > 0 {
			b.stopStage(j, i)
		}
	}
	b.ending = append(b.ending, j)
	if len(b.ending) > 1 { // called from the loop below
		return
	}
	for k := 0; k < len(b.ending); k++ {
		b.release(b.ending[k])
	}
	b.ending = b.ending[:0]
}

func (b *Book) stopStage(j *Job, i int) {
	for k := range j.Stages[i].Tasks {
		if t := &j.Stages[i].Tasks[k]; t.Phase == Claimed {
			b.stop(messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: t.Attempt})
		}
	}
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

// Cost is what a job has paid, less what other jobs paid it.
func (j *Job) Cost() messages.Credits { return j.Charged + j.Paid - j.Gained }

func (b *Book) settle(c *Settle) any {
	j := b.jobs[c.Job]
	switch {
	case j == nil:
		return messages.Errorf(messages.NotFound, "there is no job %d", c.Job)
	case j.Settled:
		return nil
	case j.State != messages.Settling:
		return messages.Errorf(messages.Invalid, "job %d has not ended", j.ID)
	case c.Charge < 0 || c.Charge > j.Left():
		return messages.Errorf(messages.Invalid, "a charge of %v for job %d is not between 0 and what is left of its budget, %v", c.Charge, j.ID, j.Left())
	}
	j.owe(c)
	b.effect(Charge, j.ID)
	b.touch(j.ID)
	return nil
}
