package state

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// Actions lists the steps that the caller must carry out now, in any order, unless a field says otherwise.
type Actions struct {
	// Request must be sent to the leader. It is nil if there is no request to send.
	Request *Request
	// Fetch names markets. For each of them, the caller must request the complete vector, and then call Fetched or
	// FetchFailed.
	Fetch []messages.Name
	// Start lists tasks to start. For each of them, the caller must call Ended when the task has ended.
	Start []Start
	// Follow lists tasks to give to the runner. When another task of the same class ends, the runner starts such a task
	// on the freed slot. The caller must call Turned when the task has started. If the runner does not accept the task,
	// the caller must call Keep at once. A later Start may also name the task. Withdraw lists tasks to take back from
	// the runner. For each of them, the caller must call Ended or Turned.
	Follow   []Start
	Withdraw []messages.Attempt
	// Stop lists tasks to end. Take back the tasks of Withdraw before you end these.
	Stop []Stop
	// Suspend and Resume list tasks to suspend and to resume.
	Suspend, Resume []messages.Attempt
	// Reported lists the ended tasks that the leader has confirmed: it knows that they have ended.
	Reported []messages.Attempt
	// If Markets is not nil, the node must now be subscribed to exactly these markets.
	Markets []messages.Name
	// Closed is true if all tasks have ended and their ends were reported.
	Closed bool
}

// Request is a registration or an exchange to send once. The caller calls Registered, Answered or Failed with its ID
// before its time is over. The state ignores answers to earlier requests.
type Request struct {
	ID       uint64
	Within   messages.Duration
	Register *agent.RegisterRequest // exactly one of these two is set
	Exchange *agent.Exchange
}

// Start is a task to start.
type Start struct {
	Grant   agent.Grant
	Program *agent.Program
}

// Stop is a task to end.
type Stop struct {
	Attempt messages.Attempt
	Kill    bool   // kill at once, without grace
	Last    string // text for the last line of its output; see [agent.ExchangeReply]
}
