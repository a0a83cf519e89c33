package market

import "github.com/candor-grid/candor/messages"

// VerbWhatIf asks the auctioneer what another bid for a job would change now.
const VerbWhatIf = "whatif" // WhatIfRequest → WhatIfReply

// WhatIfRequest asks what another bid for the caller's job would change now. It changes nothing.
type WhatIfRequest struct {
	Job messages.JobID   `json:"job"`
	Bid messages.Credits `json:"bid,omitempty"` // the other bid; 0 means the present bid
}

// Validate returns an error for the first fault of a request.
func (r *WhatIfRequest) Validate() error {
	switch {
	case r.Job == 0:
		return messages.Errorf(messages.Invalid, "job: give the number of a job")
	case r.Bid < 0 || r.Bid > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "bid: must be above 0 and at most %v credits, or 0 for the present bid; is %v", messages.MaxCredits, r.Bid)
	}
	return nil
}

// A what-if asks what a change of a bid would do. These are the fields of a bid that it can change.
const (
	TermBudget = "budget" // credits
	TermRate   = "rate"   // credits for a slot-second
)

// WhatIfReply compares the market's decisions at the job's present bid and at another bid. Everything else stays the
// same.
type WhatIfReply struct {
	Job     messages.JobID `json:"job"`
	Term    string         `json:"term"`    // field of the bid: [TermBudget] or [TermRate]
	Message string         `json:"message"` // why there is no answer; "" if there is one
	Now     *BidOutcome    `json:"now,omitempty"`
	Then    *BidOutcome    `json:"then,omitempty"`
}

// BidOutcome is what a market decides for a job.
type BidOutcome struct {
	Bid     messages.Credits  `json:"bid"`
	Reason  string            `json:"reason"` // as in WhyReply
	Message string            `json:"message"`
	Classes []ClassBidOutcome `json:"classes"` // classes for which the job has tasks
}

// ClassBidOutcome is the result for a job in one class of slots.
type ClassBidOutcome struct {
	Class messages.Name `json:"class"`
	Share float64       `json:"share"` // part of the slots, from 0 to 1
	Slots float64       `json:"slots"` // number of slots in this share
	Price float64       `json:"price"` // as in ClassPrice
	// PerSecond means the same as in ClassPrice.
	PerSecond bool `json:"per_second,omitempty" since:"2"`
}
