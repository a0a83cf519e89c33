package clearing

import "github.com/candor-grid/candor/messages"

// Position is one site's result of a settlement cycle.
type Position struct {
	Site     messages.Name    `json:"site"`
	Cycle    uint64           `json:"cycle"`
	Legs     []Leg            `json:"legs"`     // by peer
	Complete bool             `json:"complete"` // Final is true for all Legs
	Net      messages.Credits `json:"net"`      // received minus paid: what the other sites owe this site
	At       messages.Time    `json:"at"`
}

// Leg is the part of a position that concerns one peer.
type Leg struct {
	Peer     messages.Name    `json:"peer"`
	Paid     messages.Credits `json:"paid"`     // What this site has paid the peer
	Received messages.Credits `json:"received"` // What the peer has paid this site
	Volume   messages.Credits `json:"volume"`   // the site's payments and charges since the last cycle
	Final    bool             `json:"final"`
}

// SignedPosition is a position, signed by the site's bank.
type SignedPosition struct {
	Position  Position `json:"position"`
	Signature []byte   `json:"signature"`
}

// NettingReport is the result of one cycle, in which the sites of a federation settle their debts together. It says
// what each site owes after opposite debts were subtracted from each other. It also lists a small number of payments
// that settle these amounts.
type NettingReport struct {
	Cycle        uint64           `json:"cycle"`
	Positions    []Position       `json:"positions"`
	Payments     []NetPayment     `json:"payments"`
	Volume       messages.Credits `json:"volume"`       // sum of all payments and charges
	Bilateral    messages.Credits `json:"bilateral"`    // debts that are left if each pair of sites sets its debts against each other
	Multilateral messages.Credits `json:"multilateral"` // debts that are left if all sites do so: the sum of the payments
	Missing      []messages.Name  `json:"missing"`      // sites whose final position is missing
	Faults       []string         `json:"faults"`       // legs on which two sites disagree
	Balanced     bool             `json:"balanced"`     // nothing is missing, there is no fault, and the nets add up to 0
}

// NetPayment is what one site must pay another site after netting. It is paid outside the ledgers.
type NetPayment struct {
	From   messages.Name    `json:"from"`
	To     messages.Name    `json:"to"`
	Amount messages.Credits `json:"amount"`
}
