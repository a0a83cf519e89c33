package messages

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// State is the stage of a job's life.
type State uint8

// The states of a job. Completed and those after it are final.
const (
	Waiting   State = iota // no task has been claimed yet
	Running                // some task has been claimed
	Settling               // all tasks have ended; the charge is being decided and paid
	Completed              // every task finished with exit code 0
	Failed                 // a task failed in all its attempts, and no other task will run
	Cancelled              // the user or an operator cancelled it
	Discarded              // its market will not run it
)

var stateNames = []string{"Waiting", "Running", "Settling", "Completed", "Failed", "Cancelled", "Discarded"}

// String returns the state's name.
func (s State) String() string { return nameOf(stateNames, s, "Unknown") }

// Final reports whether the job has ended and been settled.
func (s State) Final() bool { return s >= Completed }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(b []byte) error { return readName(s, "state", stateNames, b) }

// SubmitRequest submits a job. The client chooses one Key for each job. Repeating a key with the
// same spec returns the same answer, however often it is sent. The same key with another spec is a
// Conflict.
type SubmitRequest struct {
	Key    string  `json:"key"`
	Spec   JobSpec `json:"spec"`
	DryRun bool    `json:"dry_run,omitempty"` // check everything, change nothing
	// Site is the site that must run the job; default: the site that receives the request. With
	// [AnySite] that site's auctioneer chooses.
	Site Name `json:"site,omitempty"`
	// Jobs are submitted instead of Key and Spec; there may be at most MaxSubmitted. Each is
	// accepted or refused by itself, as if it came in its own request.
	Jobs []NewJob `json:"jobs,omitempty"`
}

// MaxSubmitted is how many jobs one request may submit.
const MaxSubmitted = 1000

// NewJob is one of several jobs of a SubmitRequest.
type NewJob struct {
	Key  string  `json:"key"`
	Spec JobSpec `json:"spec"`
}

// Several checks a request with several jobs, but not the jobs themselves.
func (r *SubmitRequest) Several() error {
	switch {
	case len(r.Jobs) > MaxSubmitted:
		return Errorf(TooLarge, "jobs: %d are more than the %d that one request may submit; send several requests", len(r.Jobs), MaxSubmitted)
	case r.Key != "" || len(r.Spec.Stages) > 0:
		return Errorf(Invalid, "jobs: cannot go together with key and spec; give each job its own key and spec")
	case r.Site != "":
		return Errorf(Invalid, "jobs: run at this site; submit jobs for another site one by one")
	}
	keys := make(map[string]bool, len(r.Jobs))
	for i := range r.Jobs {
		key := r.Jobs[i].Key
		if keys[key] {
			return Errorf(Invalid, "jobs[%d].key: %.64q is the key of an earlier job of the request; give each job its own key", i, key)
		}
		keys[key] = true
	}
	return nil
}

// SubmitOutcome is the result of one of several submissions.
type SubmitOutcome struct {
	Job      JobID    `json:"job"` // 0 for a dry run
	Market   Name     `json:"market"`
	Payer    Name     `json:"payer"`
	Held     Credits  `json:"held"`
	Tasks    int      `json:"tasks"`
	Warnings []string `json:"warnings,omitempty"`
	Error    *Error   `json:"error,omitempty"` // why the job was not taken
}

// SubmitReply has the job's number and the credits that were set aside for it.
type SubmitReply struct {
	Job    JobID   `json:"job"` // 0 for a dry run
	Market Name    `json:"market"`
	Payer  Name    `json:"payer"`
	Held   Credits `json:"held"`
	Tasks  int     `json:"tasks"`
	Site   Name    `json:"site,omitempty"`   // the site that runs it, if that is another one
	Chosen string  `json:"chosen,omitempty"` // why that site, if the auctioneer chose it
	// Warnings name parts of the job that the site does not enforce.
	Warnings []string `json:"warnings,omitempty"`
	// Buys says, of a dry run, how long the job's slots run on its budget.
	Buys string `json:"buys,omitempty"`
	// Jobs has one outcome for each job of the request, in the same order.
	Jobs []SubmitOutcome `json:"jobs,omitempty"`
}

