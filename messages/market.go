package messages

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The mechanisms that a market can name.
const (
	Proportional = "proportional"
	HighestBid   = "highest-bid"
	DeadlineBid  = "deadline"
	BatchQueue   = "batch-queue"
	Reservation  = "reservation"
	ContractMenu = "contract"
	FIFO         = "fifo"
	FairShare    = "fairshare"
	Backfill     = "backfill"
)

// What happens to a task whose slot goes to another.
const (
	PreemptSuspend = "suspend" // it is stopped where it is, and goes on there
	PreemptRequeue = "requeue" // it is ended, and run again from its beginning
	PreemptCancel  = "cancel"  // its job is ended
)

// SettleOnCompletion has jobs charged when they are completed; see Market.Settle.
const SettleOnCompletion = "on-completion"

// Market describes one market of a site: a mechanism, its parameters, and the
// classes of slots it allocates. A parameter that its mechanism has no use for
// must be left out.
type Market struct {
	Name      Name     `json:"name"`
	Mechanism Name     `json:"mechanism"`
	Classes   []Name   `json:"classes"`
	TimeLimit Duration `json:"time_limit,omitempty"` // the time limit of an attempt, if the job names none; 0: no limit
	// Alpha is the exponent of the proportional share, in [0, 1]; nil: 1/2.
	Alpha *float64 `json:"alpha,omitempty"`

	// Nodes are the nodes whose slots the market allocates; empty: all nodes with its
	// classes.
	Nodes []Name `json:"nodes,omitempty"`
	// Reserve is the least price of a slot-second; in markets with a posted price it is
	// the price. nil: a credit.
	Reserve    *Credits `json:"reserve,omitempty"`
	Algorithm  string   `json:"algorithm,omitempty"`  // highest-bid: HB (default), NPHB or WSEPT
	Price      string   `json:"price,omitempty"`      // highest-bid: kth (default) or first
	Capped     bool     `json:"capped,omitempty"`     // highest-bid: no job pays more than its own bid
	Preemption string   `json:"preemption,omitempty"` // suspend (default), requeue or cancel

	Lambda *float64 `json:"lambda,omitempty"` // deadline: how much finished work protects a job, in [0, 1]; nil: 0.6
	Slot   Duration `json:"slot,omitempty"`   // deadline: the unit of time of decisions; 0: 10 s
	Scale  float64  `json:"scale,omitempty"`  // deadline: a typical length in slots; 0: 32

	// Mode is, of backfill, easy (default) or conservative; of batch-queue what of
	// others' declarations is taken to be unknown: priority, their values and costs
	// of delay (default), or full, their lengths and widths too.
	Mode  string   `json:"mode,omitempty"`
	Draws int      `json:"draws,omitempty"` // batch-queue: draws of an expectation; 0: 1,000, fewer in a long queue
	Cycle Duration `json:"cycle,omitempty"` // reservation: the period that is sold at once; 0: a day
	// Granule is the unit of time of reservations; 0: 15 min.
	Granule Duration `json:"granule,omitempty"`
	Orders  int      `json:"orders,omitempty"` // reservation: the number of candidate schedules; 0: 2,000

	HalfLife Duration `json:"half_life,omitempty"` // fairshare: the time after which past use counts half; 0: a day
	// GangTimeout is how long the tasks of a gang wait until all are claimed; then they
	// are given back. 0: 10 s.
	GangTimeout Duration `json:"gang_timeout,omitempty"`

	Quote    Duration `json:"quote,omitempty"`     // contract: how long a menu is valid; 0: 5 min
	Replicas int      `json:"replicas,omitempty"`  // contract: types in a matching; 0: the mechanism's
	LateOnly bool     `json:"late_only,omitempty"` // contract: an early job pays the agreed price

	MaxJobs  int `json:"max_jobs,omitempty"`  // the active jobs of an account; 0: no bound
	MaxTasks int `json:"max_tasks,omitempty"` // of one job; 0: no bound

	// Prior are the types to assume while nothing is known of a job's class of
	// valuation; contract. None: values from 1 to 100 credits, times from ten seconds
	// to a day.
	Prior []Valuation `json:"prior,omitempty" msgpack:"-"`
	// PriorJobs are the declarations to assume while too few jobs have been seen;
	// batch-queue. None: the declarations of the jobs in the market.
	PriorJobs []QueuedType `json:"prior_jobs,omitempty" msgpack:"-"`
	// Weights are by account; fairshare. 1 where none is given.
	Weights Weights `json:"weights,omitempty" msgpack:"-"`

	// Settle is, of proportional, deadline and contract, "on-completion" for the paper's
	// charge, which a job that is not completed escapes; "": jobs owe for what they had.
	Settle string `json:"settle,omitempty" msgpack:"-"`
}

// QueuedType is what a job of a batch queue may declare.
type QueuedType struct {
	Value  Credits  `json:"value,omitempty"`
	Delay  Credits  `json:"delay,omitempty"` // cost of a second
	Length Duration `json:"length,omitempty"`
	Width  int      `json:"width,omitempty"`  // slots; 0: 1
	Weight float64  `json:"weight,omitempty"` // the relative likelihood; 0: 1
}

