package mechanism

import "github.com/candor-grid/candor/messages"

// Quoter is a Mechanism that sells contracts: its bids must carry one that it
// quoted, as Bid.Contract. The auctioneer sees to that: it keeps what it quoted,
// and a submission names a quote and a place on it.
type Quoter interface {
	Mechanism
	// Quote makes the menu of contracts of a job that is about to be submitted,
	// or of one of the view. The bid needs Arrived (0: now), Length, Tasks and
	// Valuation; class are types seen of the job's class, of which none may stand
	// for the job itself. The seed must not be known to the bidder before it has
	// bid, nor be another each time that it asks: it would choose its draw. The
	// same one gives the same menu. Nothing changes by it.
	Quote(view *View, bid *Bid, class []messages.Valuation, seed uint64) (*Quote, error)
}

// Quote is a menu.
type Quote struct {
	Contracts []messages.Contract // by completion
	// Declared is the contract that nobody of exactly the declared type likes less
	// than another: to be taken where the bidder has no wish of its own.
	Declared int
	Free     int // the earliest contract that costs nothing
}
