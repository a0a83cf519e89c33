package rules

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/messages"
)

// The mechanisms, by the names that markets call them.
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

// The ways in which a job is worth something to its owner.
const (
	ByDelay    = "delay"    // every second from submission to finish costs
	ByDeadline = "deadline" // the whole value if complete by the deadline, otherwise nothing
	ByDecay    = "decay"    // the whole value if complete as soon as its length says, falling to nothing at the deadline
	ByRun      = "run"      // the value if it is run, less what waiting costs
)

// When a user has the result of a job.
const (
	AtEnd      = "end"      // when the job ends
	AtDeadline = "deadline" // at the deadline that was declared
)

// Market is the document. Fields that a mechanism has no use for must be absent.
type Market struct {
	Name      messages.Name `json:"name"`
	Mechanism string        `json:"mechanism"`
	Worth     string        `json:"worth"` // delay, deadline or run; default: the one that suits the mechanism
	Bids      bids.Model    `json:"bids"`

	Algorithm string `json:"algorithm,omitempty"` // highest-bid: HB, NPHB, WSPT, WSEPT
	Price     any    `json:"price,omitempty"`     // highest-bid: first, kth, pivot; baselines: credits for a slot-second
	Capped    bool   `json:"capped,omitempty"`    // highest-bid
	// Horizon is, of price pivot, for how long waiting counts in prices; 0: a day.
	Horizon messages.Duration `json:"horizon,omitempty"`
	Reserve *float64          `json:"reserve,omitempty"` // highest-bid: credits for a slot-second; baselines: the same as price, as markets of a site call it

	// Preemption says what happens to a task whose slot goes to another. For highest-bid and
	// deadline: suspend (it continues later), or with all actors also requeue or cancel.
	Preemption string `json:"preemption,omitempty"`

	Alpha  *float64 `json:"alpha,omitempty"`  // proportional, karma
	SLO    float64  `json:"slo,omitempty"`    // proportional: the least utility, a share of the slots, that every job asks for
	Settle string   `json:"settle,omitempty"` // proportional: on-completion for the paper's charge; absent: charge for slots

	C      int               `json:"C,omitempty"`      // deadline: slots; 0: the machine's
	Lambda *float64          `json:"lambda,omitempty"` // deadline
	Rule   string            `json:"rule,omitempty"`   // deadline: paper, monotone
	Scale  float64           `json:"scale,omitempty"`  // deadline: a typical length in units; 0: learned
	Groups int               `json:"groups,omitempty"` // deadline: random groups of jobs and slots
	Slot   messages.Duration `json:"slot,omitempty"`   // deadline: a unit of time; 0: ten seconds or more; karma: a quantum, 0: a minute
	// HandOver says when a user has a result; deadline: deadline, at the deadline
	// declared (the default), or end, when the job has ended. Only an audit tells the two apart.
	HandOver string `json:"hand_over,omitempty"`

	N     int    `json:"N,omitempty"`     // batch-queue, reservation: nodes; 0: the machine's
	Nodes int    `json:"nodes,omitempty"` // the others: the same
	Mode  string `json:"mode,omitempty"`  // batch-queue: priority, full; reservation: search, fixed; backfill: the same as variant, as markets of a site call it
	Draws int    `json:"draws,omitempty"` // batch-queue; 0: the number of draws that take about a millisecond
	// Expectation is "exact" to enumerate, "drawn" (the default) to draw; batch-queue.
	Expectation string  `json:"expectation,omitempty"`
	Seed        *uint64 `json:"seed,omitempty"` // batch-queue, contract: of draws; absent: the study's

	T       int               `json:"T,omitempty"`       // reservation: granules of a period
	Granule messages.Duration `json:"granule,omitempty"` // reservation
	Search  *Search           `json:"search,omitempty"`  // reservation
	Orders  int               `json:"orders,omitempty"`  // reservation: the same as search.orders
	Pricing string            `json:"pricing,omitempty"` // reservation: exact, thesis; batch-queue: externality, pivot

	M        int  `json:"M,omitempty"`         // contract: replicas
	LateOnly bool `json:"late_only,omitempty"` // contract

	HalfLife *messages.Duration `json:"half_life,omitempty"` // fairshare
	Variant  string             `json:"variant,omitempty"`   // backfill: easy, conservative
}

// Search bounds a reservation market's search for a schedule.
type Search struct {
	Orders int    `json:"orders"` // candidates
	Seed   uint64 `json:"seed"`
}

// common are the parameters of every mechanism.
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

// Parameters returns the names of a mechanism's own parameters; nil if there is no such mechanism.
func Parameters(mechanism string) []string { return slices.Clone(parameters[mechanism]) }

// Mechanisms returns all names.
func Mechanisms() []string {
	return []string{HighestBid, Proportional, Deadline, BatchQueue, Reservation, Contract, FIFO, FairShare, Backfill, Karma}
}

// Slots returns the machine's number of slots if the market gives it; 0 otherwise.
func (m *Market) Slots() int { return max(m.C, m.N, m.Nodes) }

// Wide reports whether a mechanism runs gangs. The others run serial tasks.
func Wide(mechanism string) bool {
	return slices.Contains([]string{BatchQueue, Reservation, FIFO, FairShare, Backfill}, mechanism)
}

// defaults sets the fields that the document does not give.
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
		m.Bids.Deadline.Slack = "none" // by the end of the period that is sold
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

// resolve moves values given under synonyms to their fields. searches: the document configures the
// search.
func (m *Market) resolve(searches bool) {
	switch m.Mechanism {
	case Reservation:
		if !searches {
			m.Search = &Search{Orders: m.Orders, Seed: 1}
		}
		m.Orders = 0 // said by Search
	case FIFO, FairShare, Backfill, Karma:
		if m.Reserve != nil {
			m.Price = *m.Reserve
		}
		m.Variant = cmp.Or(m.Mode, m.Variant)
	}
}

// worthOf returns the measure of welfare for a mechanism, unless the document gives one.
func worthOf(mechanism string) string {
	switch mechanism {
	case Deadline, Reservation, Contract:
		return ByDeadline
	case BatchQueue:
		return ByRun
	}
	return ByDelay
}