// Limits on a market's parameters.
const (
	MaxMarketNodes = 100_000
	MaxReplicas    = 10_000
	MaxDrawn       = 1_000_000
	MaxOrders      = 1_000_000
	MaxPrior       = 4096 // types that are thought likely
)

// ReservePrice is the market's reserve, with the default filled in.
func (m *Market) ReservePrice() Credits {
	if m.Reserve == nil {
		return Credit
	}
	return *m.Reserve
}

// Validate reports what is wrong with a market in itself, as joined errors: the message
// of each begins with the field.
func (m *Market) Validate() error {
	return errors.Join(m.validateNames(), m.validateUse(), m.validateNumbers(), m.validateWords(), m.validateCycle(), m.validateBeliefs())
}

func (m *Market) validateNames() error {
	err := cmp.Or(needName("name", m.Name), needName("mechanism", m.Mechanism))
	switch {
	case err != nil:
		return err
	case len(m.Classes) == 0:
		return Errorf(Invalid, "classes: are missing; a market has at least one class of slots")
	case len(m.Classes) > MaxClasses:
		return Errorf(TooLarge, "classes: %d are more than the limit of %d", len(m.Classes), MaxClasses)
	case len(m.Nodes) > MaxMarketNodes:
		return Errorf(TooLarge, "nodes: %d are more than the limit of %d", len(m.Nodes), MaxMarketNodes)
	}
	return cmp.Or(distinct("classes", m.Classes), distinct("nodes", m.Nodes))
}

func distinct(field string, names []Name) error {
	seen := make(map[Name]bool, len(names))
	for i, name := range names {
		path := fmt.Sprintf("%s[%d]", field, i)
		if !ValidName(name) {
			return badName(path, name)
		}
		if seen[name] {
			return Errorf(Invalid, "%s: %q is given twice", path, name)
		}
		seen[name] = true
	}
	return nil
}

// preempting are the mechanisms that take slots from running jobs.
var preempting = []Name{HighestBid, DeadlineBid}

// validateUse refuses a parameter of other mechanisms, which would be lost
// without a word.
func (m *Market) validateUse() error {
	var found []error
	for _, f := range [...]struct {
		field string
		set   bool
		users []Name
	}{
		{"alpha", m.Alpha != nil, []Name{Proportional}},
		{"reserve", m.Reserve != nil, []Name{HighestBid, FIFO, FairShare, Backfill}},
		{"algorithm", m.Algorithm != "", []Name{HighestBid}},
		{"price", m.Price != "", []Name{HighestBid}},
		{"capped", m.Capped, []Name{HighestBid}},
		{"preemption", m.Preemption != "", preempting},
		{"settle", m.Settle != "", []Name{Proportional, DeadlineBid, ContractMenu}},
		{"lambda", m.Lambda != nil, []Name{DeadlineBid}},
		{"slot", m.Slot != 0, []Name{DeadlineBid}},
		{"scale", m.Scale != 0, []Name{DeadlineBid}},
		{"mode", m.Mode != "", []Name{Backfill, BatchQueue}},
		{"draws", m.Draws != 0, []Name{BatchQueue}},
		{"cycle", m.Cycle != 0, []Name{Reservation}},
		{"granule", m.Granule != 0, []Name{Reservation}},
		{"orders", m.Orders != 0, []Name{Reservation}},
		{"half_life", m.HalfLife != 0, []Name{FairShare}},
		{"gang_timeout", m.GangTimeout != 0, []Name{BatchQueue, Reservation, Backfill}},
		{"quote", m.Quote != 0, []Name{ContractMenu}},
		{"replicas", m.Replicas != 0, []Name{ContractMenu}},
		{"late_only", m.LateOnly, []Name{ContractMenu}},
		{"prior", len(m.Prior) > 0, []Name{ContractMenu}},
		{"prior_jobs", len(m.PriorJobs) > 0, []Name{BatchQueue}},
		{"weights", len(m.Weights) > 0, []Name{FairShare}},
	} {
		if f.set && !slices.Contains(f.users, m.Mechanism) {
			found = append(found, Errorf(Invalid, "%s: markets of mechanism %s do not use this field, only %v do; leave it out", f.field, m.Mechanism, f.users))
		}
	}
	return errors.Join(found...)
}

