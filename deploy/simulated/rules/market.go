package rules

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/messages"
)

// These are the names of the mechanisms in the documents of markets.
const (
	HighestBid   = "highest-bid"
	Proportional = "proportional"
	Deadline     = "deadline"
	BatchQueue   = "batch-queue"
	Reservation  = "reservation"
	Contract     = "contract"
	FIFO         = "fifo"
	FairShare    = "fairshare"
	Backfill     = "backfill"
	Karma        = "karma"
)

// These are the ways to measure what a job is worth to its owner.
const (
	ByDelay    = "delay"    // every second from submission to finish costs the owner something
	ByDeadline = "deadline" // the whole value if the job is complete by the deadline, otherwise nothing
	ByDecay    = "decay"    // the whole value if the job is complete within its length; less and less until the deadline
	ByRun      = "run"      // the value if the job is run, less the cost of its waiting
)

// These values of the field HandOver say when a user has the result of a job.
const (
	AtEnd      = "end"      // when the job ends
	AtDeadline = "deadline" // at the deadline that was declared
)

// Market is the document that describes a market. A field that the mechanism does not use must be absent.
type Market struct {
	Name      messages.Name `json:"name"`
	Mechanism string        `json:"mechanism"`
	Worth     string        `json:"worth"` // delay, deadline or run; default: the measure that suits the mechanism
	Bids      bids.Model    `json:"bids"`

	Algorithm string `json:"algorithm,omitempty"` // highest-bid: HB, NPHB, WSPT, WSEPT
	Price     any    `json:"price,omitempty"`     // highest-bid: first, kth, pivot; baselines: credits for a slot-second
	Capped    bool   `json:"capped,omitempty"`    // highest-bid
	// Horizon is the time for which waiting counts in pivot prices. 0 means a day.
	Horizon messages.Duration `json:"horizon,omitempty"`
	Reserve *float64          `json:"reserve,omitempty"` // highest-bid: credits for a slot-second; baselines: the same as price

	// Preemption says what happens to a task whose slot goes to another task. For highest-bid and deadline, it is
	// suspend: the task continues later. In a simulation with all actors, it can also be requeue or cancel.
	Preemption string `json:"preemption,omitempty"`

	Alpha  *float64 `json:"alpha,omitempty"`  // proportional, karma
	SLO    float64  `json:"slo,omitempty"`    // proportional: the least utility, a share of the slots, that every job asks for
	Settle string   `json:"settle,omitempty"` // proportional: on-completion for the paper's charge; absent: charge for slots

	C      int               `json:"C,omitempty"`      // deadline: number of slots; 0: the machine's
	Lambda *float64          `json:"lambda,omitempty"` // deadline
	Rule   string            `json:"rule,omitempty"`   // deadline: paper, monotone
	Scale  float64           `json:"scale,omitempty"`  // deadline: a typical length in units; 0: learned
	Groups int               `json:"groups,omitempty"` // deadline: number of random groups of jobs and slots
	Slot   messages.Duration `json:"slot,omitempty"`   // deadline: unit of time (0: 10 s or more); karma: quantum (0: a minute)
	// HandOver says when a user has a result in a market with the mechanism deadline. The value "deadline" means at the
	// declared deadline; this is the default. The value "end" means when the job has ended. Only an audit uses
	// HandOver.
	HandOver string `json:"hand_over,omitempty"`

	N     int    `json:"N,omitempty"`     // batch-queue, reservation: number of nodes; 0: the machine's
	Nodes int    `json:"nodes,omitempty"` // the other mechanisms: the same
	Mode  string `json:"mode,omitempty"`  // batch-queue: priority, full; reservation: search, fixed; backfill: as variant
	Draws int    `json:"draws,omitempty"` // batch-queue: number of draws; 0: as many as take about a millisecond
	// Expectation is for batch-queue: "exact" enumerates all cases, "drawn" (the default) draws some at random.
	Expectation string  `json:"expectation,omitempty"`
	Seed        *uint64 `json:"seed,omitempty"` // batch-queue, contract: seed of the draws; absent: the study's

	T       int               `json:"T,omitempty"`       // reservation: number of granules in a period
	Granule messages.Duration `json:"granule,omitempty"` // reservation
	Search  *Search           `json:"search,omitempty"`  // reservation
	Orders  int               `json:"orders,omitempty"`  // reservation: the same as search.orders
	Pricing string            `json:"pricing,omitempty"` // reservation: exact, thesis; batch-queue: externality, pivot

	M        int  `json:"M,omitempty"`         // contract: number of replicas
	LateOnly bool `json:"late_only,omitempty"` // contract

	HalfLife *messages.Duration `json:"half_life,omitempty"` // fairshare
	Variant  string             `json:"variant,omitempty"`   // backfill: easy, conservative
}

