package state

import "github.com/candor-grid/candor/messages"

// Actions is what the shell must do now, in any order.
type Actions struct {
	// Request must be sent to the leader; nil: none.
	Request *Request
	// Fetch names markets whose complete vector must be requested. Answer with Fetched or
	// FetchFailed.
	Fetch []messages.Name
	// Start lists tasks to be started; answer each with Ended.
	Start []Start
	// Follow lists tasks to give to the runner, which starts each on the slot of an ended task of
	// its class. Answer with Turned, or at once with Keep. A later Start may name them too.
	// Withdraw lists tasks to take back from the runner. Answer with Ended or Turned.
	Follow   []Start
	Withdraw []messages.Attempt
	// Stop lists tasks that must end. Withdraw the tasks of Withdraw first.
	Stop []Stop
	// Suspend and Resume list tasks to be suspended, and to go on.
	Suspend, Resume []messages.Attempt
	// Reported lists ended tasks that the leader knows of.
	Reported []messages.Attempt
	// Markets lists the markets to subscribe to from now on; nil: no change.
	Markets []messages.Name
	// Closed says that everything has ended and was reported.
	Closed bool
}

// Request is one transmission of a registration or an exchange. Answer it with
// Registered, Answered or Failed, naming its ID, Within its time. A new
// request makes earlier ones void.
type Request struct {
	ID       uint64
	Within   messages.Duration
	Register *messages.RegisterRequest // exactly one of these two is set
	Exchange *messages.Exchange
}

// Start is a task to be started.
type Start struct {
	Grant   messages.Grant
	Program *messages.Program
}

// Stop is a task to be ended.
type Stop struct {
	Attempt messages.Attempt
	Kill    bool // kill at once, without grace
}
