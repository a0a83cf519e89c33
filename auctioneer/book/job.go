package book

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Job is a job in the book. What Spec points to never changes: a job that is described
// otherwise has another.
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
	Blocked  int                // how many jobs it waits for, and 1 more for its time to begin
	Order    *Order             // when and on how many slots it may start; nil: the market orders anew each time
	Fixed    *Fixed             // what it will owe if that was decided in advance
	Paid     messages.Credits   // to other jobs, by rounds
	Gained   messages.Credits   // from other jobs, and from the site
	Back     messages.Credits   // of Gained, what the site gave back of Charged
	Drawn    messages.Credits   // of Paid, what the bank has confirmed
	LastDraw uint64             // the round that did so last; 0: none
	Message  string             // how its market explained its end
	Change   []string           // what would have changed it

	Visit   *Visit // what it is to another site, whose job it is; nil: it is of this one
	Deposit Deposit
	// Doubts are of tasks that failed at once, by stage and index.
	Doubts map[[2]uint32]*Doubt `json:"-"`

	Parked   *Parked       // the job gets no tasks; nil: it does
	Released messages.Time // until when it was parked last, or waited for another job; 0: never

	Changes   int                     // how often its description has changed
	ChangeKey string                  // of the last change
	Raise     Raise                   // of its budget, the last one
	Notices   []messages.NoticeStatus // that were to be sent about it
	// Kept are some attempts that came to nothing; Omitted is how many earlier attempts of
	// tasks are not among them.
	Kept    Attempts
	Omitted int
	// Cause says in a sentence what ended the job; "": the job ended well, or nobody
	// noted the cause.
	Cause string
	// Promised is what the site keeps for the job until the job has been considered.
	Promised []Leg

	metered uint64 // the last change of tariffs for which it is metered; 0: it has none
}