// Search sets how long a reservation market searches for a schedule.
type Search struct {
	Orders int    `json:"orders"` // number of candidates
	Seed   uint64 `json:"seed"`
}

// common are the parameters that every mechanism has.
var common = []string{"name", "mechanism", "worth", "bids"}

var parameters = map[string][]string{
	HighestBid:   {"nodes", "algorithm", "price", "capped", "reserve", "horizon", "preemption"},
	Proportional: {"nodes", "alpha", "slo", "settle"},
	Deadline:     {"C", "lambda", "rule", "scale", "groups", "slot", "hand_over", "preemption"},
	BatchQueue:   {"N", "mode", "expectation", "draws", "seed", "pricing"},
	Reservation:  {"N", "T", "granule", "search", "orders", "pricing", "mode"},
	Contract:     {"nodes", "M", "seed", "late_only"},
	FIFO:         {"nodes", "price", "reserve"},
	FairShare:    {"nodes", "price", "reserve", "half_life"},
	Backfill:     {"nodes", "price", "reserve", "variant", "mode"},
	Karma:        {"nodes", "price", "reserve", "alpha", "slot"},
}

// Parameters returns the names of a mechanism's own parameters, or nil if there is no such mechanism.
func Parameters(mechanism string) []string { return slices.Clone(parameters[mechanism]) }

// Mechanisms returns the names of all mechanisms.
func Mechanisms() []string {
	return []string{HighestBid, Proportional, Deadline, BatchQueue, Reservation, Contract, FIFO, FairShare, Backfill, Karma}
}

// Slots returns the number of slots of the machine if the market's parameters give it. Otherwise it returns 0.
func (m *Market) Slots() int { return max(m.C, m.N, m.Nodes) }

// Wide reports whether a mechanism starts the tasks of a job together. Other mechanisms run serial tasks.
func Wide(mechanism string) bool {
	return slices.Contains([]string{BatchQueue, Reservation, FIFO, FairShare, Backfill}, mechanism)
}

func (m *Market) defaults() {
	reserve, lambda, alpha := 1.0, 0.6, 0.5
	halfLife := messages.Duration(24 * 3600 * 1e9)
	m.Worth = worthOf(m.Mechanism)
	switch m.Mechanism {
	case HighestBid:
		m.Algorithm, m.Price, m.Reserve = "HB", "kth", &reserve
	case Proportional:
		m.Alpha, m.Bids.Budget = &alpha, 1 // a completed job pays its whole budget
	case Deadline:
		m.Lambda, m.Rule, m.Groups, m.HandOver = &lambda, "monotone", 1, AtDeadline
	case BatchQueue:
		m.Mode, m.Expectation, m.Pricing = "priority", "drawn", "externality"
	case Reservation:
		m.Bids.Deadline.Slack = "none" // the job ends in the period that is sold
		m.Granule, m.T, m.Orders, m.Pricing, m.Mode = messages.Duration(900e9), 96, 200, "exact", "search"
		m.Search = &Search{Orders: m.Orders}
	case Contract:
		m.M = 16
	case FIFO:
		m.Price = 1.0
	case FairShare:
		m.Price, m.HalfLife = 1.0, &halfLife
	case Backfill:
		m.Price, m.Variant = 1.0, "easy"
	case Karma:
		m.Price, m.Alpha = 1.0, &alpha
	}
}

// Some fields have two names in documents. resolve moves a value that was given under the second name to its field. The
// argument `searches` says whether the document has a field "search", which then has precedence over Orders.
func (m *Market) resolve(searches bool) {
	switch m.Mechanism {
	case Reservation:
		if !searches {
			m.Search = &Search{Orders: m.Orders, Seed: 1}
		}
		m.Orders = 0 // Search has the value
	case FIFO, FairShare, Backfill, Karma:
		if m.Reserve != nil {
			m.Price = *m.Reserve
		}
		m.Variant = cmp.Or(m.Mode, m.Variant)
	}
}

func worthOf(mechanism string) string {
	switch mechanism {
	case Deadline, Reservation, Contract:
		return ByDeadline
	case BatchQueue:
		return ByRun
	}
	return ByDelay
}
