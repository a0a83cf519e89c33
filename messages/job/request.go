package job

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/candor-grid/candor/messages"
)

// State is the state of a job, from submission to the end.
type State uint8

// These are the states of a job. Completed and the states after it are final.
const (
	Waiting   State = iota // no task has been claimed yet
	Running                // a task has been claimed
	Settling               // all tasks have ended; the charge is being decided and paid
	Completed              // every task finished with exit code 0
	Failed                 // a task failed in all its attempts, and no other task will run
	Cancelled              // the user or an operator cancelled the job
	Discarded              // the market will not run the job
)

var stateNames = []string{"Waiting", "Running", "Settling", "Completed", "Failed", "Cancelled", "Discarded"}

// String returns the state's name.
func (s State) String() string { return messages.NameOf(stateNames, s, "Unknown") }

// Final reports whether the job has ended and been settled.
func (s State) Final() bool { return s >= Completed }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(b []byte) error { return messages.ReadName(s, "state", stateNames, b) }

// SubmitRequest submits a job. The client chooses one Key for each job. If the same Key comes again with the same spec,
// the answer is the same. If it comes with another spec, the answer is a Conflict.
type SubmitRequest struct {
	Key    string  `json:"key"`
	Spec   JobSpec `json:"spec"`
	DryRun bool    `json:"dry_run,omitempty"` // check everything, but change nothing
	// Site is the site that must run the job; the default is the receiving site. With [clearing.AnySite], the receiving
	// site's auctioneer chooses.
	Site messages.Name `json:"site,omitempty"`
	// Jobs are sent instead of Key and Spec, at most MaxSubmitted in one request. Each is accepted or refused
	// separately.
	Jobs []NewJob `json:"jobs,omitempty"`
}

// MaxSubmitted is the largest number of jobs in one request.
const MaxSubmitted = 1000

// NewJob is one of several jobs in a SubmitRequest.
type NewJob struct {
	Key  string  `json:"key"`
	Spec JobSpec `json:"spec"`
}

// Several checks a request with several jobs, but not the jobs themselves.
func (r *SubmitRequest) Several() error {
	switch {
	case len(r.Jobs) > MaxSubmitted:
		return messages.Errorf(messages.TooLarge, "jobs: %d is above the limit of %d for one request; send several requests", len(r.Jobs), MaxSubmitted)
	case r.Key != "" || len(r.Spec.Stages) > 0:
		return messages.Errorf(messages.Invalid, "jobs: cannot go together with the fields key and spec; give each job its own key and spec")
	case r.Site != "":
		return messages.Errorf(messages.Invalid, "jobs: several jobs of one request run at this site; leave site out, or submit the jobs for another site one by one")
	}
	keys := make(map[string]bool, len(r.Jobs))
	for i := range r.Jobs {
		key := r.Jobs[i].Key
		if keys[key] {
			return messages.Errorf(messages.Invalid, "jobs[%d].key: %.64q is the key of an earlier job of the request; give each job its own key", i, key)
		}
		keys[key] = true
	}
	return nil
}

// SubmitOutcome is the result of one of several submissions.
type SubmitOutcome struct {
	Job      messages.JobID   `json:"job"` // 0 for a dry run
	Market   messages.Name    `json:"market"`
	Payer    messages.Name    `json:"payer"`
	Held     messages.Credits `json:"held"`
	Tasks    int              `json:"tasks"`
	Warnings []string         `json:"warnings,omitempty"`
	Error    *messages.Error  `json:"error,omitempty"` // why the job was refused
}

// NoBudget begins the warning that says which budget the site chose.
const NoBudget = "the job names no budget"

