package market

import (
	"time"

	"github.com/candor-grid/candor/messages"
)

// VerbHistory asks the auctioneer for the history of a market or a node.
const VerbHistory = "history" // HistoryRequest → HistoryReply

// MaxHistory is the longest time that a history covers.
const MaxHistory = messages.Duration(7 * 24 * time.Hour)

// HistoryRequest asks for the history of a market or of a node. The request must set either Market or Node, but not
// both.
type HistoryRequest struct {
	Market messages.Name     `json:"market,omitempty"`
	Node   messages.Name     `json:"node,omitempty"`
	Over   messages.Duration `json:"over,omitempty"` // how far back, at most 7 days; 0 means an hour
}

// Validate returns an error for the first fault of a request.
func (r *HistoryRequest) Validate() error {
	switch {
	case (r.Market == "") == (r.Node == ""):
		return messages.Errorf(messages.Invalid, "market: name either a market or a node")
	case r.Market != "" && !messages.ValidFreeName(r.Market):
		return messages.BadFreeName("market", r.Market)
	case r.Node != "" && !messages.ValidName(r.Node):
		return messages.BadName("node", r.Node)
	case r.Over < 0 || r.Over > MaxHistory:
		return messages.Errorf(messages.Invalid, "over: must be from 0 to %v, is %v", MaxHistory, r.Over)
	}
	return nil
}

// HistoryReply is what the auctioneer's leader has recorded about a market or a node. Each list has one entry for each
// step of time: the mean over the step. If the request asks for a longer time, the steps are longer.
type HistoryReply struct {
	Step    messages.Duration `json:"step"`
	Since   messages.Time     `json:"since"` // when the leader began to record; 0: it has recorded nothing yet
	At      []messages.Time   `json:"at"`    // the beginning of each step
	Waiting []int             `json:"waiting"`
	Running []int             `json:"running"` // jobs, like Waiting; empty for a node
	Classes []ClassHistory    `json:"classes"`
	// Own says which part of the market's slots the caller's jobs had, at each time. It is empty if the caller's jobs
	// never had a slot.
	Own []float64 `json:"own"`
}

// ClassHistory is the history of a class of slots. In the history of a node, Price and Pending are -1. [MarketStatus]
// hides some numbers from users. In the answer to a user, the hidden numbers are -1.
type ClassHistory struct {
	Class   messages.Name `json:"class"`
	Price   []float64     `json:"price"` // as in ClassPrice
	Slots   []int         `json:"slots"`
	Used    []int         `json:"used"`
	Pending []int         `json:"pending"` // waiting tasks
}

// VerbPast asks the auctioneer's leader for new parts of the histories of markets and nodes. The other replicas send
// this request, so that they have the histories too.
const VerbPast = "past" // PastRequest → PastReply; replicas of the auctioneer

// PastRequest asks for those parts of the price histories that come after a point in time.
type PastRequest struct {
	From  messages.Time `json:"from"`
	After string        `json:"after,omitempty"` // the field Next of the last reply
}

// PastReply has as many parts of the histories as fit into a reply.
type PastReply struct {
	Now   messages.Time `json:"now"`   // the histories are complete up to this time
	Since messages.Time `json:"since"` // as in HistoryReply
	Parts []Past        `json:"parts"`
	Next  string        `json:"next,omitempty"` // "" means that this is the last page
}

// Past is a part of the history of a market or a node.
type Past struct {
	Key      string          `json:"key"` // "m/" and a market, or "n/" and a node
	Classes  []messages.Name `json:"classes"`
	Steps    []PastSteps     `json:"steps"` // for each kind of step
	Accounts []PastAccount   `json:"accounts,omitempty"`
}

// PastAccount is the part of a market's slots that an account had.
type PastAccount struct {
	Account messages.Name `json:"account"`
	Steps   []PastSteps   `json:"steps"`
}

// PastSteps are steps of one kind, the oldest first.
type PastSteps struct {
	Steps []PastStep `json:"steps"`
}

// PastStep has data of a market or node for one step of time: the number of samples, and the sum of each sampled
// number.
type PastStep struct {
	At      messages.Time `json:"at"` // when the step begins
	Samples int64         `json:"samples"`
	Sums    []int64       `json:"sums"` // -1 means hidden
}
