package agent

import "github.com/candor-grid/candor/messages"

// StepRequest is what a node sends for one of its tasks that belongs to an allocation. The request asks for the
// allocation's other tasks or, with Stream, for a stream of one task. The leader answers only for current attempts of
// the same allocation.
type StepRequest struct {
	Attempt messages.Attempt `json:"attempt"` // the attempt on whose behalf the node asks
	Stream  *StreamRequest   `json:"stream,omitempty"`
}

// StepReply answers a [StepRequest].
type StepReply struct {
	Members []Member     `json:"members,omitempty"` // in the order of the tasks; empty until all have their slots
	Stream  *StreamReply `json:"stream,omitempty"`
}

// Member is one task of an allocation.
type Member struct {
	Node    messages.Name    `json:"node"`
	Attempt messages.Attempt `json:"attempt"`
}

// StepCall is a request that a task of an allocation sends to its node's agent, as one line of JSON: a [StepRequest],
// and the token from the attempt's environment.
type StepCall struct {
	Token string `json:"token"`
	StepRequest
}

// StepAnswer answers a [StepCall]. If it has no Error, the request was carried out.
type StepAnswer struct {
	StepReply
	Kind  messages.Kind `json:"kind,omitempty"`
	Error string        `json:"error,omitempty"`
}

// StepsVariable is the variable that tells a task of an allocation how to ask its node. Its value is NAME:USER:TOKEN:
// an abstract socket, the number of the user that answers there, and the token in hexadecimal digits.
const StepsVariable = "CANDOR_STEPS"

// StepVariable is the variable that srun sets for the processes of a step. Its value is the number of the step in its
// job.
const StepVariable = "CANDOR_STEP"