// SubmitReply has the job's number and the credits that were set aside for it.
type SubmitReply struct {
	Job    messages.JobID   `json:"job"` // the job's number; 0 for a dry run
	Market messages.Name    `json:"market"`
	Payer  messages.Name    `json:"payer"`
	Held   messages.Credits `json:"held"`
	Tasks  int              `json:"tasks"`
	Site   messages.Name    `json:"site,omitempty"`   // the site that runs the job, if it is another site
	Chosen string           `json:"chosen,omitempty"` // why the auctioneer chose that site, if it did
	// Warnings name parts of the job that the site cannot enforce.
	Warnings []string `json:"warnings,omitempty"`
	// Buys says how long the budget pays for the job's slots. It is set only in the answer to a dry run.
	Buys string `json:"buys,omitempty"`
	// Jobs has one outcome for each job of the request, in the same order.
	Jobs []SubmitOutcome `json:"jobs,omitempty"`
}

// JobRequest names a job, for the queries "job" and "why".
type JobRequest struct {
	Job messages.JobID `json:"job"`
	// Wait is for the query "job": the answer waits until the job has ended, but not longer than Wait. Wait can be at
	// most MostWait; 0 means no wait. A site with too many waiting requests answers at once.
	Wait messages.Duration `json:"wait,omitempty"`
}

// MostWait is the longest time that a query waits for the end of a job.
const MostWait = messages.Duration(5_000_000_000)

// Waits returns how long the site may wait for the end of the job before it answers: the time Wait, but at most
// MostWait.
func (r JobRequest) Waits() messages.Duration { return min(r.Wait, MostWait) }

// MaxCancelled is the largest number of jobs that one request may cancel.
const MaxCancelled = 1000

// CancelRequest cancels a job, or several.
type CancelRequest struct {
	Job  messages.JobID   `json:"job,omitempty"`
	Jobs []messages.JobID `json:"jobs,omitempty"` // instead of Job, at most MaxCancelled
	// Tasks are positions in a stage of Job. Only these tasks are cancelled, and the job goes on. Stage is the position
	// of the stage; the default is the only stage.
	Tasks Array `json:"tasks,omitempty"`
	Stage *int  `json:"stage,omitempty"`
}

// Validate checks the fields of a request.
func (r *CancelRequest) Validate() error {
	switch {
	case len(r.Jobs) > MaxCancelled:
		return messages.Errorf(messages.TooLarge, "jobs: %d is above the limit of %d for one request; send several requests", len(r.Jobs), MaxCancelled)
	case r.Job != 0 && r.Jobs != nil:
		return messages.Errorf(messages.Invalid, "jobs: cannot go together with the field job; give one of the two")
	case r.Job == 0 && r.Tasks != nil:
		return messages.Errorf(messages.Invalid, "tasks: needs the field job; name the job of the tasks")
	case r.Stage != nil && r.Tasks == nil:
		return messages.Errorf(messages.Invalid, "stage: needs the field tasks; name the tasks of the stage")
	}
	return r.Tasks.validate("tasks")
}

// CancelReply has the state that the job had at the moment of the cancellation. If the job had ended before, the
// request gets the error Ended instead of this reply. If the request names several jobs, Jobs has one entry for each,
// in order, and the other fields are empty.
type CancelReply struct {
	Job   messages.JobID  `json:"job"`
	State State           `json:"state"`
	Away  *Away           `json:"away,omitempty"` // for a job at another site
	Jobs  []CancelOutcome `json:"jobs,omitempty"`
	Tasks int             `json:"tasks,omitempty"` // number of cancelled tasks, if the request names tasks
}

// CancelOutcome is the result for one of several jobs to cancel.
type CancelOutcome struct {
	Job   messages.JobID  `json:"job"`
	State State           `json:"state"` // the job's state before the request
	Away  *Away           `json:"away,omitempty"`
	Error *messages.Error `json:"error,omitempty"` // why the job was not cancelled
}

