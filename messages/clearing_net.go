package messages

// Position is how a site comes out of a cycle.
type Position struct {
	Site     Name    `json:"site"`
	Cycle    uint64  `json:"cycle"`
	Legs     []Leg   `json:"legs"`     // by peer
	Complete bool    `json:"complete"` // every leg is final
	Net      Credits `json:"net"`      // received minus paid: what the others owe the site
	At       Time    `json:"at"`
}

// Leg is the part of a position that is between two sites.
type Leg struct {
	Peer     Name    `json:"peer"`
	Paid     Credits `json:"paid"`     // by the site to the peer
	Received Credits `json:"received"` // by the site from the peer
	Volume   Credits `json:"volume"`   // the site's payments and charges since the last cycle
	Final    bool    `json:"final"`
}

// SignedPosition is a position, signed by the site's bank.
type SignedPosition struct {
	Position  Position `json:"position"`
	Signature []byte   `json:"signature"`
}

// NettingReport is a cycle of a federation: who owes what after all debts were
// set against one another, and the fewest payments found that settle it.
type NettingReport struct {
	Cycle        uint64       `json:"cycle"`
	Positions    []Position   `json:"positions"`
	Payments     []NetPayment `json:"payments"`
	Volume       Credits      `json:"volume"`       // sum of all payments and charges
	Bilateral    Credits      `json:"bilateral"`    // left after each two sites netted
	Multilateral Credits      `json:"multilateral"` // left after all netted: the sum of the payments
	Missing      []Name       `json:"missing"`      // sites without a final position
	Faults       []string     `json:"faults"`       // legs on which two sites disagree
	Balanced     bool         `json:"balanced"`     // nothing missing, no fault, and the nets sum to 0
}

// NetPayment is what one site pays another, outside the ledgers.
type NetPayment struct {
	From   Name    `json:"from"`
	To     Name    `json:"to"`
	Amount Credits `json:"amount"`
}
