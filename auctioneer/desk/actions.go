package desk

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// Instant is the present time on both clocks of a host.
type Instant struct {
	Wall messages.Time
	Mono messages.Duration // time since an arbitrary moment; it never decreases
	Leap messages.Duration // how far Wall was set ahead since the latest commit
}

// Input is an event that the desk must handle: [Done] or [Heard]. The desk only decides. The code around it, called the
// shell, carries out the decisions and reports events.
type Input interface{ input() }

// Done is the outcome of a proposal or a request with an ID: a result, or an error if it was refused.
type Done struct {
	ID     uint64
	Result any
	Err    error
}

// Heard reports that a node has sent a message. At is the time of the message, by the monotonic clock.
type Heard struct {
	Node messages.Name
	At   messages.Duration
}

func (Done) input()  {}
func (Heard) input() {}

// Actions are what the caller of the desk must do, in the order of the fields. For each action with an ID, the caller
// later reports a [Done], unless the caller stops before.
type Actions struct {
	Propose []Proposal
	Ask     []Request
	Publish []agent.Vector // vectors for all agents
	Direct  []Direction
	Events  []any             // messages for operators: one of the event types below
	Next    messages.Duration // time until the next step, if nothing happens before; a negative value means no limit
}

// Proposal is a command to be committed.
type Proposal struct {
	ID      uint64
	Command *book.Command
	// Patience is how long the command may wait for other commands, to share a log entry with them.
	Patience messages.Duration
}

// Request is a request to another actor, in the name of the site's auctioneer.
type Request struct {
	ID   uint64
	To   messages.Name // Bank, Estimator, Observations, Notices, or the Auctioneer of Peer
	Peer messages.Name
	Verb string
	// Body is the request; its type depends on Verb. For Observations, Body is []job.Observation. The answer to
	// Observations is a number n: the first n observations were stored, and an error is about the next one.
	Body   any
	Reply  any               // a pointer to the value that is filled with the answer and returned; nil for Observations
	Within messages.Duration // how long to wait for the answer; 0 means no limit
}

// Observations names the stream that gets observations of ended jobs, for the estimator.
const Observations messages.Name = "observations"

// Direction is a directive with the node that gets it.
type Direction struct {
	Node      messages.Name
	Directive agent.Directive
}

type (
	// Decided says that a market has decided.
	Decided struct{ Market messages.Name }
	// Committed says that a decision is in the book.
	Committed struct{ Decision *book.Decide }
	// Reconfigured says that newly applied markets are in force. It lists the markets that cannot run; their jobs wait.
	Reconfigured struct {
		Markets *Markets
		Faults  []error
	}
	// Undecided says that a decision of the market was not committed. The market must then decide again.
	Undecided struct {
		Market messages.Name
		Err    error
	}
	// Unsettled says that a settlement was not committed. The desk proposes the settlement again.
	Unsettled struct {
		Job messages.JobID
		Err error
	}
	// Lost says that the claims of a silent node were taken back.
	Lost struct {
		Node  messages.Name
		Tasks any
		Err   error
	}
	// Evicted says that ending the tasks of a drained node failed, and will be tried again.
	Evicted struct {
		Node messages.Name
		Err  error
	}
	// Disbanded says that a gang did not get all its slots in time.
	Disbanded struct {
		Job messages.JobID
		Err error
	}
	// Refused says that the bank has refused a charge. The charge is not tried again.
	Refused struct {
		Charge string        // name of the transfer, or of the other site's authorisation
		Site   messages.Name // the other site
		Err    error
	}
	// Waiting says that something could not be done yet, and why.
	Waiting struct {
		What string
		Err  error
	}
	// Dropped says how many observations of ended jobs were dropped.
	Dropped struct{ Observations int }
	// Forgotten says that an effect names a job that the book no longer has.
	Forgotten struct {
		Effect uint64
		Job    messages.JobID
	}
	// Ran says that a request about a remote job was answered, or will be repeated. Job is 0 for a request about all
	// jobs at a peer.
	Ran struct {
		Job     messages.JobID
		Peer    messages.Name
		Done    bool // true if the answer had news, which are now in the book
		Err     error
		Trouble string // why the peer counts as silent; "" if it answers
	}
	// Sent says that a notification about a job was accepted.
	Sent struct{ Job messages.JobID }
	// Unsent says that a notification about a job was not accepted, and whether it will be tried again.
	Unsent struct {
		Job  messages.JobID
		To   string
		Err  error
		Over bool
	}
	// NotExtended says that the bank did not extend a hold: the job may have been settled in the
	// meantime.
	NotExtended struct {
		Job messages.JobID
		Err error
	}
)
