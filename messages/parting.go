package messages

import "cmp"

// VerbPart is a command of operators: the site parts from a peer.
const VerbPart = "part" // PartRequest → PartReply

// PeerStanding says what a bank does with a peer.
type PeerStanding uint8

// The standings. The list is append-only.
const (
	PeerOpen      PeerStanding = iota
	PeerSuspended              // its bank is silent: nothing new until it answers
	PeerParting                // nothing new; what was agreed before is settled and paid
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

// PartRequest parts from a peer. Without a loss the parting is agreed: both sites
// settle, and part when nothing is owed any more. With a loss it is one-sided and
// immediate: the loss, which must be exactly what the peer owes, is written off.
type PartRequest struct {
	Peer    Name     `json:"peer"`
	Loss    *Credits `json:"loss,omitempty"`
	Account Name     `json:"account,omitempty"` // which bears the loss; default: the operator's own
	Reason  string   `json:"reason,omitempty"`  // of a one-sided parting
}

// Validate reports what is wrong with the request in itself.
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

// PartReply is what a parting came to, or what it waits for.
type PartReply struct {
	Peer     PeerReply `json:"peer"`
	Returned Credits   `json:"returned"` // to users: remittances, and authorisations for jobs there
	Forgone  Credits   `json:"forgone"`  // charges for visiting jobs that the peer never confirmed
	// What an agreed parting also waits for, next to the debts and instructions of the peer.
	Authorised int `json:"authorised"` // authorisations that the peer may still charge
	Visits     int `json:"visits"`     // authorisations of the peer that are not charged
}
