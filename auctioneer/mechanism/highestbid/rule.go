package highestbid

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Algorithm says in which order jobs get nodes.
type Algorithm string

// The algorithms. Each orders jobs with the largest of the named number first.
const (
	HB    Algorithm = "HB"    // by bid, with preemption
	NPHB  Algorithm = "NPHB"  // by bid
	WSPT  Algorithm = "WSPT"  // by bid over run time
	WSEPT Algorithm = "WSEPT" // by bid over estimated run time
)

// Price is a payment scheme.
type Price string

// The payment schemes.
const (
	First Price = "first" // the own bid
	Kth   Price = "kth"   // what the best waiting job bids
	Pivot Price = "pivot" // the reserve, and for each job that waited longer because of this one: its bid for each second that its place spared this job; only HB
)

// MostRate is the largest bid for a slot-second. Up to it, microcredits are exact as float64.
const MostRate messages.Credits = 1 << 53

// Rule has a market's algorithm and payment scheme.
type Rule struct {
	Algorithm Algorithm `json:"algorithm"`
	Price     Price     `json:"price"`
	Capped    bool      `json:"capped,omitempty"` // no price is above the own bid, not even the reserve
}

// Validate refuses names that are not in the lists above.
func (r Rule) Validate() error {
	switch r.Algorithm {
	case HB, NPHB, WSPT, WSEPT:
	default:
		return messages.Errorf(messages.Invalid, "algorithm: must be HB, NPHB, WSPT or WSEPT, is %.64q", string(r.Algorithm))
	}
	switch {
	case r.Price == First || r.Price == Kth:
	case r.Price != Pivot:
		return messages.Errorf(messages.Invalid, "price: must be %q, %q or %q, is %.64q", First, Kth, Pivot, string(r.Price))
	case r.Algorithm != HB:
		return messages.Errorf(messages.Invalid, "price: %s is of algorithm HB, not of %s", Pivot, r.Algorithm)
	case r.Capped:
		return messages.Errorf(messages.Invalid, "capped: with price %s a job does not pay by the second, so its bid cannot cap the price of a second; leave capped out", Pivot)
	}
	return nil
}

// preempts reports whether a running job gives way to a better one.
func (r Rule) preempts() bool { return r.Algorithm == HB }

// byLength reports whether jobs are ordered, and priced, by bid over length.
func (r Rule) byLength() bool { return r.Algorithm == WSPT || r.Algorithm == WSEPT }

// capsLevel reports whether the level can be above the bid of a running job and is then capped. Under
// HB no running job is below the best waiting one.
func (r Rule) capsLevel() bool {
	return r.Price == Kth && (r.Algorithm == NPHB || r.byLength() && r.Capped)
}

// microseconds returns the length by which a bid is divided, at least 1; it is 1 if the rule does not
// divide bids.
func (r Rule) microseconds(length messages.Duration) uint64 {
	if !r.byLength() {
		return 1
	}
	return uint64(max(length/messages.Duration(time.Microsecond), 1))
}

// PriceOf returns what a slot-second costs a job at a tariff, in credits.
func (r Rule) PriceOf(t mechanism.Tariff, reserve, rate messages.Credits, length messages.Duration) float64 {
	price := reserve.Float()
	switch t.Basis {
	case mechanism.OwnBid:
		price = rate.Float()
	case mechanism.AtLevel:
		price = t.Rate.Float() * float64(r.microseconds(length)) / float64(r.microseconds(t.Length))
	}
	if r.Capped || t.Basis == mechanism.AtLevel && r.capsLevel() {
		price = min(price, rate.Float())
	}
	return price
}
