package messages

// Verbs of the bank about how it stands with other sites. Reconcile and net
// are of operators; position is of the bank of another site.
const (
	VerbReconcile = "reconcile" // ReconcileRequest → ReconcileReply
	VerbNet       = "net"       // CycleRequest → NettingReport
	VerbPosition  = "position"  // CycleRequest → SignedPosition
)

// PeerAccountPrefix begins the names of the accounts that a bank has for those
// of other sites. No user or project can have such a name.
const PeerAccountPrefix = "clearing-"

// ReconcileRequest has a bank compare its books with those of a peer.
type ReconcileRequest struct {
	Peer Name `json:"peer"`
}

// Validate reports what is wrong with the request in itself.
func (r *ReconcileRequest) Validate() error { return needName("peer", r.Peer) }

// ReconcileReply has the book of each direction.
type ReconcileReply struct {
	Peer  Name             `json:"peer"`
	Books []ReconciledBook `json:"books"` // of this site's instructions, then of the peer's
	// Totals are what this bank has, for its operator to confirm; Theirs is what the peer has.
	Totals Totals       `json:"totals"`
	Theirs SignedTotals `json:"theirs"`
	// Adoption is what comes of adopting Theirs; nil: this bank lost nothing.
	Adoption *Adoption `json:"adoption,omitempty"`
	// Waits says that this site was restored, and trades with the peer only when nothing is lost.
	Waits bool `json:"waits,omitempty"`
}

// ReconciledBook says how far the books of one direction go at each bank, where they
// first differ, and how many numbers a bank lost, as by a backup that is older. Other
// numbers that only one of them has are in flight.
type ReconciledBook struct {
	Sender     Name            `json:"sender"` // whose instructions
	Ours       uint64          `json:"ours"`   // the last number
	Theirs     uint64          `json:"theirs"`
	Difference *BookDifference `json:"difference,omitempty"` // left out: they agree
	LostHere   uint64          `json:"lost_here,omitempty"`  // numbers that the peer has
	LostThere  uint64          `json:"lost_there,omitempty"` // numbers that this bank has
}

// Agrees reports whether the two books are one.
func (b *ReconciledBook) Agrees() bool {
	return b.Difference == nil && b.LostHere+b.LostThere == 0
}

// BookDifference is the first number at which two books differ.
type BookDifference struct {
	Number  uint64       `json:"number"`
	Earlier bool         `json:"earlier"` // it is this number or one before, which a book no longer has
	Ours    ClearingLine `json:"ours"`
	Theirs  ClearingLine `json:"theirs"`
}

// CycleRequest asks about a cycle that was closed.
type CycleRequest struct {
	Cycle uint64 `json:"cycle,omitempty"` // default: the latest
}
