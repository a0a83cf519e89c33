package market

import (
	"cmp"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are more verbs of the auctioneer. Quote, apply and drain are commands of the leader; reservations is a query.
const (
	VerbQuote        = "quote"        // QuoteRequest → QuoteReply
	VerbReservations = "reservations" // ReservationsRequest → ReservationsReply
	VerbApply        = "apply"        // ApplyRequest → ApplyReply; operators
	VerbDrain        = "drain"        // DrainRequest → DrainReply; operators
)

// QuoteRequest asks a market that sells completion times for a menu of contracts. The job declares its valuation, its
// length and its tasks. No credits are set aside.
type QuoteRequest struct {
	Spec job.JobSpec `json:"spec"`
}

// Validate checks a request like [job.JobSpec.Validate], except that it needs no budget.
func (r *QuoteRequest) Validate() error {
	spec := r.Spec
	spec.Budget = cmp.Or(spec.Budget, messages.Credit)
	if spec.Contract != "" {
		return messages.Errorf(messages.Invalid, "contract: a job with a contract needs no quote; leave the field contract out")
	}
	return spec.Validate()
}

// QuoteReply is a menu of contracts, sorted by completion time. Until Expires, the caller can submit the job once with
// the ID of one of them.
type QuoteReply struct {
	Quote     string           `json:"quote"`
	Market    messages.Name    `json:"market"`
	Expires   messages.Time    `json:"expires"`
	Contracts []QuotedContract `json:"contracts"`
}

// QuotedContract is one contract of a menu.
type QuotedContract struct {
	ID         string           `json:"id"`
	Completion messages.Time    `json:"completion"`
	Price      messages.Credits `json:"price"`
	// Budget is the smallest budget with which a job may accept this contract. It is the price that the job would pay
	// if it completed as early as possible.
	Budget   messages.Credits `json:"budget"`
	Promised float64          `json:"promised"` // credits: the worth of completion at that time, by the contract's valuation
	Declared bool             `json:"declared"` // the contract is for the declared valuation
	Free     bool             `json:"free"`
}

// ReservationsRequest asks for the timetable of a market that sells reservations. If Market is empty, it asks for the
// timetables of all such markets.
type ReservationsRequest struct {
	Market messages.Name `json:"market,omitempty"`
}

// ReservationsReply lists the jobs in the timetable that have not ended, ordered by start. Everybody may see how many
// slots are taken at each time; only owners and operators see the jobs.
type ReservationsReply struct {
	Reservations []ReservedSlots `json:"reservations"`
}

// ReservedSlots is an entry of the timetable of reservations: the slots that a job has, and when.
type ReservedSlots struct {
	Job     messages.JobID `json:"job,omitempty"`
	Account messages.Name  `json:"account,omitempty"`
	Market  messages.Name  `json:"market"`
	Class   messages.Name  `json:"class"`
	Slots   int            `json:"slots"`
	Start   messages.Time  `json:"start"`
	End     messages.Time  `json:"end"` // start plus the declared length
	State   job.State      `json:"state"`
}

// ApplyRequest replaces the markets of the site. Jobs stay in their markets. A market with unended jobs cannot be
// removed, and cannot change its classes.
type ApplyRequest struct {
	Markets []Market `json:"markets"`
	DryRun  bool     `json:"dry_run,omitempty"` // check everything, but change nothing
	// Key is chosen by the client for each change. The same key with the same markets returns the same answer and has
	// no further effect. Empty means that every request is a new change.
	Key string `json:"key,omitempty"`
	// Version is the version of the markets for which the change is made. If the site has another version, nothing
	// changes. 0 means any version.
	Version uint64 `json:"version,omitempty"`
}

// Validate returns an error for the first fault of a request.
func (r *ApplyRequest) Validate() error {
	if len(r.Markets) == 0 {
		return messages.Errorf(messages.Invalid, "markets: is empty; a site needs at least one market")
	}
	if len(r.Markets) > MaxMarkets {
		return messages.Errorf(messages.TooLarge, "markets: %d is above the limit of %d", len(r.Markets), MaxMarkets)
	}
	if r.Key == "" {
		return nil
	}
	return messages.CheckLine("key", r.Key, messages.MaxKey)
}

// MaxMarkets bounds the markets of a site.
const MaxMarkets = 1000

// ApplyReply lists the changes that were made.
type ApplyReply struct {
	Added   []messages.Name `json:"added"`
	Changed []messages.Name `json:"changed"`
	Removed []messages.Name `json:"removed"`
	Version uint64          `json:"version"` // the markets version after the change
}

// DrainRequest stops new work on a node. Running tasks continue for at most Notice; then the site runs them on other
// nodes. Undo lets the node work again. Remove deletes a node that is down from the list of nodes.
type DrainRequest struct {
	Node   messages.Name      `json:"node"`
	Notice *messages.Duration `json:"notice,omitempty"`
	Undo   bool               `json:"undo,omitempty"`
	Reason string             `json:"reason,omitempty"` // shown to operators and users
	Remove bool               `json:"remove,omitempty"`
}

// MaxDrainReason bounds the reason for a drain, in bytes.
const MaxDrainReason = 512

// Validate returns an error for the first fault of a request.
func (r *DrainRequest) Validate() error {
	if !messages.ValidName(r.Node) {
		return messages.BadName("node", r.Node)
	}
	if r.Notice != nil && *r.Notice < 0 {
		return messages.Errorf(messages.Invalid, "notice: %v must not be negative", *r.Notice)
	}
	if len(r.Reason) > MaxDrainReason || !utf8.ValidString(r.Reason) {
		return messages.Errorf(messages.Invalid, "reason: must be at most %d bytes of text", MaxDrainReason)
	}
	if r.Remove && r.Undo {
		return messages.Errorf(messages.Invalid, "remove: a node is removed or takes work again, not both")
	}
	return nil
}

// DrainReply says how many tasks a node has now, and how long they may run.
type DrainReply struct {
	Node     messages.Name `json:"node"`
	Draining bool          `json:"draining"`        // false means that the node takes work, or was removed
	Until    messages.Time `json:"until,omitempty"` // when the remaining tasks are ended; 0: they run to their end
	Tasks    int           `json:"tasks"`
}
