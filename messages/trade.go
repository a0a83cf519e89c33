package messages

import (
	"cmp"
	"unicode/utf8"
)

// Further verbs of the auctioneer. Quote, apply and drain are commands of the
// leader; reservations is a query.
const (
	VerbQuote        = "quote"        // QuoteRequest → QuoteReply
	VerbReservations = "reservations" // ReservationsRequest → ReservationsReply
	VerbApply        = "apply"        // ApplyRequest → ApplyReply; operators
	VerbDrain        = "drain"        // DrainRequest → DrainReply; operators
)

// QuoteRequest asks a market that sells completion times what it has for a job,
// which declares its valuation, its length and its tasks. Nothing is held.
type QuoteRequest struct {
	Spec JobSpec `json:"spec"`
}

// Validate reports what is wrong with a request, like [JobSpec.Validate]. A
// budget is not needed to ask.
func (r *QuoteRequest) Validate() error {
	spec := r.Spec
	spec.Budget = cmp.Or(spec.Budget, Credit)
	if spec.Contract != "" {
		return Errorf(Invalid, "contract: a job that has one needs no quote; leave it out")
	}
	return spec.Validate()
}

// QuoteReply is a menu, by completion. A job is submitted with the ID of one of
// its contracts, by whoever asked, once, until Expires.
type QuoteReply struct {
	Quote     string           `json:"quote"`
	Market    Name             `json:"market"`
	Expires   Time             `json:"expires"`
	Contracts []QuotedContract `json:"contracts"`
}

// QuotedContract is an entry of a menu.
type QuotedContract struct {
	ID         string  `json:"id"`
	Completion Time    `json:"completion"`
	Price      Credits `json:"price"`
	// Budget is the least that a submission must allow: the most that the price
	// can come to, if the job completes early.
	Budget   Credits `json:"budget"`
	Promised float64 `json:"promised"` // credits: what completion then is worth, by the contract's valuation
	Declared bool    `json:"declared"` // it fits what was declared
	Free     bool    `json:"free"`
}

// ReservationsRequest asks for the timetable of the markets that sell
// reservations, or of one.
type ReservationsRequest struct {
	Market Name `json:"market,omitempty"`
}

// ReservationsReply lists the jobs that have a place in the timetable and have
// not ended, by start. Everybody may see when how many slots are taken; whose they are is
// told to their owners and to operators.
type ReservationsReply struct {
	Reservations []ReservedSlots `json:"reservations"`
}

// ReservedSlots is a job's place in the timetable.
type ReservedSlots struct {
	Job     JobID `json:"job,omitempty"`
	Account Name  `json:"account,omitempty"`
	Market  Name  `json:"market"`
	Class   Name  `json:"class"`
	Slots   int   `json:"slots"`
	Start   Time  `json:"start"`
	End     Time  `json:"end"` // by its declared length
	State   State `json:"state"`
}

// ApplyRequest makes these the markets of the site. Jobs stay in theirs; a
// market with jobs that have not ended cannot go, nor change its classes.
type ApplyRequest struct {
	Markets []Market `json:"markets"`
	DryRun  bool     `json:"dry_run,omitempty"` // check everything, change nothing
	// Key is chosen by the client, once per change: the same key with the same markets gets
	// the same answer, and changes nothing more. Empty: every request is a change.
	Key string `json:"key,omitempty"`
	// Version is the markets version that the change is for: with another, nothing changes.
	// 0: it is for any.
	Version uint64 `json:"version,omitempty"`
}

// Validate reports the first thing wrong with a request.
func (r *ApplyRequest) Validate() error {
	if len(r.Markets) == 0 {
		return Errorf(Invalid, "markets: is empty; a site needs at least one market")
	}
	if len(r.Markets) > MaxMarkets {
		return Errorf(TooLarge, "markets: %d are more than the limit of %d", len(r.Markets), MaxMarkets)
	}
	if r.Key == "" {
		return nil
	}
	return checkLine("key", r.Key, MaxKey)
}

// MaxMarkets bounds the markets of a site.
const MaxMarkets = 1000

// ApplyReply says what was changed.
type ApplyReply struct {
	Added   []Name `json:"added"`
	Changed []Name `json:"changed"`
	Removed []Name `json:"removed"`
	Version uint64 `json:"version"` // of the markets since then
}

// DrainRequest gives a node no more work. Its tasks run to their end, or for Notice at most:
// after that the site ends them, and runs them on other nodes. Undo gives the node work again.
// Remove takes a node that is down off the list.
type DrainRequest struct {
	Node   Name      `json:"node"`
	Notice *Duration `json:"notice,omitempty"`
	Undo   bool      `json:"undo,omitempty"`
	Reason string    `json:"reason,omitempty"` // for operators and users to read
	Remove bool      `json:"remove,omitempty"`
}

// MaxDrainReason bounds the reason for a drain, in bytes.
const MaxDrainReason = 512

// Validate reports the first thing wrong with a request.
func (r *DrainRequest) Validate() error {
	if !ValidName(r.Node) {
		return badName("node", r.Node)
	}
	if r.Notice != nil && *r.Notice < 0 {
		return Errorf(Invalid, "notice: %v must not be negative", *r.Notice)
	}
	if len(r.Reason) > MaxDrainReason || !utf8.ValidString(r.Reason) {
		return Errorf(Invalid, "reason: must be at most %d bytes of text", MaxDrainReason)
	}
	if r.Remove && r.Undo {
		return Errorf(Invalid, "remove: a node is removed or takes work again, not both")
	}
	return nil
}

// DrainReply says how many tasks a node has now, and until when they may run.
type DrainReply struct {
	Node     Name `json:"node"`
	Draining bool `json:"draining"`        // false: it takes work, or was removed
	Until    Time `json:"until,omitempty"` // 0 while it drains: they run to their end
	Tasks    int  `json:"tasks"`
}