// Deposit is what a job's hold has beside its budget.
type Deposit struct {
	Amount messages.Credits
	Kept   bool // its owner took the job back too soon
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
	Again    []uint32 // tasks to be claimed again, in the order they came back, and gone ones
	Running  int
	Done     int
	Retried  int
	Started  messages.Time
	Ended    messages.Time
	SlotTime messages.Duration // of accepted attempts, from claim to finish
	CPU      messages.Duration // processor time of accepted attempts
	MaxRSS   int64             // largest memory of a process of theirs, in bytes

	// Of the claims that Running counts:
	Suspended int // have given up their slot until they are resumed
	Gathering int // have their slot, and wait for the rest of their gang
	Leaving   int // are to end, to be claimed again; no part of the two above

	Gathered messages.Time // when the first of a gang that gathers was claimed
	Broken   bool          // the gang has lost a member: all of it starts anew
	Meter    Meter

	// Failed is how many tasks failed for good before the job ended.
	Failed int
	// Requeued is how many attempts were ended to be run again at the wish of the owner or
	// an operator; they count as retried too.
	Requeued int
	Lost     int64 // bytes of the output of ended attempts that were not kept
	Cut      int   // of how many attempts
	// Complete is how many tasks are complete for prices, and CompleteAt when the last of
	// them was. Delivered is their slot time, of each until then.
	Complete   int
	CompleteAt messages.Time
	Delivered  messages.Duration
	// Cancelled is how many tasks were cancelled while the job went on. Skipped are the
	// positions of such tasks beyond Tasks.
	Cancelled int
	Skipped   messages.Array
	// Ahead is how many of the claims that Running counts wait for a slot, also of those
	// that are to end.
	Ahead int

	// Nodes is how many nodes gather slots for a task of the stage; none of these tasks is claimed.
	Nodes int

	gone int // tasks of Again that were cancelled: at most half of them
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

// Task is the latest attempt of a task: 48 bytes, as there may be millions.
type Task struct {
	Attempt uint32
	Tries   uint8 // attempts that failed by the task's own doing
	Phase   Phase
	Ender   Ender  // whether the task is complete for prices, and by whom
	Node    uint32 // position in Book.Nodes
	Exit    int32
	Claimed messages.Time // since when it has its slot; 0: it waits for one
	Ended   messages.Time
	// Once the attempt has ended:
	CPU    uint32             // in hundredths of a second
	Memory uint32             // peak, in kibibytes
	Paused uint32             // in hundredths of a second
	Reason messages.EndReason // why it came to nothing
}

// Active says whether tasks of the job may be claimed.
func (j *Job) Active() bool { return j.State <= messages.Running }

// Claimable is the number of tasks of stage i that could be claimed now.
func (j *Job) Claimable(i int) int {
	s := &j.Stages[i]
	if !j.Active() || s.Unmet > 0 || j.Blocked > 0 || s.Broken || j.Parked != nil {
		return 0
	}
	n := s.Total - len(s.Tasks) - int(s.Skipped.Count()) + len(s.Again) - s.gone - s.Nodes
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

// over says whether no task of the stage is to run any more.
func (s *Stage) over() bool { return s.Done+s.Failed+s.Cancelled == s.Total }

// short says whether a task of the stage never ends well.
func (s *Stage) short() bool { return s.Failed+s.Cancelled > 0 }

// Failures is how many tasks of the job failed for good before it ended.
func (j *Job) Failures() (n int) {
	for i := range j.Stages {
		n += j.Stages[i].Failed
	}
	return n
}

// CancelledTasks is how many tasks of the job were cancelled while the job went on.
func (j *Job) CancelledTasks() (n int) {
	for i := range j.Stages {
		n += j.Stages[i].Cancelled
	}
	return n
}

// live says whether a task of the job can still run: a stage is not over, and does not
// wait, itself or by others, for a stage with failed tasks.
func (j *Job) live() bool {
	lost := map[messages.Name]bool{} // stages that never end well
	for range j.Stages {             // each round finds those that wait for the round before
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

// Began returns the number of tasks of the job that have had a slot, without tasks that
// run again because the site broke their attempts. A task that its user had begin anew has
// had its slot: else a job that is requeued and then cancelled would owe nothing.
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

// Cost is what a job has paid, less what other jobs and the site paid it.
func (j *Job) Cost() messages.Credits { return j.Charged + j.Paid - j.Gained }

// Left is the rest of a job's budget: the rest of its hold without the deposit.
func (j *Job) Left() messages.Credits { return j.Held - j.Deposit.Amount - j.Paid }

// OnSlots is the number of a stage's claims that have a slot and keep it.
func (s *Stage) OnSlots() int { return s.Running - s.Suspended - s.Leaving - s.Ahead }

// SlotsOf is how many slots of a class the claims of a job have, and keep.
func (j *Job) SlotsOf(class messages.Name) int {
	n := 0
	for i := range j.Stages {
		if s := &j.Stages[i]; j.Spec.Stages[i].Class == class {
			n += s.OnSlots() * j.Spec.Stages[i].Slots()
		}
	}
	return n
}

// jobs are the jobs that nodes of this site run.
type jobs struct {
	byID    table
	past    map[messages.JobID]*Past // that have ended, and whose records are in the archive
	ended   []messages.JobID         // those that are remembered, in the order in which they ended
	handed  int                      // how many of the first of them were handed to the archive, if they are of this site
	ordered map[messages.JobID]bool  // those whose start was ordered for good, and that have not ended
	alive   map[messages.Name]int    // by market: those that are not final
	behind  unread                   // of meters: what jobs may not be metered for
}

// newJob is the job of a submission.
func newJob(c *Submit, id messages.JobID, now messages.Time) *Job {
	j := &Job{
		ID: id, Account: c.Account, Key: c.Key, Digest: c.Digest, Payer: c.Payer, Spec: c.Spec,
		Assumed: c.Assumed, Hold: c.Hold, Held: c.Held, Submitted: now, Stages: make([]Stage, len(c.Spec.Stages)),
		Contract: c.Contract, Visit: c.Visit, Deposit: Deposit{Amount: c.Deposit},
	}
	if c.Spec.Hold {
		j.Parked = &Parked{By: c.Account}
	}
	for i := range c.Spec.Stages {
		j.Stages[i] = Stage{Total: c.Spec.Stages[i].TaskCount(), Unmet: len(c.Spec.Stages[i].After)}
	}
	return j
}

// Job returns a job, nil if there is none. It must not be changed.
func (s *jobs) Job(id messages.JobID) *Job { return s.byID.get(id) }

// Packed reports whether a job is kept as bytes: it is Waiting, and [jobs.Job] takes some
// microseconds.
func (s *jobs) Packed(id messages.JobID) bool {
	at := s.byID.look(id)
	return at != nil && at.job == nil
}

// Glance is Job for a reader that looks at one job after another: the job, its texts and what
// it points to are valid until the next glance with the same spare memory.
func (s *jobs) Glance(id messages.JobID, spare *Spare) *Job { return s.byID.glance(id, spare) }

// own returns a job that a command is to change, nil if there is none.
func (s *jobs) own(id messages.JobID) *Job {
	j := s.byID.own(id)
	if j != nil {
		s.behind.catchUp(j)
	}
	return j
}

// Active is the number of jobs that have not ended.
func (s *jobs) Active() int { return s.byID.count + len(s.past) - len(s.ended) }

// Jobs calls yield for each job, in no particular order.
func (s *jobs) Jobs(yield func(*Job) bool) { s.byID.all(true, yield) }

// Ordered calls yield for each job that has not ended and whose start was ordered
// for good, in no particular order.
func (s *jobs) Ordered(yield func(*Job) bool) {
	for id := range s.ordered {
		if !yield(s.Job(id)) {
			return
		}
	}
}

// Live is the number of jobs of a market that are not final.
func (s *jobs) Live(market messages.Name) int { return s.alive[market] }

// live adds to the number of jobs of a market that are not final.
func (s *jobs) live(market messages.Name, change int) {
	if s.alive[market] += change; s.alive[market] == 0 {
		delete(s.alive, market)
	}
}

// PastShares are the shares that the job was settled on; nil before.
func (j *Job) PastShares() []messages.ClassShare {
	var out []messages.ClassShare
	for _, s := range j.Shares {
		out = append(out, messages.ClassShare{Class: s.Class, Allocated: float64(s.Allocated) / 1e6, Received: float64(s.Received) / 1e6, Over: s.Over})
	}
	return out
}

// StageStatuses are the job's stages as its owner sees them.
func (j *Job) StageStatuses() []messages.StageStatus {
	out := make([]messages.StageStatus, len(j.Stages))
	for i := range j.Stages {
		s, spec := &j.Stages[i], &j.Spec.Stages[i]
		out[i] = messages.StageStatus{Name: spec.Name, Class: spec.Class, Tasks: s.Total, Pending: j.Claimable(i) + s.Ahead + s.Nodes, Running: s.Running - s.Ahead,
			Done: s.Done, Retried: s.Retried, Started: s.Started, Ended: s.Ended, SlotTime: s.SlotTime, Suspended: s.Suspended, CPU: s.CPU, MaxRSS: s.MaxRSS,
			Failed: s.Failed, Requeued: s.Requeued, Lost: s.Lost, Cut: s.Cut, Cancelled: s.Cancelled}
	}
	return out
}
