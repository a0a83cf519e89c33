package messages

import "cmp"

// Verbs of the bank about what it lost because an older backup was restored. Confirm and
// adopt are commands of operators; totals is a query of the bank of another site.
const (
	VerbTotals  = "totals"  // Empty → SignedTotals
	VerbConfirm = "confirm" // ConfirmRequest → SignedTotals
	VerbAdopt   = "adopt"   // AdoptRequest → Adoption
)

// Totals are what the bank of Site has of its trade with Peer.
type Totals struct {
	Site     Name         `json:"site"`
	Peer     Name         `json:"peer"`
	Sent     RunningTotal `json:"sent"`     // of the instructions of Site, up to the last whose outcome it knows
	Received RunningTotal `json:"received"` // of the instructions of Peer
	// Authorised is what Site may still charge by authorisations of Peer; Latest is when the
	// latest of these was issued, 0 if there is none.
	Authorised Credits `json:"authorised"`
	Latest     Time    `json:"latest"`
	Leaving    bool    `json:"leaving"`   // Site has said that it parts
	Left       bool    `json:"left"`      // Peer has said that it parts
	Confirmed  bool    `json:"confirmed"` // an operator of Site has signed them
	// Incarnation is the latest in which Peer signed anything for Site.
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// SignedTotals are totals, signed by the bank of their site.
type SignedTotals struct {
	Totals    Totals `json:"totals"`
	Signature []byte `json:"signature"`
}

// ConfirmRequest has a bank hold to the totals that its operator saw, for the peer to adopt.
type ConfirmRequest struct {
	Totals Totals `json:"totals"`
}

// Validate reports what is wrong with the request in itself.
func (r *ConfirmRequest) Validate() error {
	return cmp.Or(needName("site", r.Totals.Site), needName("peer", r.Totals.Peer))
}

// AdoptRequest has a bank that lost numbers go on from the totals of the peer.
type AdoptRequest struct {
	Totals SignedTotals `json:"totals"`
	// Correction is what [Adoption] says: what is booked is what the operator saw.
	Correction Credits `json:"correction"`
}

// Validate reports what is wrong with the request in itself.
func (r *AdoptRequest) Validate() error {
	t := &r.Totals.Totals
	if t.Authorised < 0 || t.Authorised > MaxCredits {
		return Errorf(Invalid, "authorised: %v is no amount", t.Authorised)
	}
	return cmp.Or(needName("site", t.Site), needName("peer", t.Peer))
}

// Adoption is what comes, or would come, of adopting the totals of a peer.
type Adoption struct {
	Numbers uint64 `json:"numbers"` // that this bank lost, of both directions
	// Correction is what the correction account gets; below 0: what it pays.
	Correction Credits `json:"correction"`
	Returned   Credits `json:"returned"`   // to users, from payments of which it is not known what became
	Authorised Credits `json:"authorised"` // that the peer may still charge to the correction account
}