// JobsRequest lists jobs, by default the newest first. A caller sees its own jobs; an operator may set All or name an
// Account.
type JobsRequest struct {
	All     bool          `json:"all,omitempty"`
	Account messages.Name `json:"account,omitempty"`
	Active  bool          `json:"active,omitempty"` // only jobs that have not ended
	// Before lists only jobs whose numbers are below this number. The list begins with the largest number.
	Before messages.JobID `json:"before,omitempty"`
	Limit  int            `json:"limit,omitempty"` // default 100, at most 1000

	// The fields below are conditions. A job is listed if it meets every condition that is set.

	States  []string      `json:"states,omitempty"`  // the job is in one of these states
	Name    string        `json:"name,omitempty"`    // pattern for the name: * stands for any text, ? for any character
	Market  messages.Name `json:"market,omitempty"`  // the market of the job
	Project messages.Name `json:"project,omitempty"` // the account that pays
	Labels  []string      `json:"labels,omitempty"`  // all of these: "run=7", or "run" for any value
	// Since and Until select jobs by time. A listed job had not ended before the time Since, and was submitted before
	// the time Until.
	Since messages.Time `json:"since,omitempty"`
	Until messages.Time `json:"until,omitempty"`
	// Sort is one of the names in JobSortings. With "-" before the name, the largest comes first. The default is
	// "-job".
	Sort string `json:"sort,omitempty"`
	// After is the field Next of an earlier reply. The list continues after that reply.
	After string `json:"after,omitempty"`
	// Jobs are the numbers of the jobs to list, at most MaxListed; empty means all jobs.
	Jobs []messages.JobID `json:"jobs,omitempty"`
}

// MaxListed is the largest number of jobs that one request may name.
const MaxListed = 1000

// JobSortings lists the columns that a list of jobs can be sorted by.
var JobSortings = []string{"job", "name", "account", "market", "state", "budget", "charged", "tasks", "submitted", "started", "ended"}

// JobsReply lists jobs, newest first or in the requested order.
type JobsReply struct {
	Jobs []JobSummary `json:"jobs"`
	More bool         `json:"more"`           // there are more jobs after these
	Next string       `json:"next,omitempty"` // value of After for the next page
	// The site can list every job that ended after the time Complete. 0 means that the site can list all jobs.
	Complete messages.Time `json:"complete_since,omitempty"`
	// Unreadable is the number of damaged records that the site found while it made this answer. They are left out.
	Unreadable int `json:"unreadable,omitempty"`
}

// ArchiveRequest asks for a part of the archive of ended jobs.
type ArchiveRequest struct {
	Segment uint64 `json:"segment"` // number of the file, or of the next one that exists
	Offset  int64  `json:"offset"`  // position in the file, in bytes
}

// ArchiveReply has as many bytes of a file of the archive as fit into a reply.
type ArchiveReply struct {
	Segment  uint64        `json:"segment"`
	Size     int64         `json:"size"` // bytes of the whole file; 0 if there is no such file
	Data     []byte        `json:"data"`
	Complete messages.Time `json:"complete_since"` // as in JobsReply
}

// Exit is the exit code of a job. In JSON, NoExit is null: the job has not ended, or had no process.
type Exit int

// NoExit says that there is no exit code.
const NoExit Exit = -1

// MarshalJSON writes the exit code as a number, or null if there is none.
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

// JobSummary describes a job in one line.
type JobSummary struct {
	Job       messages.JobID   `json:"job"`
	Name      string           `json:"name"`
	Account   messages.Name    `json:"account"`
	Payer     messages.Name    `json:"payer"`
	Market    messages.Name    `json:"market"`
	State     State            `json:"state"`
	Reason    string           `json:"reason"` // a stable CamelCase word, as in Why
	Budget    messages.Credits `json:"budget"`
	Charged   messages.Credits `json:"charged"`
	Tasks     int              `json:"tasks"`
	Running   int              `json:"running"`
	Done      int              `json:"done"`
	Submitted messages.Time    `json:"submitted"`
	Started   messages.Time    `json:"started"`
	Ended     messages.Time    `json:"ended"`
	ExitCode  Exit             `json:"exit_code"`       // exit code of the first task that failed in all attempts; NoExit means none
	Away      *Away            `json:"away,omitempty"`  // set if another site runs it
	Visit     *Visit           `json:"visit,omitempty"` // set if it runs here for another site
	// Suspended is how many of the Running tasks are suspended and have no slot.
	Suspended int `json:"suspended,omitempty"`
	// Failed is how many tasks failed in all their attempts before the job ended.
	Failed int    `json:"failed,omitempty"`
	Labels Labels `json:"labels,omitempty"`
	// Used lists what the job used of each class of slots. It is set when the job has ended.
	Used []ClassUse `json:"used,omitempty"`
	// Message says why the job ended, if it did not end well.
	Message string `json:"message,omitempty"`
	Hold    string `json:"hold,omitempty"` // identifier of the job's hold at the bank
	// Array has the indices of the tasks, if the job is an array job with one stage.
	Array Array `json:"array,omitempty"`
	// Nodes is the number of nodes of an allocation. 0 means that each task runs on one node. CPUs is the number of
	// processors that the job asks for: for an allocation, on all its nodes together, and otherwise for one task of the
	// first stage. 0 means that it asks for none.
	Nodes int `json:"nodes,omitempty"`
	CPUs  int `json:"cpus,omitempty"`
	// Numbered is true if each element of the array has a separate job number: the job's number plus the element's
	// position.
	Numbered bool `json:"numbered,omitempty"`
}

