package messages

import "cmp"

// Verbs of the bank about losses by restoring an older backup. Operators send confirm and adopt,
// which are commands; the bank of another site sends totals, a query.
const (
	VerbTotals  = "totals"  // Empty → SignedTotals
	VerbConfirm = "confirm" // ConfirmRequest → SignedTotals
	VerbAdopt   = "adopt"   // AdoptRequest → Adoption
)

// Totals are the records of the bank of Site about its trade with Peer.
type Totals struct {
	Site     Name         `json:"site"`
	Peer     Name         `json:"peer"`
	Sent     RunningTotal `json:"sent"`     // total of Site's instructions, up to the last one with a known outcome
	Received RunningTotal `json:"received"` // total of Peer's instructions
	// Authorised is what Site may still charge by authorisations of Peer; Latest is when the
	// latest of these was issued, 0 if there is none.
	Authorised Credits `json:"authorised"`
	Latest     Time    `json:"latest"`
	Leaving    bool    `json:"leaving"`   // Site has said that it leaves
	Left       bool    `json:"left"`      // Peer has said that it leaves
	Confirmed  bool    `json:"confirmed"` // an operator of Site has signed them
	// Incarnation is the latest in which Peer signed anything for Site.
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// SignedTotals are totals, signed by the bank of their site.
type SignedTotals struct {
	Totals    Totals `json:"totals"`
	Signature []byte `json:"signature"`
}

// ConfirmRequest makes a bank confirm the totals that its operator saw, so that the peer can adopt
// them.
type ConfirmRequest struct {
	Totals Totals `json:"totals"`
}

// Validate checks the request without looking at any state.
func (r *ConfirmRequest) Validate() error {
	return cmp.Or(needName("site", r.Totals.Site), needName("peer", r.Totals.Peer))
}

// AdoptRequest makes a bank that lost numbers continue from the totals of the peer.
type AdoptRequest struct {
	Totals SignedTotals `json:"totals"`
	// Correction repeats the amount that [Adoption] showed the operator, so that exactly this is
	// booked.
	Correction Credits `json:"correction"`
}

// Validate checks the request without looking at any state.
func (r *AdoptRequest) Validate() error {
	t := &r.Totals.Totals
	if t.Authorised < 0 || t.Authorised > MaxCredits {
		return Errorf(Invalid, "authorised: %v is no amount", t.Authorised)
	}
	return cmp.Or(needName("site", t.Site), needName("peer", t.Peer))
}

// Adoption is the change, actual or possible, from adopting the totals of a peer.
type Adoption struct {
	Numbers uint64 `json:"numbers"` // numbers that this bank lost, in both directions
	// Correction is the amount that the correction account gets; below 0: the amount that it pays.
	Correction Credits `json:"correction"`
	Returned   Credits `json:"returned"`   // returned to users, from payments with an unknown outcome
	Authorised Credits `json:"authorised"` // the most that the peer may still charge, paid by the correction account
}
