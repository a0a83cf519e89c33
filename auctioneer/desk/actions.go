package desk

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// Instant is now, by both clocks of a host.
type Instant struct {
	Wall messages.Time
	Mono messages.Duration // time since an arbitrary moment; it never goes back
	Leap messages.Duration // by how much Wall was set ahead since the latest commit
}

// Input is one thing that a shell tells a desk: [Done] or [Heard].
type Input interface{ input() }

// Done is the outcome of a proposal or a request with an ID: the result of the command, or the
// answer. A refusal is an error, no matter who refuses.
type Done struct {
	ID     uint64
	Result any
	Err    error
}

// Heard says that a node was heard at a time of the monotonic clock.
type Heard struct {
	Node messages.Name
	At   messages.Duration
}

func (Done) input()  {}
func (Heard) input() {}

// Actions are what a shell must do, in this order. Each action with an ID is answered by a [Done]
// later, or never if the shell ends first.
type Actions struct {
	Propose []Proposal
	Ask     []Request
	Publish []messages.Vector // for all agents
	Direct  []Direction
	Events  []any             // messages for operators: the Event types
	Next    messages.Duration // how long the next step can wait if nothing happens; negative: for ever
}

// Proposal is a command to be committed.
type Proposal struct {
	ID      uint64
	Command *book.Command
	// Patience is how long the command may wait for others to share an entry of the log with; 0: not at all.
	Patience messages.Duration
}

// Request is something to ask another actor, as the auctioneer of the site.
type Request struct {
	ID   uint64
	To   messages.Name // Bank, Estimator, Observations, Notices, or the Auctioneer of Peer
	Peer messages.Name
	Verb string
	// Body is the request for the verb. For Observations it is []messages.Observation, and the
	// answer is the number of them that were left with the estimator, counted from the first; an
	// error is about the next one.
	Body   any
	Reply  any               // a pointer that the answer is read into, and that is the answer; of Observations nil
	Within messages.Duration // how long to wait for the answer; 0: without limit
}

// Observations is where what ended jobs teach is left, for the estimator to read.
const Observations messages.Name = "observations"

// Direction is a directive and the node that gets it.
type Direction struct {
	Node      messages.Name
	Directive messages.Directive
}

// Events, which change nothing.
type (
	// Decided says that a market has decided.
	Decided struct{ Market messages.Name }
	// Committed says that a decision is in the book.
	Committed struct{ Decision *book.Decide }
	// Reconfigured says that other markets are in force, and lists the markets that cannot run: their
	// jobs wait.
	Reconfigured struct {
		Markets *Markets
		Faults  []error
	}
	// Undecided says that a decision was not committed; the market decides again.
	Undecided struct {
		Market messages.Name
		Err    error
	}
	// Unsettled says that a settlement was not committed; it is proposed again.
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
	// Evicted says that the rest on a drained node was not ended yet.
	Evicted struct {
		Node messages.Name
		Err  error
	}
	// Disbanded says that a gang did not come together in time.
	Disbanded struct {
		Job messages.JobID
		Err error
	}
	// Refused says that the bank refused a charge and will not be asked again.
	Refused struct {
		Charge string        // the transfer, or the authorisation of another site
		Site   messages.Name // the other site
		Err    error
	}
	// Waiting says that something could not be done yet.
	Waiting struct {
		What string
		Err  error
	}
	// Dropped says how many observations of ended jobs will not be left.
	Dropped struct{ Observations int }
	// Forgotten says that an effect speaks of a job that is gone.
	Forgotten struct {
		Effect uint64
		Job    messages.JobID
	}
	// Ran says that a request about a remote job was answered, or will be repeated; Job is 0 if it
	// was about all jobs at a peer.
	Ran struct {
		Job     messages.JobID
		Peer    messages.Name
		Done    bool // something became known, and is in the book
		Err     error
		Trouble string // why the peer is taken to be silent; "": it answers
	}
	// Sent says that a word about a job was taken.
	Sent struct{ Job messages.JobID }
	// Unsent says that a notification about a job was not accepted, and whether it will be tried
	// again.
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