// JobRequest names a job, in the queries job and why.
type JobRequest struct {
	Job JobID `json:"job"`
	// Wait delays the answer to the query job until the job has ended, or for at most this time, up
	// to MostWait; 0: no wait. A site with too many waiting requests answers at once.
	Wait Duration `json:"wait,omitempty"`
}

// MostWait is how long a query waits at most for the end of a job.
const MostWait = Duration(5_000_000_000)

// Waits returns how long the answer may take.
func (r JobRequest) Waits() Duration { return min(r.Wait, MostWait) }

// MaxCancelled is how many jobs one request may cancel.
const MaxCancelled = 1000

// CancelRequest cancels a job, or several.
type CancelRequest struct {
	Job  JobID   `json:"job,omitempty"`
	Jobs []JobID `json:"jobs,omitempty"` // instead of Job, at most MaxCancelled
	// Tasks are positions in a stage of Job: only these tasks are cancelled, and the job
	// goes on. Stage is the position of the stage; default: the only stage.
	Tasks Array `json:"tasks,omitempty"`
	Stage *int  `json:"stage,omitempty"`
}

// Validate checks a request without looking at any state.
func (r *CancelRequest) Validate() error {
	switch {
	case len(r.Jobs) > MaxCancelled:
		return Errorf(TooLarge, "jobs: %d are more than the %d that one request may cancel; send several requests", len(r.Jobs), MaxCancelled)
	case r.Job != 0 && r.Jobs != nil:
		return Errorf(Invalid, "jobs: cannot go together with job; give one of the two")
	case r.Job == 0 && r.Tasks != nil:
		return Errorf(Invalid, "tasks: needs job; name the job of the tasks")
	case r.Stage != nil && r.Tasks == nil:
		return Errorf(Invalid, "stage: needs tasks; name the tasks of the stage")
	}
	return r.Tasks.validate("tasks")
}

// CancelReply has the job's state when the cancellation was committed. Cancelling a job that has
// ended gives the error Ended. If several jobs were to be cancelled, Jobs has each in the order of
// the request, and the rest is empty.
type CancelReply struct {
	Job   JobID           `json:"job"`
	State State           `json:"state"`
	Away  *Away           `json:"away,omitempty"` // for a job at another site
	Jobs  []CancelOutcome `json:"jobs,omitempty"`
	Tasks int             `json:"tasks,omitempty"` // number of cancelled tasks, if the request names tasks
}

// CancelOutcome is the result of cancelling one of several jobs.
type CancelOutcome struct {
	Job   JobID  `json:"job"`
	State State  `json:"state"` // state before the request
	Away  *Away  `json:"away,omitempty"`
	Error *Error `json:"error,omitempty"` // why the job was not cancelled
}

// JobsRequest lists jobs, newest first by default. The caller sees its own; an operator
// may set All or name an Account.
type JobsRequest struct {
	All     bool `json:"all,omitempty"`
	Account Name `json:"account,omitempty"`
	Active  bool `json:"active,omitempty"` // only jobs that have not ended
	// Before asks for smaller numbers only, the largest first.
	Before JobID `json:"before,omitempty"`
	Limit  int   `json:"limit,omitempty"` // default 100, at most 1000

	// A job is listed if it matches all of the following fields that are set.

	States  []string `json:"states,omitempty"`  // in one of these states
	Name    string   `json:"name,omitempty"`    // pattern: * stands for any text, ? for any character
	Market  Name     `json:"market,omitempty"`  // the market in which it bids
	Project Name     `json:"project,omitempty"` // the account that pays
	Labels  []string `json:"labels,omitempty"`  // all of these: "run=7", or "run" for any value
	// Since and Until bound a time in which the job waited, ran or ended: it had not
	// ended before Since, and was submitted before Until.
	Since Time `json:"since,omitempty"`
	Until Time `json:"until,omitempty"`
	// Sort is one of JobSortings, "-" before it for the largest first; default: -job.
	Sort string `json:"sort,omitempty"`
	// After continues after an earlier answer: it is that answer's Next.
	After string `json:"after,omitempty"`
	// Jobs are the numbers of the jobs to list, at most MaxListed; none: all numbers.
	Jobs []JobID `json:"jobs,omitempty"`
}

// MaxListed is how many jobs one request may ask for by their numbers.
const MaxListed = 1000

