package messages

// StepRequest is sent by the node of a task of an allocation. It asks for the allocation's other
// tasks or, with Stream, for a stream of one of them. The leader gives access only to current
// attempts of the same allocation.
type StepRequest struct {
	Attempt Attempt        `json:"attempt"` // attempt of the task for which the node asks
	Stream  *StreamRequest `json:"stream,omitempty"`
}

// StepReply answers a [StepRequest].
type StepReply struct {
	Members []Member     `json:"members,omitempty"` // in the order of the tasks, once all have their slots
	Stream  *StreamReply `json:"stream,omitempty"`
}

// Member is a task of an allocation.
type Member struct {
	Node    Name    `json:"node"`
	Attempt Attempt `json:"attempt"`
}

// MaxMembers bounds the tasks of an allocation.
const MaxMembers = 1024

// validateAllocation refuses options that are impossible for a script that runs once for several
// nodes.
func (s *Stage) validateAllocation(path string) error {
	switch {
	case !s.Allocation:
		return nil
	case !s.Gang || s.Tasks < 2:
		return Errorf(Invalid, "%s.allocation: an allocation is a gang of at least two tasks; ask for more nodes, or leave it out", path)
	case s.Array != nil || s.Repeats != nil:
		return Errorf(Invalid, "%s.allocation: an array of allocations on several nodes is not possible; submit a job for each index, or ask for one node", path)
	case s.Tasks > MaxMembers:
		return Errorf(TooLarge, "%s.tasks: an allocation has at most %d nodes, not %d", path, MaxMembers, s.Tasks)
	}
	return nil
}

// StepCall is the request of a task of an allocation to its node's agent, as one line of JSON: a
// [StepRequest], with the token from the attempt's environment.
type StepCall struct {
	Token string `json:"token"`
	StepRequest
}

// StepAnswer answers a [StepCall]. Without an Error the request was carried out.
type StepAnswer struct {
	StepReply
	Kind  Kind   `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

// StepsVariable is the variable in which a task of an allocation finds where to ask, who answers there, and its token:
// NAME:USER:TOKEN, the name of an abstract socket, the number of a user, and hexadecimal digits.
const StepsVariable = "CANDOR_STEPS"