// ClassUse is what a job used of a class: the hours of its slots, and of the processors, GPUs and GiB of memory in them
// (0 if slots of the class have no resources). Attempts that the site ended do not count.
type ClassUse struct {
	Class     messages.Name `json:"class"`
	SlotHours float64       `json:"slot_hours"`
	CPUHours  float64       `json:"cpu_hours,omitempty"`
	GPUHours  float64       `json:"gpu_hours,omitempty"`
	// MemoryHours is the memory of the tasks in GiB, multiplied by the hours that they ran. Jobs that ended before the
	// site had level 2 have no such number.
	MemoryHours float64 `json:"memory_gib_hours,omitempty" since:"2"`
}

// JobDetail is everything that a user may want to know about a job.
type JobDetail struct {
	JobSummary
	Spec   JobSpec       `json:"spec"`
	Stages []StageStatus `json:"stages"`
	Shares []ClassShare  `json:"shares"`
	// Notices are the notifications about the job.
	Notices []NoticeStatus `json:"notices,omitempty"`
	// Kept is true if the site does not show the outputs and logs until the job is settled.
	Kept bool `json:"kept,omitempty"`
}

// KeptReply says whether the outputs and logs of a job are hidden until the job is settled.
type KeptReply struct {
	Kept bool `json:"kept,omitempty"`
}

// ErrKept is the error for a request that reads outputs or logs of a job before the job is settled. The argument
// `deadline` is the job's deadline, which is the latest time of its settlement, or 0 if it is unknown.
func ErrKept(job messages.JobID, deadline messages.Time) error {
	by := "its deadline"
	if deadline != 0 {
		by += fmt.Sprintf(", %v,", deadline)
	}
	return messages.Errorf(messages.PermissionDenied, "job %v: its outputs and logs can be read after the market has settled the job: at %s at the latest, if the job ends in time", job, by)
}

// StageStatus has the numbers of a stage's tasks, by their state.
type StageStatus struct {
	Name     messages.Name     `json:"name"`
	Class    messages.Name     `json:"class"`
	Tasks    int               `json:"tasks"`
	Pending  int               `json:"pending"` // ready to be claimed; 0 while an earlier stage has not finished
	Running  int               `json:"running"`
	Done     int               `json:"done"`
	Retried  int               `json:"retried"`
	Started  messages.Time     `json:"started"`
	Ended    messages.Time     `json:"ended"`
	SlotTime messages.Duration `json:"slot_time"` // slot time of accepted attempts, without the time of suspension
	// Suspended is how many of the Running tasks are suspended and have no slot.
	Suspended int `json:"suspended,omitempty"`
	// CPU is the processor time of accepted attempts. MaxRSS is the largest memory of one of their processes, in bytes.
	CPU    messages.Duration `json:"cpu,omitempty"`
	MaxRSS int64             `json:"max_rss,omitempty"`
	// Failed is how many tasks failed in all their attempts before the job ended. Requeued counts attempts that the
	// command `candor requeue` ended. These attempts are also counted in Retried.
	Failed   int `json:"failed,omitempty"`
	Requeued int `json:"requeued,omitempty"`
	// Some ended attempts have lost a part of their output. Lost is the number of bytes that they have lost. Cut is the
	// number of these attempts.
	Lost int64 `json:"lost,omitempty"`
	Cut  int   `json:"cut,omitempty"`
	// Cancelled is how many tasks were cancelled while the job went on.
	Cancelled int `json:"cancelled,omitempty"`
}