// JobSortings lists the columns by which jobs can be sorted.
var JobSortings = []string{"job", "name", "account", "market", "state", "budget", "charged", "tasks", "submitted", "started", "ended"}

// JobsReply lists jobs, newest first or in the requested order.
type JobsReply struct {
	Jobs []JobSummary `json:"jobs"`
	More bool         `json:"more"`           // there are more jobs after these
	Next string       `json:"next,omitempty"` // value of After for the next page
	// Complete is a time since which no job has ended that the site does not list; 0: there
	// never was such a job.
	Complete Time `json:"complete_since,omitempty"`
	// Unreadable is how many records were found damaged just now, and are left out.
	Unreadable int `json:"unreadable,omitempty"`
}

// ArchiveRequest asks for a part of the archive of ended jobs.
type ArchiveRequest struct {
	Segment uint64 `json:"segment"` // the first file with this number or a higher one
	Offset  int64  `json:"offset"`  // position in bytes
}

// ArchiveReply has as much of a file of the archive as fits into a reply.
type ArchiveReply struct {
	Segment  uint64 `json:"segment"`
	Size     int64  `json:"size"` // bytes of the whole file; 0: there is no such file
	Data     []byte `json:"data"`
	Complete Time   `json:"complete_since"` // as in JobsReply
}

// Exit is the exit code of a job. JSON has null for NoExit: the job goes on, or its task
// had no process.
type Exit int

// NoExit says that there is no exit code.
const NoExit Exit = -1

// MarshalJSON writes a number, or null.
func (e Exit) MarshalJSON() ([]byte, error) {
	if e < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(e), 10), nil
}

// UnmarshalJSON reads a number, or null.
func (e *Exit) UnmarshalJSON(data []byte) error {
	code := new(int)
	if err := json.Unmarshal(data, &code); err != nil {
		return err
	}
	if *e = NoExit; code != nil {
		*e = Exit(*code)
	}
	return nil
}

// JobSummary is a job in one line.
type JobSummary struct {
	Job       JobID   `json:"job"`
	Name      string  `json:"name"`
	Account   Name    `json:"account"`
	Payer     Name    `json:"payer"`
	Market    Name    `json:"market"`
	State     State   `json:"state"`
	Reason    string  `json:"reason"` // stable CamelCase, as in Why
	Budget    Credits `json:"budget"`
	Charged   Credits `json:"charged"`
	Tasks     int     `json:"tasks"`
	Running   int     `json:"running"`
	Done      int     `json:"done"`
	Submitted Time    `json:"submitted"`
	Started   Time    `json:"started"`
	Ended     Time    `json:"ended"`
	ExitCode  Exit    `json:"exit_code"`       // exit code of the first task that failed in all attempts; NoExit: there is none
	Away      *Away   `json:"away,omitempty"`  // set if another site runs it
	Visit     *Visit  `json:"visit,omitempty"` // set if it runs here for another site
	// Suspended is how many of Running have left their slots until they are resumed.
	Suspended int `json:"suspended,omitempty"`
	// Failed is how many tasks failed in all their attempts before the job ended.
	Failed int    `json:"failed,omitempty"`
	Labels Labels `json:"labels,omitempty"`
	// Used is, of a job that is over, what it had of each class of slots.
	Used []ClassUse `json:"used,omitempty"`
	// Message says what ended the job, if it did not end well.
	Message string `json:"message,omitempty"`
	Hold    string `json:"hold,omitempty"` // the bank's name of the hold that the job has
	// Array has the indices of the tasks, for a job with one stage that is an array.
	Array Array `json:"array,omitempty"`
	// Nodes is how many nodes the job has, if it is an allocation; 0: each task has one. CPUs is the
	// processors that a task of the first stage asks for, or all the nodes of an allocation
	// together; 0: it says none.
	Nodes int `json:"nodes,omitempty"`
	CPUs  int `json:"cpus,omitempty"`
	// Numbered says that the element at each position of the array has the number of the job and the position.
	Numbered bool `json:"numbered,omitempty"`
}

// ClassUse is what a job used of a class: the hours of its slots, and of the processors and GPUs that
// these slots stand for (0 if slots of the class have no resources). Attempts that the site ended do
// not count.
type ClassUse struct {
	Class     Name    `json:"class"`
	SlotHours float64 `json:"slot_hours"`
	CPUHours  float64 `json:"cpu_hours,omitempty"`
	GPUHours  float64 `json:"gpu_hours,omitempty"`
}

