package messages

// Verbs of the auctioneer with which an owner or an operator changes a job that has not ended. They
// are commands of the leader.
const (
	VerbHold    = "hold"    // JobRequest → HoldReply
	VerbRelease = "release" // JobRequest → HoldReply
	VerbRequeue = "requeue" // RequeueRequest → RequeueReply
)

// HoldReply is the job's state after it was put on hold or released.
type HoldReply struct {
	Job     JobID `json:"job"`
	State   State `json:"state"`
	Hold    bool  `json:"hold"`    // the job is on hold now
	Changed bool  `json:"changed"` // false: the job was before as it is asked to be
	Running int   `json:"running"` // tasks that go on
}

// RequeueRequest ends running tasks of a job, to be run again.
type RequeueRequest struct {
	Job   JobID   `json:"job"`
	Stage *int    `json:"stage,omitempty"` // position; default: 0 if Task is given, otherwise all stages
	Task  *uint32 `json:"task,omitempty"`  // position in the stage; default: all that run
}

// RequeueReply says how many tasks are ended to be run again.
type RequeueReply struct {
	Job   JobID `json:"job"`
	Tasks int   `json:"tasks"`
}

// VerbChange changes the description of a job that has not ended.
const VerbChange = "change" // ChangeRequest → ChangeReply

// ChangeRequest says what to change; fields that are left out stay as they are. Repeating the last
// change's key changes nothing more.
type ChangeRequest struct {
	Key  string `json:"key"`
	Job  JobID  `json:"job"`
	Name string `json:"name,omitempty"`
	// Budget and Rate can be raised, if the market's mechanism allows it.
	Budget Credits `json:"budget,omitempty"`
	Rate   Credits `json:"rate,omitempty"`
	// Stage is the position of the stage that the rest is about; default: the only one.
	Stage      *int     `json:"stage,omitempty"`
	TimeLimit  Duration `json:"time_limit,omitempty"`
	MaxRunning *int     `json:"max_running,omitempty"` // 0: no bound
}

// Validate checks a request without looking at any state.
func (r *ChangeRequest) Validate() error {
	switch {
	case r.Key == "":
		return Errorf(Invalid, "key: is empty; choose one per change, and send it again with the change if no answer comes")
	case r.Name == "" && r.Budget == 0 && r.Rate == 0 && r.TimeLimit == 0 && r.MaxRunning == nil:
		return Errorf(Invalid, "the request changes nothing: give a name, budget, rate, time_limit or max_running")
	case r.Budget < 0 || r.Rate < 0 || r.TimeLimit < 0 || r.MaxRunning != nil && *r.MaxRunning < 0:
		return Errorf(Invalid, "budget, rate, time_limit and max_running: must not be negative")
	}
	return checkLine("key", r.Key, MaxKey)
}

// ChangeReply is the job as it is now. A budget that the bank is still asked for is Pending.
type ChangeReply struct {
	Job     JobID   `json:"job"`
	State   State   `json:"state"`
	Budget  Credits `json:"budget"`
	Pending Credits `json:"pending,omitempty"`
}
