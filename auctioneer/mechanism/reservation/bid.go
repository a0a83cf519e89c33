package reservation

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Bid asks for Length consecutive granules (units of time) on Width nodes, which must end by Deadline.
type Bid struct {
	Length   int
	Deadline int
	Value    float64 // what a reservation is worth to the bidder
	Width    int     // number of nodes; only in a problem with Nodes
}

// Problem is a period of Horizon granules that is for sale, with its bids.
type Problem struct {
	Nodes   int // number of nodes, or 0 if every bid takes the whole machine
	Horizon int
	Bids    []Bid
}

// Limits of a problem.
const (
	LargestValue = 1e15
	LargestTime  = 1 << 50
)

func (p *Problem) wide() bool { return p.Nodes > 0 }

// Check returns an error if a problem is invalid. The error names the wrong field by its name in the document of
// SolveDocument.
func (p *Problem) Check() error {
	if p.Nodes < 0 || p.Nodes > math.MaxInt32 {
		return casefile.Invalid("N", "must be a number of nodes from 1 to %d, is %d", math.MaxInt32, p.Nodes)
	}
	if p.Horizon < 0 || p.Horizon > LargestTime {
		return casefile.Invalid("T", "must be from 0 to %d, is %d", int64(LargestTime), p.Horizon)
	}
	for i, bid := range p.Bids {
		if err := p.checkBid("bids["+strconv.Itoa(i)+"].", bid); err != nil {
			return err
		}
	}
	return nil
}

func (p *Problem) checkBid(place string, bid Bid) error {
	switch {
	case bid.Length < 0 || bid.Length > LargestTime:
		return casefile.Invalid(place+"l", "must be from 0 to %d, is %d", int64(LargestTime), bid.Length)
	case bid.Deadline < 0 || bid.Deadline > LargestTime:
		return casefile.Invalid(place+"d", "must be from 0 to %d, is %d", int64(LargestTime), bid.Deadline)
	case !(bid.Value >= 0 && bid.Value <= LargestValue): // written so that NaN is refused too
		return casefile.Invalid(place+"v", "must be from 0 to %g, is %g", LargestValue, bid.Value)
	case p.wide() && (bid.Width < 1 || bid.Width > math.MaxInt32):
		return casefile.Invalid(place+"n", "must be from 1 to %d nodes, is %d", math.MaxInt32, bid.Width)
	case !p.wide() && bid.Width != 0:
		return casefile.Invalid(place+"n", "a width needs the size of the machine: give N")
	}
	return nil
}

// latest returns the latest time at which a bid may end, in granules (the units of time of the auction).
func (p *Problem) latest(i int) int { return min(p.Bids[i].Deadline, p.Horizon) }

func (p *Problem) fits(i int) bool {
	return p.Bids[i].Length <= p.latest(i) && p.Bids[i].Width <= p.Nodes
}

// Lost is the start of a bid that is not served.
const Lost = -1

// Outcome is a schedule and its prices, by position in Problem.Bids.
type Outcome struct {
	Value    float64   // sum of the values of the served bids
	Start    []int     // Lost if the bid is not served
	Without  []float64 // by bid: value of the best schedule if this bid's value is not counted
	Payments []float64 // from 0 to the bid's value; 0 if the bid is not served
}

// Winners returns the served bids, in ascending order.
func (o *Outcome) Winners() []int { return met(o.Start) }

func met(start []int) []int {
	bids := []int{}
	for i, at := range start {
		if at != Lost {
			bids = append(bids, i)
		}
	}
	return bids
}

// newOutcome makes an outcome. For each winner, the argument `without` has the highest value of a schedule in which the
// winner's bid is not counted.
func newOutcome(m *money, start []int, value int64, without []int64) *Outcome {
	o := &Outcome{
		Value: m.float(value), Start: start,
		Without: make([]float64, len(start)), Payments: make([]float64, len(start)),
	}
	for i, at := range start {
		if at == Lost { // without this bid the best schedule has the same value
			o.Without[i] = o.Value
			continue
		}
		o.Without[i] = m.float(without[i])
		o.Payments[i] = m.float(without[i] - (value - m.amounts[i]))
	}
	return o
}
