package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// With these verbs, the bank handles losses from the restore of an older backup. Operators send confirm and adopt; the
// bank of another site sends totals.
const (
	VerbTotals  = "totals"  // Empty → SignedTotals
	VerbConfirm = "confirm" // ConfirmRequest → SignedTotals
	VerbAdopt   = "adopt"   // AdoptRequest → Adoption
)

// Totals are what the bank of Site has recorded about its trade with Peer.
type Totals struct {
	Site     messages.Name `json:"site"`
	Peer     messages.Name `json:"peer"`
	Sent     RunningTotal  `json:"sent"`     // total of Site's instructions, up to the last one with a known outcome
	Received RunningTotal  `json:"received"` // total of Peer's instructions
	// Authorised is the sum that Site may still charge from authorisations of Peer. Latest is the time at which the
	// latest of these authorisations was issued, or 0 if there is none.
	Authorised messages.Credits `json:"authorised"`
	Latest     messages.Time    `json:"latest"`
	Leaving    bool             `json:"leaving"`   // Site has said that it leaves
	Left       bool             `json:"left"`      // Peer has said that it leaves
	Confirmed  bool             `json:"confirmed"` // an operator of Site has signed them
	// At each restore from a backup, a bank gets a higher incarnation number. Peer has signed messages to Site.
	// Incarnation is the highest incarnation number of Peer in these messages.
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// SignedTotals are totals, signed by the bank of their site.
type SignedTotals struct {
	Totals    Totals `json:"totals"`
	Signature []byte `json:"signature"`
}

// The bank of a peer may have lost instructions. It can adopt this bank's totals if an operator of this site has
// confirmed them. ConfirmRequest confirms the totals that the operator has seen.
type ConfirmRequest struct {
	Totals Totals `json:"totals"`
}

// Validate checks the fields of the request.
func (r *ConfirmRequest) Validate() error {
	return cmp.Or(messages.NeedName("site", r.Totals.Site), messages.NeedName("peer", r.Totals.Peer))
}

// AdoptRequest tells a bank that lost instructions to continue from the totals of its peer.
type AdoptRequest struct {
	Totals SignedTotals `json:"totals"`
	// Correction repeats the amount that the operator saw in [Adoption]. No other amount is booked.
	Correction messages.Credits `json:"correction"`
}

// Validate checks the fields of the request.
func (r *AdoptRequest) Validate() error {
	t := &r.Totals.Totals
	if t.Authorised < 0 || t.Authorised > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "authorised: %v is no amount", t.Authorised)
	}
	return cmp.Or(messages.NeedName("site", t.Site), messages.NeedName("peer", t.Peer))
}

// Adoption is the change that adopting a peer's totals makes, or would make.
type Adoption struct {
	Numbers uint64 `json:"numbers"` // how many numbers this bank lost, in both directions
	// Correction is the amount that is booked on the correction account: the account receives it, or pays it if
	// Correction is negative.
	Correction messages.Credits `json:"correction"`
	Returned   messages.Credits `json:"returned"`   // credits returned to users, from payments whose outcome is unknown
	Authorised messages.Credits `json:"authorised"` // the most that the peer may still charge; the correction account pays it
}
