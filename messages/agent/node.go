package agent

import (
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// RegisterRequest announces a node, with the session number that its agent chose at its start. A new session number
// ends the earlier session, whose requests are then refused. A request with the present session number only updates the
// abilities.
type RegisterRequest struct {
	Session uint64             `json:"session"` // random, not 0
	Slots   []job.ClassSlots   `json:"slots"`
	Running []messages.Attempt `json:"running"` // attempts that the agent still runs, or that wait there
	// Abilities lists what the node can do with a task; the names are in ability.go.
	Abilities []messages.Name `json:"abilities,omitempty"`
	// Resources is everything that the node has, including its slots. nil means unknown.
	Resources *job.Resources `json:"resources,omitempty"`
	// Labels are words that describe the node, such as infiniband. A stage can require some of
	// them; see [job.Stage].
	Labels []messages.Name `json:"labels,omitempty"`
	// MostSuspended is how many suspended tasks the node keeps; 0 means four for each slot.
	MostSuspended int `json:"most_suspended,omitempty"`
	// Leaving is true if the agent ends and no task runs on the node. The request then ends the session, and no new one
	// begins.
	Leaving bool `json:"leaving,omitempty"`
	// Level is the level of the agent's release; see [messages.Level].
	Level int `json:"level,omitempty"`
}

// MaxAhead bounds how many tasks without a slot a node may hold in advance, for each slot of a class.
const MaxAhead = 64

// MaxSuspended is the largest number of suspended tasks that a node may say it can keep.
const MaxSuspended = 1 << 20

// NodeMarket is what the agents of a market's nodes know about the market.
type NodeMarket struct {
	Name    messages.Name   `json:"name"`
	Classes []messages.Name `json:"classes"`
	// Ordered is true if tasks run in the mechanism's order. Otherwise weights are shares of slot time, and a task may
	// be granted before a slot is free for it.
	Ordered bool `json:"ordered,omitempty"`
}

// RegisterReply is the answer to a node that the site has admitted.
type RegisterReply struct {
	// Lease is how long the agent may run tasks after its last answered exchange. The agent must exchange again well
	// before that.
	Lease   messages.Duration  `json:"lease"`
	Markets []NodeMarket       `json:"markets"`
	Stop    []messages.Attempt `json:"stop"` // attempts of the agent that are no longer valid
	Term    uint64             `json:"term"`
	Level   int                `json:"level,omitempty"` // level of the auctioneer's release
}

// Exchange is an agent's request to the leader. It reports ended tasks, claims new tasks, and renews the lease.
type Exchange struct {
	Session  uint64     `json:"session"`
	Seq      uint64     `json:"seq"`
	Finished []Finished `json:"finished"`
	Claims   []Claim    `json:"claims"`
	// Sent is when the request was sent, by the agent's clock. A repeated request has a new time: see [Successor].
	Sent messages.Time `json:"sent,omitempty"`
}

// Claim asks for tasks of one job on slots of one class.
type Claim struct {
	Market messages.Name  `json:"market"`
	Class  messages.Name  `json:"class"`
	Job    messages.JobID `json:"job"` // the job drawn from the vector; 0 means the next job in line for the slots that this exchange frees
	Slots  int            `json:"slots"`
	// Ahead is how many tasks of the class the node may hold beyond the tasks on its slots. These additional tasks wait
	// on the node for a free slot.
	Ahead int `json:"ahead,omitempty"`
}

// Finished reports the end of an attempt.
type Finished struct {
	Attempt  messages.Attempt  `json:"attempt"`
	Outcome  Outcome           `json:"outcome"`
	ExitCode int               `json:"exit_code"` // 128 + signal if a signal ended it
	Started  messages.Time     `json:"started"`
	Ended    messages.Time     `json:"ended"`
	CPU      messages.Duration `json:"cpu"`
	MaxRSS   int64             `json:"max_rss"`        // bytes
	Detail   string            `json:"detail"`         // why it could not start, or why it was ended
	Lost     int64             `json:"lost,omitempty"` // bytes of its output that were not kept
	// Next is the attempt that already got the slot of the ended attempt; nil means none.
	Next *Successor `json:"next,omitempty"`
	// MemoryKilled is true if the attempt ended by itself, after its memory limit had ended one of its processes.
	MemoryKilled bool `json:"memory_killed,omitempty"`
}

// Successor is an attempt that was granted before a slot was free, and that has a slot now. At is the time when the
// attempt got the slot. At is a reading of the agent's own clock. This clock may count from any moment; see
// [Exchange.Sent].
type Successor struct {
	Attempt messages.Attempt `json:"attempt"`
	At      messages.Time    `json:"at"`
}

// Outcome is how an attempt ended.
type Outcome uint8

// These are the outcomes of an attempt.
const (
	Exited      Outcome = iota // ended by itself; ExitCode says how
	TimedOut                   // ended at its time limit
	Stopped                    // ended because the leader ended it, or because the lease ended
	Unstartable                // the process could not be started
	Exceeded                   // ended because it exceeded a limit that is not its time, memory or disk limit
	OutOfMemory                // ended by its memory limit
	OutOfDisk                  // ended because it exceeded its limit on disk space
	Unprepared                 // not started, because the prolog or an epilog of the node failed
)

var outcomeNames = []string{"Exited", "TimedOut", "Stopped", "Unstartable", "Exceeded", "OutOfMemory", "OutOfDisk", "Unprepared"}

// Outcomes returns all outcomes of an attempt.
func Outcomes() []Outcome {
	outcomes := make([]Outcome, len(outcomeNames))
	for i := range outcomes {
		outcomes[i] = Outcome(i)
	}
	return outcomes
}

// Limited reports whether a limit of the task ended the attempt. The next attempt would then end in the same way.
func (o Outcome) Limited() bool {
	return o == TimedOut || o == Exceeded || o == OutOfMemory || o == OutOfDisk
}

// String returns the outcome's name.
func (o Outcome) String() string { return messages.NameOf(outcomeNames, o, "Unknown") }

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's name.
func (o *Outcome) UnmarshalText(b []byte) error {
	return messages.ReadName(o, "outcome", outcomeNames, b)
}

// ExchangeReply answers an exchange. A claimed slot without a grant has no work, and waits for the next vector.
type ExchangeReply struct {
	Seq      uint64             `json:"seq"`
	Grants   []Grant            `json:"grants"`
	Programs []Program          `json:"programs"` // one for each stage of the granted tasks; see [SharedEnv]
	Stop     []messages.Attempt `json:"stop"`     // attempts of this node to end now
	// Suspended lists all attempts of this node that must not run until a later list leaves them out. If such an
	// attempt runs, it is suspended. If it has not started, it must wait. Version grows with every change of the list.
	// An agent ignores a list whose version is lower than the last version that it obeyed.
	Suspended []messages.Attempt `json:"held,omitempty"`
	Version   uint64             `json:"version,omitempty"`
	// Markets are the markets that the node serves now, if they have changed since it registered; nil means no change.
	// An agent ignores a market without classes.
	Markets []NodeMarket `json:"markets,omitempty"`
	// The last line of an attempt's output has a time and a text. Last has this text for each attempt in Stop, such as
	// "DUE TO BUDGET *** …". "" means that the attempt gets no such line.
	Last []string `json:"last,omitempty"`
}

// Grant describes a task that a node has claimed, so that the node can run it.
type Grant struct {
	Attempt messages.Attempt `json:"attempt"`
	Array   int64            `json:"array"` // the task's array index
	// A task of a rerun repeats a task of an earlier job. Position is 1 plus the position of that earlier task. 0 means
	// that the task repeats none.
	Position uint32 `json:"position,omitempty"`
	// Ahead is true if the attempt has no slot yet. The agent starts it on the next free slot, or reports it as
	// Stopped.
	Ahead bool `json:"ahead,omitempty"`
	// Nodes lists the nodes of the task's allocation in the order of the tasks, separated by commas. Steps has the
	// address and the token with which the task starts processes on these nodes. The agent adds both fields.
	Nodes string `json:"nodes,omitempty"`
	Steps string `json:"steps,omitempty"`
	// Waited is the idle slot time while the node gathered the task's slots.
	Waited messages.Duration `json:"waited,omitempty" since:"2"`
}

// Place returns the task's position in its stage. If the job runs some tasks of an earlier job again, it returns the
// position that the task had in the earlier job.
func (g *Grant) Place() uint32 {
	if g.Position > 0 {
		return g.Position - 1
	}
	return g.Attempt.Task.Index
}

// Program is what the tasks of a stage run.
type Program struct {
	Job       messages.JobID    `json:"job"`
	Stage     uint32            `json:"stage"`
	StageName messages.Name     `json:"stage_name"`
	JobName   string            `json:"job_name"`
	Account   messages.Name     `json:"account"` // owner of the job, who may read the logs
	Payer     messages.Name     `json:"payer,omitempty"`
	Market    messages.Name     `json:"market,omitempty"`
	Class     messages.Name     `json:"class"`
	Tasks     int               `json:"tasks"`
	Command   []string          `json:"command"`
	Script    string            `json:"script"`
	Env       job.Env           `json:"env"` // the job's variables, replaced by the stage's where both have a name; see [SharedEnv]
	Dir       string            `json:"dir"`
	TimeLimit messages.Duration `json:"time_limit"`
	// Memory is the limit of a task, in bytes; -1 means all memory of the node; 0 means the node's default.
	Memory int64 `json:"memory,omitempty"`
	// Width is how many slots a task has; 0 means 1. Shape is the sum of the resources of these slots. It is never less
	// than the stage asks for. nil means that slots of the class have no sizes.
	Width     int            `json:"width,omitempty"`
	Shape     *job.Resources `json:"shape,omitempty"`
	Exclusive bool           `json:"exclusive,omitempty"` // the task has the whole node
	// Allocation has the same meaning as in [job.Stage].
	Allocation bool `json:"allocation,omitempty"`
	// The fields below have the same meaning as in [job.Stage].
	Inputs  []job.File `json:"inputs,omitempty"`
	Outputs []string   `json:"outputs,omitempty"`
	// If Interactive is set, the task's input and output are streams to and from the job's owner; see [job.Stage].
	Interactive *job.Interactive `json:"interactive,omitempty"`
	Signal      *job.EarlySignal `json:"signal,omitempty"`
	// Umask has the same meaning as in [job.JobSpec].
	Umask string `json:"umask,omitempty"`
	// OOM has the same meaning as in [job.Stage].
	OOM job.OOM `json:"oom,omitempty"`
}

// The programs of a job may have environment variables in common. A reply has these variables only once, in a separate
// program with the stage number SharedEnv. This program has no other content. An agent adds its variables to the Env of
// each other program of the job. If a program already has a variable of the same name, its own value counts. Only
// agents with the ability AbilitySharedEnv get such replies.
const SharedEnv = math.MaxUint32

// ShareEnv completes the environments of programs. For each job, one element of `programs` has the stage number
// SharedEnv. Its Env has the variables that all stages of the job share. ShareEnv adds these variables to the other
// programs of the job.
func ShareEnv(programs []Program) {
	shared := map[messages.JobID]job.Env{}
	for i := range programs {
		if programs[i].Stage == SharedEnv {
			shared[programs[i].Job] = programs[i].Env
		}
	}
	if len(shared) == 0 {
		return
	}
	for i := range programs {
		if p := &programs[i]; p.Stage != SharedEnv {
			p.Env = shared[p.Job].Overlaid(p.Env)
		}
	}
}

// Directive tells an agent at once which attempts it must end and suspend. If the directive is lost, the reply to the
// next exchange says the same.
type Directive struct {
	Term uint64             `json:"term"`
	Stop []messages.Attempt `json:"stop"`
	// Suspended has the same meaning as in [ExchangeReply].
	Suspended []messages.Attempt `json:"held,omitempty"`
	Version   uint64             `json:"version,omitempty"`
	Markets   []NodeMarket       `json:"markets,omitempty"`
	// Warn lists running attempts to which the agent sends a signal, because the budgets of their jobs are about to
	// end. Each list is sent once.
	Warn []Warning `json:"warn,omitempty"`
	// Last has the same meaning as in [ExchangeReply].
	Last []string `json:"last,omitempty"`
}

// Warning is a signal for a running attempt.
type Warning struct {
	Attempt messages.Attempt `json:"attempt"`
	Signal  job.EarlySignal  `json:"signal"`
}

// Vector is a market's allocation for agents: for each class, the weight of each job with pending work. A vector may be
// lost. An agent ignores a vector unless its Term is higher than the last one's, or its Term is equal and its Seq is
// higher. If Base is not 0, the vector has only the changes since the vector of the same term with Seq = Base. An agent
// that does not have the vector with this Seq requests a complete vector (verb "vector").
type Vector struct {
	Market  messages.Name `json:"market"`
	Term    uint64        `json:"term"`
	Seq     uint64        `json:"seq"`
	Base    uint64        `json:"base"`
	Classes []ClassVector `json:"classes"`
}

// ClassVector is one class of a vector. The sum of the weights may be any number: an agent draws job i with probability
// Weight_i / Σ Weight.
type ClassVector struct {
	Class   messages.Name `json:"class"`
	Pending int           `json:"pending"` // tasks that could be claimed
	Idle    int           `json:"idle"`    // slots of the site without a task
	Jobs    []JobWeight   `json:"jobs"`    // by ascending job number; weight 0 removes a job
}

// If Same is true, the weights of the previous vector are still right. Jobs may only have left since that vector, or
// have come back with their old weights. So jobs that were drawn with the previous vector need not be drawn again. The
// method SetSame marks a vector as the same. The mark is stored as a first entry without a job.
func (v *ClassVector) Same() bool { return len(v.Jobs) > 0 && v.Jobs[0] == JobWeight{} }

// SetSame marks the vector, so that [ClassVector.Same] returns true.
func (v *ClassVector) SetSame() { v.Jobs = append([]JobWeight{{}}, v.Jobs...) }

// JobWeight is the weight of one job in a class.
type JobWeight struct {
	Job    messages.JobID `json:"job"`
	Weight float32        `json:"weight"`
}

// VectorRequest asks the leader for the complete vector of a market.
type VectorRequest struct {
	Market messages.Name `json:"market"`
}

// LogsRequest asks the node that ran a task for a piece of the task's output.
type LogsRequest struct {
	Attempt messages.Attempt  `json:"attempt"`
	Stderr  bool              `json:"stderr,omitempty"`
	Offset  int64             `json:"offset,omitempty"` // position from the beginning; negative: bytes before the end
	Limit   int               `json:"limit,omitempty"`  // bytes; default and maximum: 256 KiB
	Wait    messages.Duration `json:"wait,omitempty"`   // how long to wait for more output, at most 1 s
}

// LogsReply has a piece of an attempt's output. Next is the position at which the next piece begins. End is true if the
// attempt has ended and there is no output from Next on.
type LogsReply struct {
	Data []byte `json:"data"`
	Next int64  `json:"next"`
	End  bool   `json:"end"`
	// Missing is how many bytes of the output before Data were not kept.
	Missing int64 `json:"missing,omitempty"`
	// Stream answers an [clearing.OutputRequest] with a stream.
	Stream *StreamReply `json:"stream,omitempty"`
}
