package batchqueue

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages"
)

// Mode says which part of a type is drawn.
type Mode string

// These are the modes in which expected externalities are computed.
const (
	// Priority draws only values and costs of delay; lengths and widths are as announced.
	Priority Mode = "priority"
	// Full draws the whole type of each job: its value and cost of delay, and also its length and width.
	Full Mode = "full"
)

// Expectation says how to compute the expected externalities.
type Expectation struct {
	Mode   Mode
	Priors []Prior // what is believed about each job, by position in the queue
	Exact  bool    // enumerate all cases; all priors must have Points
	Draws  int     // number of draws, if not Exact
	Seed   uint64  // seed of the draws
}

// MaxDraws bounds Expectation.Draws.
const MaxDraws = 1 << 24

// Payments has what jobs pay (positive) and receive (negative), by position in the queue.
type Payments struct {
	// Externality is G_j: what the others can expect to gain in total, given what job j announces.
	Externality []float64
	// Net has the net payments. Their floating-point sum is exactly 0, in any order.
	Net []float64
	// Errors are the standard errors of Net: 0 if the expectation is exact, NaN with a single
	// draw.
	Errors []float64
}

// Pay computes the payments for a queue.
func Pay(q *Queue, e *Expectation) (*Payments, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if err := e.check(q); err != nil {
		return nil, err
	}
	n := len(q.Jobs)
	out := &Payments{Externality: make([]float64, n), Net: make([]float64, n), Errors: make([]float64, n)}
	if n < 2 {
		return out, nil
	}
	var err error
	if e.Exact {
		out.Externality, err = expect(q, e)
	} else {
		out.Externality, out.Errors, err = estimate(q, e)
	}
	if err != nil {
		return nil, err
	}
	transfer(out.Net, out.Externality)
	balance(out.Net)
	return out, nil
}

func (e *Expectation) check(q *Queue) error {
	if e.Mode != Priority && e.Mode != Full {
		return casefile.Invalid("mode", "must be %q or %q, is %.64q", Priority, Full, e.Mode)
	}
	if len(e.Priors) != len(q.Jobs) {
		return casefile.Invalid("distributions", "must be one for each of the %d jobs, there are %d", len(q.Jobs), len(e.Priors))
	}
	for i := range e.Priors {
		if i > 1 && same(e.Priors[i], e.Priors[i-1]) {
			continue
		}
		if err := e.Priors[i].check(q, i, e.Mode == Priority); err != nil {
			return err
		}
		if e.Exact && len(e.Priors[i].Points) == 0 {
			return casefile.Invalid(at("distributions", i), "an exact expectation needs finitely many types: give them, or a number of draws")
		}
	}
	if e.Exact {
		return nil
	}
	if e.Draws < 1 || e.Draws > MaxDraws {
		return casefile.Invalid("draws", "must be from 1 to %d, is %d", MaxDraws, e.Draws)
	}
	return nil
}

// transfer sets what each job pays: the mean externality of the other jobs minus the job's own externality.
func transfer(net, externality []float64) {
	sum := 0.0
	for _, g := range externality {
		sum += g
	}
	others := float64(len(externality) - 1)
	for i, g := range externality {
		net[i] = (sum-g)/others - g
	}
}

// The externality of a job is what it costs or gains the other jobs. among returns the payments of the given jobs to
// one another. These payments depend only on the externalities of these jobs.
func among(externality []float64, jobs []int) []float64 {
	of := make([]float64, len(jobs))
	for k, i := range jobs {
		of[k] = externality[i]
	}
	net := make([]float64, len(jobs))
	if len(jobs) > 1 {
		transfer(net, of)
		balance(net)
	}
	return net
}

// balance rounds payments so that their sum is exactly zero. It rounds to multiples of a power of two, so that each
// partial sum fits into 53 bits. The remainder, less than one unit for each payment, goes to the first payment.
func balance(net []float64) {
	all := 0.0
	for _, x := range net {
		all += math.Abs(x)
	}
	if all == 0 || math.IsInf(all, 0) || math.IsNaN(all) {
		return
	}
	_, exponent := math.Frexp(all) // so all payments are below 2^exponent
	unit := exponent - 52          // one of the 53 bits is left for the rounding
	rest := 0.0
	for i, x := range net {
		whole := math.RoundToEven(math.Ldexp(x, -unit))
		rest -= whole
		net[i] = math.Ldexp(whole, unit)
	}
	net[0] += math.Ldexp(rest, unit)
	for i := range net {
		net[i] += 0 // turns −0 into 0
	}
}

// Microcredits rounds each payment, which is in credits, half to even to the microcredit. The rounded payments may not
// sum to zero. The difference goes to the first payment, so that the sum is zero.
func Microcredits(net []float64) ([]messages.Credits, error) {
	out := make([]messages.Credits, len(net))
	var rest messages.Credits
	for i, x := range net {
		c, ok := messages.RoundCredits(x)
		if !ok {
			return nil, messages.Errorf(messages.TooLarge, "payments[%d]: %g is not an amount of at most %v credits", i, x, messages.MaxCredits)
		}
		out[i], rest = c, rest-c
	}
	if len(out) > 0 {
		out[0] += rest
	}
	return out, nil
}
