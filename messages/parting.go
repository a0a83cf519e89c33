package messages

import "cmp"

// VerbPart is a command of operators: the site parts from a peer.
const VerbPart = "part" // PartRequest → PartReply

// PeerStanding is the state of a bank's relation to a peer.
type PeerStanding uint8

// The standings. The list is append-only.
const (
	PeerOpen      PeerStanding = iota
	PeerSuspended              // its bank does not answer: nothing new is agreed until it does
	PeerParting                // nothing new is agreed; earlier agreements are settled and paid
	PeerParted                 // nothing at all, until an operator makes it a peer again
)

var standingNames = []string{"open", "suspended", "parting", "parted"}

// String returns the standing's name.
func (s PeerStanding) String() string { return nameOf(standingNames, s, "unknown") }

// MarshalText writes the standing's name.
func (s PeerStanding) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a standing's name.
func (s *PeerStanding) UnmarshalText(b []byte) error {
	return readName(s, "standing", standingNames, b)
}

// PartRequest parts from a peer. Without a loss, both sites agree: they settle, and part when
// nothing is owed any more. With a loss it is one-sided and immediate: the loss, which must be
// exactly what the peer owes, is written off.
type PartRequest struct {
	Peer    Name     `json:"peer"`
	Loss    *Credits `json:"loss,omitempty"`
	Account Name     `json:"account,omitempty"` // the account that bears the loss; default: the operator's own
	Reason  string   `json:"reason,omitempty"`  // why only one side ends it
}

// Validate checks the request without looking at any state.
func (r *PartRequest) Validate() error {
	switch {
	case r.Loss == nil && (r.Account != "" || r.Reason != ""):
		return Errorf(Invalid, "account, reason: are of a one-sided parting; state its loss too")
	case r.Loss != nil && (*r.Loss < 0 || *r.Loss > MaxCredits):
		return Errorf(Invalid, "loss: %v must be from 0 to %v credits", *r.Loss, MaxCredits)
	case r.Loss != nil && r.Reason == "":
		return Errorf(Invalid, "reason: is empty; say why the site parts without the peer's agreement")
	}
	account := checkFreeName("account", r.Account)
	if r.Account == SiteAccount {
		account = nil
	}
	return cmp.Or(needName("peer", r.Peer), account, checkLine("reason", r.Reason, MaxClearingReason))
}

// PartReply is the result of a parting, or what it still waits for.
type PartReply struct {
	Peer     PeerReply `json:"peer"`
	Returned Credits   `json:"returned"` // returned to users: remittances, and authorisations for jobs there
	Forgone  Credits   `json:"forgone"`  // charges for visiting jobs that the peer never confirmed
	// An agreed parting waits for these, and for the debts and instructions of the peer.
	Authorised int `json:"authorised"` // authorisations that the peer may still charge
	Visits     int `json:"visits"`     // authorisations of the peer that are not charged
}
