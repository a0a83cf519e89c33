package job

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// With these verbs, an owner or an operator changes a job that has not ended. They are commands of the auctioneer's
// leader.
const (
	VerbHold    = "hold"    // JobRequest → HoldReply
	VerbRelease = "release" // JobRequest → HoldReply
	VerbRequeue = "requeue" // RequeueRequest → RequeueReply
)

// HoldReply is the job's state after it was put on hold or released.
type HoldReply struct {
	Job     messages.JobID `json:"job"`
	State   State          `json:"state"`
	Hold    bool           `json:"hold"`    // the job is on hold now
	Changed bool           `json:"changed"` // false means that the job was in this state already
	Running int            `json:"running"` // number of tasks that go on running
}

// RequeueRequest ends running tasks of a job. Their next attempts run them again.
type RequeueRequest struct {
	Job   messages.JobID `json:"job"`
	Stage *int           `json:"stage,omitempty"` // position of the stage; the default is 0 if Task is set, otherwise all stages
	Task  *uint32        `json:"task,omitempty"`  // position in the stage; the default is all running tasks
}

// RequeueReply has the number of tasks that were ended to run again.
type RequeueReply struct {
	Job   messages.JobID `json:"job"`
	Tasks int            `json:"tasks"`
}

// VerbChange changes the description of a job that has not ended.
const VerbChange = "change" // ChangeRequest → ChangeReply

// ChangeRequest has the new values. Fields that are left out do not change. Repeating the last change with its key has
// no effect.
type ChangeRequest struct {
	Key  string         `json:"key"`
	Job  messages.JobID `json:"job"`
	Name string         `json:"name,omitempty"`
	// Budget and Rate can be raised, if the market's mechanism allows it.
	Budget messages.Credits `json:"budget,omitempty"`
	Rate   messages.Credits `json:"rate,omitempty"`
	// Stage is the position of the stage to change; the default is the only stage.
	Stage      *int              `json:"stage,omitempty"`
	TimeLimit  messages.Duration `json:"time_limit,omitempty"`
	MaxRunning *int              `json:"max_running,omitempty"` // 0 means no bound
	Comment    *string           `json:"comment,omitempty"`
	// Waits replaces the conditions for the start of the job. This is possible only until a task of the job has
	// started.
	Waits *Conditions `json:"waits,omitempty"`
}

// Conditions say when a job may start. They are the fields of [JobSpec] with the same names.
type Conditions struct {
	AfterJobs   []messages.JobID  `json:"after_jobs,omitempty"`
	AfterOK     []messages.JobID  `json:"after_ok,omitempty"`
	AfterFailed []messages.JobID  `json:"after_failed,omitempty"`
	AfterStart  []messages.JobID  `json:"after_start,omitempty"`
	AfterAny    bool              `json:"after_any,omitempty"`
	StartDelay  messages.Duration `json:"start_delay,omitempty"`
}

// Conditions returns the conditions of the job's start.
func (s *JobSpec) Conditions() *Conditions {
	return &Conditions{s.AfterJobs, s.AfterOK, s.AfterFailed, s.AfterStart, s.AfterAny, s.StartDelay}
}

// WaitFor replaces the conditions of the job's start.
func (s *JobSpec) WaitFor(w *Conditions) {
	s.AfterJobs, s.AfterOK, s.AfterFailed, s.AfterStart, s.AfterAny, s.StartDelay = w.AfterJobs, w.AfterOK, w.AfterFailed, w.AfterStart, w.AfterAny, w.StartDelay
}

// WaitsAs reports whether both jobs have the same conditions for their starts.
func (s *JobSpec) WaitsAs(o *JobSpec) bool {
	return slices.Equal(s.AfterJobs, o.AfterJobs) && slices.Equal(s.AfterOK, o.AfterOK) && slices.Equal(s.AfterFailed, o.AfterFailed) &&
		slices.Equal(s.AfterStart, o.AfterStart) && s.AfterAny == o.AfterAny && s.StartDelay == o.StartDelay
}

// Validate checks the fields of a request.
func (r *ChangeRequest) Validate() error {
	switch {
	case r.Key == "":
		return messages.Errorf(messages.Invalid, "key: is empty; choose a key for each change; if no answer comes, send the change again with the same key")
	case r.Name == "" && r.Budget == 0 && r.Rate == 0 && r.TimeLimit == 0 && r.MaxRunning == nil && r.Comment == nil && r.Waits == nil:
		return messages.Errorf(messages.Invalid, "the request changes nothing: give one of the fields name, budget, rate, time_limit, max_running, comment and waits")
	case r.Budget < 0 || r.Rate < 0 || r.TimeLimit < 0 || r.MaxRunning != nil && *r.MaxRunning < 0:
		return messages.Errorf(messages.Invalid, "budget, rate, time_limit and max_running: must not be negative")
	}
	return messages.CheckLine("key", r.Key, messages.MaxKey)
}

// ChangeReply is the job after the change. The field Pending is the new budget, if the bank has not confirmed it yet.
type ChangeReply struct {
	Job     messages.JobID   `json:"job"`
	State   State            `json:"state"`
	Budget  messages.Credits `json:"budget"`
	Pending messages.Credits `json:"pending,omitempty"`
}