// ClassShare compares, for one class, the share that the mechanism gave to a job with the share of slots that it
// received. Both are averages over the time in which the job had pending tasks in the class.
type ClassShare struct {
	Class     messages.Name     `json:"class"`
	Now       float64           `json:"now"` // present share; if no task waits, the part of the slots that the job has now
	Allocated float64           `json:"allocated"`
	Received  float64           `json:"received"`
	Over      messages.Duration `json:"over"` // the time of the average
}

// TasksRequest lists the tasks of a job that were claimed at least once.
type TasksRequest struct {
	Job   messages.JobID `json:"job"`
	Stage *int           `json:"stage,omitempty"` // only tasks of this stage
	From  uint32         `json:"from,omitempty"`  // first task index
	Limit int            `json:"limit,omitempty"` // default 100, at most 1000
	// Until is the index of the first task after the list; 0 means that the list has no end. States and Node limit the
	// list to some attempts; if they are empty, all attempts are listed.
	Until  uint32        `json:"until,omitempty"`
	States []string      `json:"states,omitempty"`
	Node   messages.Name `json:"node,omitempty"`
	// Attempts also asks for earlier attempts, as far as the site keeps them.
	Attempts bool `json:"attempts,omitempty"`
}

// TasksReply lists tasks in the order of stage and index.
type TasksReply struct {
	Account messages.Name `json:"account"`
	Tasks   []TaskStatus  `json:"tasks"`
	// More is true if the reply does not have all tasks. If the request names one stage, the next task is at index
	// Next.
	More bool   `json:"more"`
	Next uint32 `json:"next,omitempty"`
	// Unstarted is the number of tasks in the requested stages that no node has claimed yet.
	Unstarted int `json:"unstarted,omitempty"`
	// Omitted is the number of earlier attempts that the site does not keep.
	Omitted int `json:"omitted,omitempty"`
}

// TaskStatus describes an attempt of a task, usually the latest one.
type TaskStatus struct {
	Task    messages.TaskRef `json:"task"`
	Attempt uint32           `json:"attempt"`
	Node    messages.Name    `json:"node"`
	State   string           `json:"state"` // one of TaskStates
	// ExitCode is null if the attempt still runs, never had a process, or if its end was not reported.
	ExitCode *int          `json:"exit_code"`
	Claimed  messages.Time `json:"claimed"`
	Ended    messages.Time `json:"ended"`
	// Stage is the name of the task's stage, Index the task's index, and Array its index in the stage's array.
	Stage messages.Name `json:"stage"`
	Index uint32        `json:"index"`
	Array int64         `json:"array"`
	// Reason is a stable CamelCase word that says why the attempt did not end well. Message says the same in a
	// sentence.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Ran is how long the task had its slot. Suspended is the part of Ran in which the task was suspended.
	Ran       messages.Duration `json:"ran"`
	Suspended messages.Duration `json:"suspended"`
	CPU       messages.Duration `json:"cpu"`     // processor time; only for an attempt that has ended
	MaxRSS    int64             `json:"max_rss"` // bytes; only for an attempt that has ended
}

// TaskStates are the states of an attempt.
var TaskStates = []string{
	"Running",
	"Suspended", // is suspended and has no slot
	"Gathering", // waits for the other tasks of the gang
	"Done",
	"Failed",
	"Stopped", // ended, but not by a fault of its own
	"Pending", // the attempt failed, and the task will be tried again
	"Cancelled",
}
