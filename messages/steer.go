package messages

// Verbs of the auctioneer by which an owner, or an operator, steers a job that has not
// ended. They are commands of the leader.
const (
	VerbHold    = "hold"    // JobRequest → HoldReply
	VerbRelease = "release" // JobRequest → HoldReply
	VerbRequeue = "requeue" // RequeueRequest → RequeueReply
)

// HoldReply says what came of putting a job on hold, or of releasing it.
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
	Stage *int    `json:"stage,omitempty"` // position; default: 0 where Task is given, else all stages
	Task  *uint32 `json:"task,omitempty"`  // position in the stage; default: all that run
}

// RequeueReply says how many tasks are ended to be run again.
type RequeueReply struct {
	Job   JobID `json:"job"`
	Tasks int   `json:"tasks"`
}