// JobDetail is everything a user may want to know of a job.
type JobDetail struct {
	JobSummary
	Spec   JobSpec       `json:"spec"`
	Stages []StageStatus `json:"stages"`
	Shares []ClassShare  `json:"shares"`
	// Notices are the notifications about the job.
	Notices []NoticeStatus `json:"notices,omitempty"`
	// Kept says that the site keeps the outputs and logs until the job is settled.
	Kept bool `json:"kept,omitempty"`
}

// KeptReply reports whether the site keeps the outputs and logs of a job until the job is settled.
type KeptReply struct {
	Kept bool `json:"kept,omitempty"`
}

// ErrKept returns the refusal to show outputs and logs of a job that is not settled. deadline is 0
// if it is not known.
func ErrKept(job JobID, deadline Time) error {
	by := "its deadline"
	if deadline != 0 {
		by += fmt.Sprintf(", %v,", deadline)
	}
	return Errorf(PermissionDenied, "job %v: its market hands over outputs and logs when the job is settled: at %s at the latest if the job has ended by then", job, by)
}

// StageStatus counts a stage's tasks.
type StageStatus struct {
	Name     Name     `json:"name"`
	Class    Name     `json:"class"`
	Tasks    int      `json:"tasks"`
	Pending  int      `json:"pending"` // ready to be claimed; 0 while an earlier stage is unfinished
	Running  int      `json:"running"`
	Done     int      `json:"done"`
	Retried  int      `json:"retried"`
	Started  Time     `json:"started"`
	Ended    Time     `json:"ended"`
	SlotTime Duration `json:"slot_time"` // slot time of accepted attempts, without the time when they were suspended
	// Suspended is how many of Running have left their slots until they are resumed.
	Suspended int `json:"suspended,omitempty"`
	// CPU is the processor time of accepted attempts, and MaxRSS the largest memory of one of their
	// processes, in bytes.
	CPU    Duration `json:"cpu,omitempty"`
	MaxRSS int64    `json:"max_rss,omitempty"`
	// Failed is how many tasks failed in all their attempts before the job ended. Requeued is how
	// many attempts of Retried were ended by `candor requeue`.
	Failed   int `json:"failed,omitempty"`
	Requeued int `json:"requeued,omitempty"`
	// Lost is the number of bytes of output of ended attempts that were not kept, Cut the number of
	// these attempts.
	Lost int64 `json:"lost,omitempty"`
	Cut  int   `json:"cut,omitempty"`
	// Cancelled is how many tasks were cancelled while the job went on.
	Cancelled int `json:"cancelled,omitempty"`
}

// ClassShare compares, for one class, the share that the mechanism allocated
// to a job with the share of the slots it received, both averaged over the
// time in which the job had work pending there.
type ClassShare struct {
	Class     Name     `json:"class"`
	Now       float64  `json:"now"` // present share; if no task waits, the part of the slots that the job has
	Allocated float64  `json:"allocated"`
	Received  float64  `json:"received"`
	Over      Duration `json:"over"` // the time averaged over
}

// TasksRequest lists tasks of a job that have been claimed at least once.
type TasksRequest struct {
	Job   JobID  `json:"job"`
	Stage *int   `json:"stage,omitempty"` // only tasks of this stage
	From  uint32 `json:"from,omitempty"`  // first task index
	Limit int    `json:"limit,omitempty"` // default 100, at most 1000
	// Until is the first task index that is not to be listed; 0: all are. States and
	// Node are of the attempts to list; none: of all.
	Until  uint32   `json:"until,omitempty"`
	States []string `json:"states,omitempty"`
	Node   Name     `json:"node,omitempty"`
	// Attempts asks for earlier attempts too, as far as the site keeps them.
	Attempts bool `json:"attempts,omitempty"`
}

// TasksReply lists tasks in the order of stage and index.
type TasksReply struct {
	Account Name         `json:"account"`
	Tasks   []TaskStatus `json:"tasks"`
	// More says that the list is not whole: of one stage, it goes on from Next.
	More bool   `json:"more"`
	Next uint32 `json:"next,omitempty"`
	// Unstarted is how many tasks of the stages asked about no node has claimed yet.
	Unstarted int `json:"unstarted,omitempty"`
	// Omitted is how many earlier attempts the job had that the site does not keep.
	Omitted int `json:"omitted,omitempty"`
}

