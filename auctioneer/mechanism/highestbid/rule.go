package highestbid

import (
	"time"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Algorithm is the order in which jobs get nodes.
type Algorithm string

// Each algorithm computes a number for each job, and runs the jobs with the largest numbers first. The numbers are:
const (
	HB    Algorithm = "HB"    // by bid, with preemption
	NPHB  Algorithm = "NPHB"  // by bid, without preemption
	WSPT  Algorithm = "WSPT"  // by bid divided by run time
	WSEPT Algorithm = "WSEPT" // by bid divided by estimated run time
)

// Price says what a job pays for a slot.
type Price string

// These are the payment schemes.
const (
	First Price = "first" // the job's own bid
	Kth   Price = "kth"   // the bid of the best waiting job
	Pivot Price = "pivot" // the reserve, and for each overtaken job: its bid for each second of waiting that this saves; only HB
)

// MostRate is the largest bid for a slot-second. Every whole number of microcredits up to MostRate is exact as float64.
const MostRate messages.Credits = 1 << 53

// Rule has a market's algorithm and payment scheme.
type Rule struct {
	Algorithm Algorithm `json:"algorithm"`
	Price     Price     `json:"price"`
	Capped    bool      `json:"capped,omitempty"` // no price is above the own bid, even if the reserve is
}

// Validate refuses an unknown algorithm or price.
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
		return messages.Errorf(messages.Invalid, "price: only algorithm HB can have price %s, not %s", Pivot, r.Algorithm)
	case r.Capped:
		return messages.Errorf(messages.Invalid, "capped: with price %s a job does not pay for each second, so its bid cannot cap a price; leave the field capped out", Pivot)
	}
	return nil
}

func (r Rule) preempts() bool { return r.Algorithm == HB }

// byLength reports whether jobs are ordered and priced by the bid divided by the length.
func (r Rule) byLength() bool { return r.Algorithm == WSPT || r.Algorithm == WSEPT }

// The level is the price that all running jobs share. capsLevel reports whether it can be above the bid of a running
// job, and must then be limited to this bid. Under the algorithm HB, the level is never above the bid of a running job.
func (r Rule) capsLevel() bool {
	return r.Price == Kth && (r.Algorithm == NPHB || r.byLength() && r.Capped)
}

// Some rules divide a bid by the job's length. microseconds returns the divisor: the length in microseconds, at least
// 1. If the rule does not divide bids, microseconds returns 1.
func (r Rule) microseconds(length messages.Duration) uint64 {
	if !r.byLength() {
		return 1
	}
	return uint64(max(length/messages.Duration(time.Microsecond), 1))
}

// PriceOf returns how many credits a job pays for a slot-second under a tariff. The job bids `rate` for a slot-second,
// and declares the length `length`.
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