func (m *Market) validateNumbers() error {
	var found []error
	addf := func(format string, args ...any) { found = append(found, Errorf(Invalid, format, args...)) }
	for _, f := range [...]struct {
		field string
		value Duration
	}{
		{"time_limit", m.TimeLimit}, {"slot", m.Slot}, {"cycle", m.Cycle}, {"granule", m.Granule},
		{"half_life", m.HalfLife}, {"gang_timeout", m.GangTimeout}, {"quote", m.Quote},
	} {
		if f.value < 0 {
			addf("%s: %v must not be negative; leave it out for the default", f.field, f.value)
		}
	}
	for _, f := range [...]struct {
		field       string
		value, most int
	}{
		{"draws", m.Draws, MaxDrawn}, {"orders", m.Orders, MaxOrders}, {"replicas", m.Replicas, MaxReplicas},
		{"max_jobs", m.MaxJobs, math.MaxInt32}, {"max_tasks", m.MaxTasks, MaxTasks},
	} {
		if f.value < 0 || f.value > f.most {
			addf("%s: %d must be from 1 to %d; leave it out for the default", f.field, f.value, f.most)
		}
	}
	if m.Alpha != nil && !(*m.Alpha >= 0 && *m.Alpha <= 1) { // NaN is neither
		addf("alpha: %v must be between 0 and 1", *m.Alpha)
	}
	if m.Lambda != nil && !(*m.Lambda >= 0 && *m.Lambda <= 1) {
		addf("lambda: %v must be between 0 and 1", *m.Lambda)
	}
	if m.Scale != 0 && !(m.Scale >= 1 && m.Scale <= 1e6) {
		addf("scale: %v must be from 1 to 1000000 slots", m.Scale)
	}
	if m.Reserve != nil && (*m.Reserve < 0 || *m.Reserve > MaxCredits) {
		addf("reserve: %v must be from 0 to %v credits for a slot-second", *m.Reserve, MaxCredits)
	}
	return errors.Join(found...)
}

// modes are those of a mechanism that has some.
var modes = map[Name][]string{Backfill: {"easy", "conservative"}, BatchQueue: {"priority", "full"}}

func (m *Market) validateWords() error {
	var found []error
	for _, f := range [...]struct {
		field, value string
		known        []string
	}{
		{"algorithm", m.Algorithm, []string{"HB", "NPHB", "WSEPT"}},
		{"price", m.Price, []string{"first", "kth"}},
		{"preemption", m.Preemption, []string{PreemptSuspend, PreemptRequeue, PreemptCancel}},
		{"settle", m.Settle, []string{SettleOnCompletion}},
		{"mode", m.Mode, modes[m.Mechanism]},
	} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			found = append(found, Errorf(Invalid, "%s: %q is none of %v", f.field, clip(f.value), f.known))
		}
	}
	if m.Preemption != "" && m.Mechanism == HighestBid && m.Algorithm != "" && m.Algorithm != "HB" {
		found = append(found, Errorf(Invalid, "preemption: algorithm %s takes no slot from a running job; leave it out, or use HB", m.Algorithm))
	}
	return errors.Join(found...)
}

// validateCycle sees to it that a cycle is of whole granules.
func (m *Market) validateCycle() error {
	cycle, granule := m.Cycle, m.Granule
	cycle = cmp.Or(cycle, Duration(24*time.Hour))
	granule = cmp.Or(granule, Duration(15*time.Minute))
	switch {
	case m.Mechanism != Reservation:
		return nil
	case granule < Duration(time.Millisecond):
		return Errorf(Invalid, "granule: %v must be at least a millisecond", granule)
	case cycle < granule || cycle%granule != 0:
		return Errorf(Invalid, "cycle: %v must be a multiple of the granule, %v; it would end before what it sells", cycle, granule)
	}
	return nil
}

// validateBeliefs checks what a market goes by before it has seen anything, and
// the weights of accounts.
func (m *Market) validateBeliefs() error {
	if len(m.Prior) > MaxPrior || len(m.PriorJobs) > MaxPrior {
		return Errorf(TooLarge, "prior: %d types are more than the limit of %d", max(len(m.Prior), len(m.PriorJobs)), MaxPrior)
	}
	for i := range m.Prior {
		if err := m.Prior[i].Validate(); err != nil {
			return inField(fmt.Sprintf("prior[%d]", i), err)
		}
	}
	for i := range m.PriorJobs {
		if err := m.PriorJobs[i].validate(); err != nil {
			return inField(fmt.Sprintf("prior_jobs[%d]", i), err)
		}
	}
	for _, w := range m.Weights {
		if !ValidName(w.Class) {
			return badName("weights", w.Class)
		}
		if !(w.Weight > 0 && w.Weight <= math.MaxFloat64) {
			return Errorf(Invalid, "weights.%s: must be a finite number above 0, is %v", w.Class, w.Weight)
		}
	}
	return nil
}

func (t *QueuedType) validate() error {
	switch {
	case t.Value < 0 || t.Value > MaxCredits:
		return Errorf(Invalid, "value: must be from 0 to %v credits, is %v", MaxCredits, t.Value)
	case t.Delay < 0 || t.Delay > MaxCredits:
		return Errorf(Invalid, "delay: must be from 0 to %v credits a second, is %v", MaxCredits, t.Delay)
	case t.Length < 0:
		return Errorf(Invalid, "length: must not be negative, is %v", t.Length)
	case t.Width < 0 || t.Width > MaxTasks:
		return Errorf(Invalid, "width: must be from 1 to %d slots, is %d", MaxTasks, t.Width)
	case !(t.Weight >= 0 && t.Weight <= 1e9):
		return Errorf(Invalid, "weight: must be above 0 and at most 1e9, is %v", t.Weight)
	}
	return nil
}
