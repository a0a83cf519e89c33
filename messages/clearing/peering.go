package clearing

import "github.com/candor-grid/candor/messages"

// With these verbs, the bank handles its relations with other sites. Operators send reconcile and net; the bank of
// another site sends position.
const (
	VerbReconcile = "reconcile" // ReconcileRequest → ReconcileReply
	VerbNet       = "net"       // CycleRequest → NettingReport
	VerbPosition  = "position"  // CycleRequest → SignedPosition
)

// PeerAccountPrefix is the prefix of the names of a bank's accounts for other sites. No user or project can have such
// a name.
const PeerAccountPrefix = "clearing-"

// ReconcileRequest tells a bank to compare its books with the books of a peer.
type ReconcileRequest struct {
	Peer messages.Name `json:"peer"`
}

// Validate checks the fields of the request.
func (r *ReconcileRequest) Validate() error { return messages.NeedName("peer", r.Peer) }

// ReconcileReply compares two books of this bank with the same books of the peer: the book of this bank's instructions
// to the peer, and the book of the peer's instructions to this bank.
type ReconcileReply struct {
	Peer  messages.Name    `json:"peer"`
	Books []ReconciledBook `json:"books"` // first this site's instructions, then the peer's
	// Totals are this bank's totals, which its operator may confirm. The field Theirs has the peer's totals.
	Totals Totals       `json:"totals"`
	Theirs SignedTotals `json:"theirs"`
	// Adoption is the change that this bank would make if it adopted the peer's totals. It is nil if this bank lost
	// nothing.
	Adoption *Adoption `json:"adoption,omitempty"`
	// Waits is true if this site was restored from a backup and its books with the peer were not compared since. The
	// site trades with the peer only after a comparison has shown that nothing is missing.
	Waits bool `json:"waits,omitempty"`
}

// ReconciledBook compares the two books of one direction: the last number at each bank, the first difference, and how
// many numbers a bank lost, for example by a restore. If only one bank has a number and nothing was lost, the
// instruction or its receipt is in flight.
type ReconciledBook struct {
	Sender     messages.Name   `json:"sender"` // the site that sent the instructions
	Ours       uint64          `json:"ours"`   // the last number in this bank's book
	Theirs     uint64          `json:"theirs"`
	Difference *BookDifference `json:"difference,omitempty"` // nil means that the books agree
	LostHere   uint64          `json:"lost_here,omitempty"`  // how many numbers this bank lost and the peer has
	LostThere  uint64          `json:"lost_there,omitempty"` // how many numbers the peer lost and this bank has
}

// Agrees reports whether the two books are equal.
func (b *ReconciledBook) Agrees() bool {
	return b.Difference == nil && b.LostHere+b.LostThere == 0
}

// BookDifference describes the first line in which two books differ. Number is the number of this line's instruction.
type BookDifference struct {
	Number  uint64       `json:"number"`
	Earlier bool         `json:"earlier"` // the first difference is at this number or an earlier one, which a book no longer has
	Ours    ClearingLine `json:"ours"`
	Theirs  ClearingLine `json:"theirs"`
}

// CycleRequest asks about a closed cycle.
type CycleRequest struct {
	Cycle uint64 `json:"cycle,omitempty"` // the default is the latest
}
