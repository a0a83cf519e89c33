package messages

// Verbs of the bank about what it lost because an older backup was restored. Repair is
// a command of operators; statements is a query of the bank of another site, which asks
// for what it lost itself.
const (
	VerbRepair     = "repair"     // RepairRequest → RepairReply
	VerbStatements = "statements" // StatementsRequest → Statements
)

// MaxStatements bounds the instructions of one direction in one [Statements], and the
// authorisations.
const MaxStatements = 8192

// StatementsRequest asks a peer for what the asking bank has lost.
type StatementsRequest struct {
	Received uint64 `json:"received"` // the last instruction of the peer that the asking bank has
	Sent     uint64 `json:"sent"`     // the last instruction of its own whose outcome it has
}

// Carried is an instruction that was carried out, and its outcome.
type Carried struct {
	Instruction Instruction    `json:"instruction"`
	Outcome     TransferResult `json:"outcome"`
}

// Statements are what a bank kept of its trade with a peer, for that peer. The peer's own
// signatures prove them: the digest of each book covers all instructions and outcomes
// before, and the latest message and receipt of the peer have that digest.
type Statements struct {
	Site           Name                  `json:"site"` // whose books they are from
	Peer           Name                  `json:"peer"` // who asks
	To             []Carried             `json:"to"`   // instructions of the site, up to the last of Receipt
	Receipt        *SignedReceipt        `json:"receipt,omitempty"`
	From           []Carried             `json:"from"` // instructions of the peer, up to the total that Instructions names
	Instructions   *SignedInstructions   `json:"instructions,omitempty"`
	Authorisations []SignedAuthorisation `json:"authorisations"` // of the peer, that are open or were charged in To
}

// RepairRequest has a bank enter again what it lost, as its plan in [ReconcileReply] says.
type RepairRequest struct {
	Peer Name `json:"peer"`
	// Account bears what the accounts of users cannot; default: the caller's own.
	Account Name   `json:"account,omitempty"`
	Digest  []byte `json:"digest"` // of the plan: what is entered is what was shown
}

// Validate reports what is wrong with the request in itself.
func (r *RepairRequest) Validate() error {
	if len(r.Digest) != 32 {
		return Errorf(Invalid, "digest: has %d bytes and must have 32; take it from the plan of reconcile", len(r.Digest))
	}
	if err := needName("peer", r.Peer); err != nil {
		return err
	}
	return checkName("account", r.Account)
}

// RepairPlan is what a repair enters, in order.
type RepairPlan struct {
	Digest   []byte         `json:"digest"`
	Changes  []RepairChange `json:"changes"`
	Numbers  int            `json:"numbers"`            // that are entered again
	Borne    Credits        `json:"borne"`              // by the operator's account: it must have as much
	Unproven []string       `json:"unproven,omitempty"` // why a part cannot be entered
}

// RepairChange is what a repair does to an account of this site.
type RepairChange struct {
	Sender  Name            `json:"sender"` // of the instruction
	Number  uint64          `json:"number"` // of the instruction; 0: an authorisation that the peer may still charge
	Kind    InstructionKind `json:"kind"`
	Account Name            `json:"account"`
	Amount  Credits         `json:"amount"`          // that the account gets; below 0: that it pays
	Held    bool            `json:"held,omitempty"`  // it is set aside, not paid yet
	Borne   bool            `json:"borne,omitempty"` // the operator's account stands in for a user's
}

// RepairReply is what a repair has entered, and the peer after it.
type RepairReply struct {
	Peer PeerReply  `json:"peer"`
	Done RepairPlan `json:"done"`
}