// TaskStatus describes an attempt of a task, usually the latest.
type TaskStatus struct {
	Task    TaskRef `json:"task"`
	Attempt uint32  `json:"attempt"`
	Node    Name    `json:"node"`
	State   string  `json:"state"` // one of TaskStates
	// ExitCode is null if the attempt still runs, never had a process, or its end was not reported.
	ExitCode *int `json:"exit_code"`
	Claimed  Time `json:"claimed"`
	Ended    Time `json:"ended"`
	// Stage and Index are the stage and the index of Task. Array is the task's index in the stage's
	// array.
	Stage Name   `json:"stage"`
	Index uint32 `json:"index"`
	Array int64  `json:"array"`
	// Reason says why the attempt did not end well, in a stable CamelCase word; Message
	// says the same in a sentence, with its numbers.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Ran is how long the task had its slot and ran. Suspended is how long it was suspended in that
	// time.
	Ran       Duration `json:"ran"`
	Suspended Duration `json:"suspended"`
	CPU       Duration `json:"cpu"`     // for an attempt that has ended
	MaxRSS    int64    `json:"max_rss"` // bytes, for an attempt that has ended
}

// TaskStates are the states of an attempt.
var TaskStates = []string{
	"Running",
	"Suspended", // has left its slot until it is resumed
	"Gathering", // waits for its gang
	"Done",
	"Failed",
	"Stopped", // ended without a fault of its own
	"Pending", // the attempt failed, and the task will be tried again
	"Cancelled",
}

// WhyReply explains a job: the reason it waits, or why it went as it did.
type WhyReply struct {
	Job     JobID        `json:"job"`
	State   State        `json:"state"`
	Reason  string       `json:"reason"` // stable CamelCase, e.g. WaitingForShare
	Message string       `json:"message"`
	Shares  []ClassShare `json:"shares"`
	Prices  []ClassPrice `json:"prices"`
	Change  []string     `json:"change"` // one sentence for each thing that would change the decision
	Away    *Away        `json:"away,omitempty"`
}

// ClassPrice is the present price of a class.
type ClassPrice struct {
	Class Name `json:"class"`
	// Price of the whole class to all bidders together: the sum of the
	// sub-budgets bid for it, in credits.
	Price   float64 `json:"price,omitempty"`
	Slots   int     `json:"slots"`
	Idle    int     `json:"idle"`
	Pending int     `json:"pending,omitempty"` // slots of tasks that wait
	Bidders int     `json:"bidders"`
	// Sealed means that Price and Pending are hidden, because they would disclose the bids of
	// others.
	Sealed bool `json:"sealed,omitempty"`
}

// Empty is the payload of a request without parameters.
type Empty struct{}

// NodesReply lists the nodes of a site by name.
type NodesReply struct {
	Nodes []NodeStatus `json:"nodes"`
	// Licenses are the licences of the site, by name.
	Licenses []LicenseStatus `json:"licenses,omitempty"`
}

// NodeStatus is a node as the auctioneer sees it.
type NodeStatus struct {
	Node  Name         `json:"node"`
	State string       `json:"state"` // Up, Lost, Stopped, Draining, Quarantined
	Slots []ClassSlots `json:"slots"`
	Used  []ClassSlots `json:"used"`
	// Resources is all that the node has, and Sold the part in the slots of its tasks; nil:
	// unknown.
	Resources *Resources `json:"resources,omitempty"`
	Sold      *Resources `json:"sold,omitempty"`
	Labels    []Name     `json:"labels,omitempty"` // jobs choose nodes by them
	Since     Time       `json:"since"`
	Finished  uint64     `json:"finished"` // attempts that ended there, well or badly
	// DrainBy is when the site ends the remaining tasks of a draining node; 0: they run to their
	// end.
	DrainBy Time `json:"drain_by,omitempty"`
	// Abilities says what the node can do with a task; the names are in ability.go.
	Abilities []Name `json:"abilities,omitempty"`
	// Suspended tasks wait there to go on, of at most MostSuspended.
	Suspended     int `json:"suspended,omitempty"`
	MostSuspended int `json:"most_suspended,omitempty"`
	// Reason says why the node is in quarantine, or why it is not though tasks fail
	// there, or why it drains; ProbeAt is when it is probed next.
	Reason  string `json:"reason,omitempty"`
	ProbeAt Time   `json:"probe_at,omitempty"`
}

