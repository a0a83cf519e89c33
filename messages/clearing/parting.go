package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// VerbPart is a command of operators to part from a peer.
const VerbPart = "part" // PartRequest → PartReply

// PeerStanding is the state of a bank's relation to a peer.
type PeerStanding uint8

// These are the standings of a peer. A new standing is added at the end of the list.
const (
	PeerOpen      PeerStanding = iota
	PeerSuspended              // the peer's bank does not answer: nothing new is agreed until it does
	PeerParting                // nothing new is agreed; existing agreements are settled and paid
	PeerParted                 // no trade at all, until an operator makes it a peer again
)

var standingNames = []string{"open", "suspended", "parting", "parted"}

// String returns the standing's name.
func (s PeerStanding) String() string { return messages.NameOf(standingNames, s, "unknown") }

// MarshalText writes the standing's name.
func (s PeerStanding) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a standing's name.
func (s *PeerStanding) UnmarshalText(b []byte) error {
	return messages.ReadName(s, "standing", standingNames, b)
}

// PartRequest ends the relation with a peer. If the request states no loss, both sites must agree: they settle, and
// part when nothing is owed. If it states a loss, the parting is one-sided and immediate. The loss must be exactly what
// the peer owes, and the bank writes it off.
type PartRequest struct {
	Peer    messages.Name     `json:"peer"`
	Loss    *messages.Credits `json:"loss,omitempty"`
	Account messages.Name     `json:"account,omitempty"` // the account that pays the loss; default: the operator's own
	Reason  string            `json:"reason,omitempty"`  // why only this site ends it
}

// Validate checks the fields of the request.
func (r *PartRequest) Validate() error {
	switch {
	case r.Loss == nil && (r.Account != "" || r.Reason != ""):
		return messages.Errorf(messages.Invalid, "account, reason: are only for a one-sided parting; give the field loss too")
	case r.Loss != nil && (*r.Loss < 0 || *r.Loss > messages.MaxCredits):
		return messages.Errorf(messages.Invalid, "loss: %v must be from 0 to %v credits", *r.Loss, messages.MaxCredits)
	case r.Loss != nil && r.Reason == "":
		return messages.Errorf(messages.Invalid, "reason: is empty; say why the site parts without the peer's agreement")
	}
	account := messages.CheckFreeName("account", r.Account)
	if r.Account == money.SiteAccount {
		account = nil
	}
	return cmp.Or(messages.NeedName("peer", r.Peer), account, messages.CheckLine("reason", r.Reason, MaxClearingReason))
}

// PartReply is the answer to an operator who ends the trade with a peer. It says which credits were returned and which
// are lost, and what the end of the trade still waits for.
type PartReply struct {
	Peer     PeerReply        `json:"peer"`
	Returned messages.Credits `json:"returned"` // credits returned to users, from remittances and from authorisations for jobs there
	Forgone  messages.Credits `json:"forgone"`  // charges for visiting jobs that the peer has not confirmed, and will not pay
	// Authorised and Visits count what an agreed parting waits for: it is complete only when both are 0, the peer owes
	// nothing, and all instructions have been carried out.
	Authorised int `json:"authorised"` // authorisations that the peer may still charge
	Visits     int `json:"visits"`     // authorisations of the peer that are not charged yet
}
