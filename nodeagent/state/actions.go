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
	// Follow lists tasks to give to the runner before they have a slot. When another task of the same class ends, the
	// runner starts such a task on the freed slot. Then the caller must call the method Turned. If the runner does not
	// accept the task, the caller must call Keep at once. A task that was in Follow may later be in the list Start, if
	// it gets a slot in the ordinary way. Withdraw lists tasks to take back from the runner. For each of them, the
	// caller must call Ended if it was taken back, or Turned if it had already started.
	Follow   []Start
	Withdraw []messages.Attempt
	// Stop lists tasks to end. Take back the tasks of Withdraw before you end these.
	Stop []Stop
	// Suspend and Resume list tasks to suspend and to resume.
	Suspend, Resume []messages.Attempt
	// Reported lists the tasks whose end was reported to the leader, and whose report the leader has confirmed.
	Reported []messages.Attempt
	// If Markets is not nil, the node must now be subscribed to exactly these markets.
	Markets []messages.Name
	// Closed is true if all tasks have ended and their ends were reported.
	Closed bool
}

// Request is a registration or an exchange, which the caller sends once. It has the time Within for an answer. Before
// this time is over, the caller must call Registered, Answered or Failed with the request's ID. The state ignores
// answers to earlier requests.
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

// Stop says that the node must end a task.
type Stop struct {
	Attempt messages.Attempt
	Kill    bool   // kill at once, without grace
	Last    string // text for the last line of the task's output; see [agent.ExchangeReply]
}
