package state

import "github.com/candor-grid/candor/messages"

// Actions is what is to be done now, in any order.
type Actions struct {
	// Request is to be sent to the leader; nil: none.
	Request *Request
	// Fetch names the markets whose whole vector is to be asked for; answer
	// with Fetched, or FetchFailed.
	Fetch []messages.Name
	// Start lists tasks to be started; answer each with Ended.
	Start []Start
	// Follow lists tasks to be left with the runner, which begins each on the slot of a task of
	// its class that has ended; answer with Turned, or at once with Keep. A Start may still
	// name them. Withdraw lists those that are not to begin any more; answer with Ended, or Turned.
	Follow   []Start
	Withdraw []messages.Attempt
	// Stop lists tasks to be ended, after those to be withdrawn.
	Stop []Stop
	// Suspend and Resume list tasks to be suspended, and to go on.
	Suspend, Resume []messages.Attempt
	// Reported lists ended tasks that the leader knows of.
	Reported []messages.Attempt
	// Markets are those to subscribe to, instead of what was said before; nil:
	// as before.
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
	Register *messages.RegisterRequest // one of the two
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
	Kill    bool // at once, without grace
}