// MarketsReply lists the markets of a site in the order of its configuration.
type MarketsReply struct {
	Markets []MarketStatus `json:"markets"`
	Version uint64         `json:"version"` // version of the site's markets; see ApplyRequest
	// Slurm says which names of Slurm have another meaning at this site; nil: none.
	Slurm *SlurmNames `json:"slurm,omitempty"`
}

// MarketStatus describes a market at this moment. An operator sees all of it; a user sees their own
// jobs and what the mechanism discloses about others.
type MarketStatus struct {
	Market Market `json:"market"`
	// Bid lists the fields of a bid that the market reads, as a job file spells them. Raises lists
	// the fields that may be raised later.
	Bid      []string     `json:"bid,omitempty"`
	Raises   []string     `json:"raises,omitempty"`
	Gains    string       `json:"gains"`              // by what an owner can gain more than by the truth, as far as is known
	Reserves bool         `json:"reserves,omitempty"` // it sells reservations and has a timetable of them
	Prices   []ClassPrice `json:"prices"`
	Waiting  int          `json:"waiting"` // jobs
	Running  int          `json:"running"`
	Term     uint64       `json:"term"`
	Seq      uint64       `json:"seq"`
	Top      []JobShare   `json:"top"` // at most 20, the largest budget first if budgets are disclosed
	// Next are the jobs that would get the next free slot of each class, at most one for each class
	// with waiting tasks. If prices are by time, Tariffs has the prices of slot-seconds.
	Next    []NextJob    `json:"next,omitempty"`
	Tariffs []SlotTariff `json:"tariffs,omitempty"`
	// Promises is set for markets of contracts.
	Promises *Promises `json:"promises,omitempty"`
}

// Promises counts the completion times sold by a market that were kept and broken, since the market
// began. A completion counts as kept if it is late by at most a second, or a hundredth of the
// promised time.
type Promises struct {
	Kept   uint64 `json:"kept"`
	Broken uint64 `json:"broken"`
}

// NextJob is the job that is next in a class.
type NextJob struct {
	Class   Name    `json:"class"`
	Job     JobID   `json:"job"`
	Account Name    `json:"account"`
	Rate    Credits `json:"rate,omitempty"` // bid for a slot-second
}

// SlotTariff is the price of a second on a slot of a class.
type SlotTariff struct {
	Class  Name     `json:"class"`
	Price  Credits  `json:"price,omitempty"`   // price for everybody, unless a field below says otherwise
	OwnBid bool     `json:"own_bid,omitempty"` // each job pays its own bid
	Length Duration `json:"length,omitempty"`  // the price is for a job of this length; others pay in proportion
	// Contention is, of proportional, the part of a slot-second that is contended, in
	// [0, 1]; there is no price then.
	Contention *float64 `json:"contention,omitempty"`
	// Sealed: the price is not told, as it is made of the bids of one other account.
	Sealed bool `json:"sealed,omitempty"`
}

// JobShare is a job's share of each class of its market. The name and the budget are
// told to its owner and to operators.
type JobShare struct {
	Job     JobID        `json:"job"`
	Name    string       `json:"name,omitempty"`
	Account Name         `json:"account"`
	Budget  Credits      `json:"budget,omitempty"`
	Shares  []ClassShare `json:"shares"`
	Pending int          `json:"pending"`
	Running int          `json:"running"` // tasks on slots
	// Suspended tasks have left their slots until they are resumed.
	Suspended int `json:"suspended,omitempty"`
}

// StatusReply is how a replica of an actor sees its group.
type StatusReply struct {
	Actor    string   `json:"actor"`
	Site     Name     `json:"site"`
	Replica  string   `json:"replica"`
	Leader   string   `json:"leader"`
	Term     uint64   `json:"term"`
	Applied  uint64   `json:"applied"`
	Replicas []string `json:"replicas"`
}
