package messages

// Verbs of the bank about its relations with other sites. Operators send reconcile and net; the
// bank of another site sends position.
const (
	VerbReconcile = "reconcile" // ReconcileRequest → ReconcileReply
	VerbNet       = "net"       // CycleRequest → NettingReport
	VerbPosition  = "position"  // CycleRequest → SignedPosition
)

// PeerAccountPrefix begins the names of a bank's accounts for other sites. No user or project can
// have such a name.
const PeerAccountPrefix = "clearing-"

// ReconcileRequest tells a bank to compare its books with the books of a peer.
type ReconcileRequest struct {
	Peer Name `json:"peer"`
}

// Validate checks the request without looking at any state.
func (r *ReconcileRequest) Validate() error { return needName("peer", r.Peer) }

// ReconcileReply has the books of both directions.
type ReconcileReply struct {
	Peer  Name             `json:"peer"`
	Books []ReconciledBook `json:"books"` // first this site's instructions, then the peer's
	// Totals are this bank's totals, which its operator may confirm; Theirs are the peer's.
	Totals Totals       `json:"totals"`
	Theirs SignedTotals `json:"theirs"`
	// Adoption is what would change if this bank adopted Theirs; nil: this bank lost nothing.
	Adoption *Adoption `json:"adoption,omitempty"`
	// Waits says that this site was restored, and trades with the peer only when nothing is lost.
	Waits bool `json:"waits,omitempty"`
}

// ReconciledBook compares the books of one direction: how far they go at each bank, where they
// first differ, and how many numbers a bank lost, for example by restoring an older backup. Other
// numbers that only one bank has are in flight.
type ReconciledBook struct {
	Sender     Name            `json:"sender"` // the site that sent the instructions
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
	Earlier bool         `json:"earlier"` // the first difference is at this number or before; a book no longer has the earlier ones
	Ours    ClearingLine `json:"ours"`
	Theirs  ClearingLine `json:"theirs"`
}

// CycleRequest asks about a cycle that was closed.
type CycleRequest struct {
	Cycle uint64 `json:"cycle,omitempty"` // default: the latest
}
