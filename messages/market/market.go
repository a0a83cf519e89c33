package market

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// These are the mechanisms that a market can have.
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
	Karma        = "karma"
)

// These values say what happens to a task whose slot is given to another task.
const (
	PreemptSuspend = "suspend" // the task is stopped, and later continues on the same node
	PreemptRequeue = "requeue" // the task is ended, and later runs again from its beginning
	PreemptCancel  = "cancel"  // the job of the task is ended
)

// PricePivot is the price rule of highest-bid under which the best bid is the true value; see Market.Price.
const PricePivot = "pivot"

// ModeFixed is the mode of a reservation market that chooses among fixed timetables. These timetables do not depend on
// what the jobs declare.
const ModeFixed = "fixed"

// The values of Market.HandOver: they say when a deadline market lets owners read results.
const (
	HandOverDeadline = "deadline"
	HandOverEnd      = "end"
)

// SettleOnCompletion makes a market charge jobs when they are completed; see Market.Settle.
const SettleOnCompletion = "on-completion"

// Market describes one market of a site: a mechanism, its parameters, and the classes of slots that it allocates. A
// parameter that its mechanism does not use must be left out.
type Market struct {
	Name      messages.Name     `json:"name"`                 // jobs choose the market by this name
	Mechanism messages.Name     `json:"mechanism"`            // a mechanism from the README's table
	Classes   []messages.Name   `json:"classes"`              // the classes of slots that the market has; the first one is the default
	TimeLimit messages.Duration `json:"time_limit,omitempty"` // the time limit of an attempt if the job names none; 0 means no limit
	// Units say what one slot of a class contains, if the site's classes say so. A class without a unit has no sizes:
	// each of its tasks takes one slot.
	Units []job.ClassUnit `json:"units,omitempty"`
	// Alpha is a number in [0, 1]. In a market with the mechanism proportional, it is the exponent of the share. In a
	// market with the mechanism karma, it is the part of the slots that is guaranteed. If Alpha is left out, it is 1/2.
	Alpha *float64 `json:"alpha,omitempty"`

	// Nodes are the nodes whose slots the market allocates; empty means all nodes with its classes.
	Nodes []messages.Name `json:"nodes,omitempty"`
	// Reserve is the least price of a slot-second. In markets with a posted price, Reserve is this price. It may be a
	// text with the price of a slot-hour, such as "1/h". The default is one credit for a slot-hour.
	Reserve    *messages.Price `json:"reserve,omitempty"`
	Algorithm  string          `json:"algorithm,omitempty"`  // highest-bid: HB (default), NPHB or WSEPT
	Price      string          `json:"price,omitempty"`      // highest-bid: kth (default), first or pivot
	Capped     bool            `json:"capped,omitempty"`     // highest-bid: no job pays more than its own bid
	Preemption string          `json:"preemption,omitempty"` // suspend (default), requeue or cancel

	Lambda *float64          `json:"lambda,omitempty"` // deadline: how much finished work protects a job, in [0, 1]; 0.6 if left out
	Slot   messages.Duration `json:"slot,omitempty"`   // unit of time of decisions; 0: 10 s in deadline, 1 min in karma
	Scale  float64           `json:"scale,omitempty"`  // deadline: a typical length in slots; 0 means 32

	// The meaning of Mode depends on the mechanism:
	//   - backfill: easy (default) or conservative.
	//   - batch-queue: what counts as unknown about others. priority (default): their values and
	//     costs of delay; full: their lengths and widths, too.
	//   - reservation: search (default) chooses among timetables made for the bids; fixed chooses
	//     among timetables that do not depend on declarations. With fixed, the truth is also best
	//     about lengths, widths and deadlines, but the timetable has less value.
	Mode  string            `json:"mode,omitempty"`
	Draws int               `json:"draws,omitempty"` // batch-queue: random draws for an expected value; 0 means 1,000, fewer in a long queue
	Cycle messages.Duration `json:"cycle,omitempty"` // reservation: the period that is sold together; 0 means a day
	// Granule is the unit of time of reservations. A cycle has at most 1,048,576 granules. 0 means 15 min.
	Granule messages.Duration `json:"granule,omitempty"`
	Orders  int               `json:"orders,omitempty"` // reservation: the number of candidate schedules; 0 means 2,000

	HalfLife messages.Duration `json:"half_life,omitempty"` // fairshare: the time after which past use counts only half; 0 means a day
	// GangTimeout is how long claimed tasks of a gang wait for the other tasks of the gang. After this time the claimed
	// tasks are given back. 0 means 10 s.
	GangTimeout messages.Duration `json:"gang_timeout,omitempty"`

	Quote    messages.Duration `json:"quote,omitempty"`     // contract: how long a menu is valid; 0 means 5 min
	Replicas int               `json:"replicas,omitempty"`  // contract: number of types in a matching; 0 means the mechanism's default
	LateOnly bool              `json:"late_only,omitempty"` // contract: a job that is early pays only the agreed price

	MaxJobs  int `json:"max_jobs,omitempty"`  // most active jobs of an account; 0 means no bound
	MaxTasks int `json:"max_tasks,omitempty"` // most tasks of one job; 0 means no bound

	// Allow lists the accounts and projects whose jobs the market takes; empty means all. "alice@west" is an account of
	// another site, and "@west" means all accounts of site west.
	Allow []messages.Name `json:"allow,omitempty"`
	// Deny lists accounts and projects whose jobs the market refuses, even if Allow names them.
	Deny []messages.Name `json:"deny,omitempty"`
	// DefaultFor lists accounts and projects whose jobs go to this market if they name no market.
	DefaultFor []messages.Name `json:"default_for,omitempty"`
	// AtOnce limits the tasks that an account, or a project, may have in this market at the same time.
	AtOnce AtOnce `json:"at_once,omitempty,omitzero"`

	// Prior lists the types that a contract market assumes while nothing is known of a job's class of valuation. If it
	// is empty, the market assumes values from 1 to 100 credits, and times from ten seconds to a day.
	Prior []job.Valuation `json:"prior,omitempty"`
	// PriorJobs lists the declarations that a batch-queue market assumes while it has seen too few jobs. It can be
	// left out only with pricing pivot.
	PriorJobs []QueuedType `json:"prior_jobs,omitempty"`
	// Weights are the weights of accounts in fairshare. All accounts of another site share one weight, under a name
	// such as "@west". The default is 1.
	Weights job.Weights `json:"weights,omitempty"`

	// Settle applies to proportional and deadline. With "on-completion", the rule of the paper, a job pays only for
	// tasks that completed, with any exit code. If Settle is empty, a job pays for the slots that it had.
	Settle string `json:"settle,omitempty"`
	// Horizon applies to highest-bid with price pivot. It is a time after a job's submission: only waiting up to this
	// time counts in the job's price. 0 means a day. The budget of a job must cover this time at the job's rate.
	Horizon messages.Duration `json:"horizon,omitempty"`
	// Pricing applies to batch-queue. With externality, the default, a job pays the expected loss that it causes to
	// others. With pivot, a job pays the loss that its declaration causes to others, and gets most of it back.
	Pricing string `json:"pricing,omitempty"`
	// HandOver applies to deadline. It says when the owner of a job can read its outputs and logs. The default,
	// "deadline", means when the job is settled, which is at its deadline if it has ended by then. The value "end"
	// means as soon as the job has ended.
	HandOver string `json:"hand_over,omitempty"`
	// DefaultBudget is the budget for each task of a job that names no budget. 0 means that the budget is the cost of
	// the task's slots at the reserve, the lowest price of a slot-second. This cost is for the time that the job asks
	// for, or for an hour if the job asks for no time. Markets without a reserve use a credit for a slot-hour.
	DefaultBudget messages.Credits `json:"default_budget,omitempty"`
	// DefaultRate is used in markets with the mechanism highest-bid: it is the rate of a job that names no rate. It is
	// written in the same form as a reserve. If it is 0, a job that names a budget must also name a rate, and any other
	// job bids the reserve.
	DefaultRate messages.Price `json:"default_rate,omitempty"`
	// Closed means that the market takes no new jobs, while its jobs go on. Close a market before you remove it: a
	// market can be removed only when it has no active jobs.
	Closed bool `json:"closed,omitempty"`
}

// QueuedType is a declaration of a batch-queue job.
type QueuedType struct {
	Value  messages.Credits  `json:"value,omitempty"`  // worth of the completion
	Delay  messages.Credits  `json:"delay,omitempty"`  // cost of a second of waiting
	Length messages.Duration `json:"length,omitempty"` // run time
	Width  int               `json:"width,omitempty"`  // number of slots; 0 means 1
	Weight float64           `json:"weight,omitempty"` // relative likelihood; 0 means 1
}

// These are the limits on the parameters of a market.
const (
	MaxMarketNodes = 100_000
	MaxOwners      = 10_000 // names in allow, deny and default_for together
	MaxReplicas    = 10_000
	MaxDrawn       = 1_000_000
	MaxOrders      = 1_000_000
	MaxPrior       = 4096 // largest number of types that a market assumes
)

// ReservePrice returns the market's reserve for a slot-second, or the default.
func (m *Market) ReservePrice() messages.Credits {
	if m.Reserve == nil {
		return messages.HourlyCredit
	}
	return messages.Credits(*m.Reserve)
}

// Validate returns the faults of a market, without asking its mechanism, as joined errors. Each begins with the name of
// the field.
func (m *Market) Validate() error {
	return errors.Join(m.validateNames(), m.validateUnits(), m.validateNumbers(), m.validateWords(), m.validateCycle(), m.validateBeliefs())
}

func (m *Market) validateNames() error {
	err := cmp.Or(messages.NeedFreeName("name", m.Name), messages.NeedName("mechanism", m.Mechanism))
	switch {
	case err != nil:
		return err
	case len(m.Classes) == 0:
		return messages.Errorf(messages.Invalid, "classes: are missing; a market has at least one class of slots")
	case len(m.Classes) > job.MaxClasses:
		return messages.Errorf(messages.TooLarge, "classes: %d is above the limit of %d", len(m.Classes), job.MaxClasses)
	case len(m.Allow)+len(m.Deny)+len(m.DefaultFor) > MaxOwners:
		return messages.Errorf(messages.TooLarge, "allow, deny, default_for: %d names in all are more than the limit of %d; name projects instead of accounts", len(m.Allow)+len(m.Deny)+len(m.DefaultFor), MaxOwners)
	case len(m.Nodes) > MaxMarketNodes:
		return messages.Errorf(messages.TooLarge, "nodes: %d is above the limit of %d", len(m.Nodes), MaxMarketNodes)
	}
	return cmp.Or(messages.Distinct("classes", m.Classes, messages.NeedFreeName), messages.Distinct("nodes", m.Nodes, messages.NeedName),
		messages.Distinct("allow", m.Allow, needOwner), messages.Distinct("deny", m.Deny, needOwner), messages.Distinct("default_for", m.DefaultFor, needOwner),
		m.AtOnce.validate())
}

func (m *Market) validateNumbers() error {
	var found []error
	addf := func(format string, args ...any) {
		found = append(found, messages.Errorf(messages.Invalid, format, args...))
	}
	for _, f := range [...]struct {
		field string
		value messages.Duration
	}{
		{"time_limit", m.TimeLimit}, {"slot", m.Slot}, {"cycle", m.Cycle}, {"granule", m.Granule},
		{"half_life", m.HalfLife}, {"gang_timeout", m.GangTimeout}, {"quote", m.Quote}, {"horizon", m.Horizon},
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
		{"max_jobs", m.MaxJobs, math.MaxInt32}, {"max_tasks", m.MaxTasks, job.MaxTasks},
	} {
		if f.value < 0 || f.value > f.most {
			addf("%s: %d must be from 1 to %d; leave it out for the default", f.field, f.value, f.most)
		}
	}
	if m.Alpha != nil && !(*m.Alpha >= 0 && *m.Alpha <= 1) { // NaN fails both comparisons
		addf("alpha: %v must be between 0 and 1", *m.Alpha)
	}
	if m.Lambda != nil && !(*m.Lambda >= 0 && *m.Lambda <= 1) {
		addf("lambda: %v must be between 0 and 1", *m.Lambda)
	}
	if m.Scale != 0 && !(m.Scale >= 1 && m.Scale <= 1e6) {
		addf("scale: %v must be from 1 to 1000000 slots", m.Scale)
	}
	if r := m.ReservePrice(); r < 0 || r > messages.MaxCredits {
		addf("reserve: %v must be from 0 to %v credits for a slot-second", r, messages.MaxCredits)
	}
	for _, f := range [...]struct {
		field string
		value messages.Credits
	}{{"default_budget", m.DefaultBudget}, {"default_rate", messages.Credits(m.DefaultRate)}} {
		if f.value < 0 || f.value > messages.MaxCredits {
			addf("%s: %v must be from 0 to %v credits", f.field, f.value, messages.MaxCredits)
		}
	}
	return errors.Join(found...)
}

func (m *Market) validateWords() error {
	var found []error
	for _, f := range [...]struct {
		field, value string
		known        []string
	}{
		{"algorithm", m.Algorithm, []string{"HB", "NPHB", "WSEPT"}},
		{"price", m.Price, []string{"first", "kth", PricePivot}},
		{"preemption", m.Preemption, []string{PreemptSuspend, PreemptRequeue, PreemptCancel}},
		{"settle", m.Settle, []string{SettleOnCompletion}},
		{"pricing", m.Pricing, []string{"externality", "pivot"}},
		{"hand_over", m.HandOver, []string{HandOverDeadline, HandOverEnd}},
	} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			found = append(found, messages.Errorf(messages.Invalid, "%s: %q is not one of %v", f.field, messages.Clipped(f.value), f.known))
		}
	}
	if m.Pricing == "pivot" && (m.Mode != "" || m.Draws != 0 || len(m.PriorJobs) > 0) {
		found = append(found, messages.Errorf(messages.Invalid, "pricing: pivot does not use the fields mode, draws and prior_jobs; leave them out"))
	}
	if m.Preemption != "" && m.Algorithm != "" && m.Algorithm != "HB" {
		found = append(found, messages.Errorf(messages.Invalid, "preemption: algorithm %s takes no slot from a running job; leave preemption out, or use HB", m.Algorithm))
	}
	return errors.Join(append(found, m.validatePivot())...)
}

// validatePivot returns an error for a parameter that cannot be used with price pivot. It also returns an error for a
// horizon, if the price is not pivot.
func (m *Market) validatePivot() error {
	switch {
	case m.Price != PricePivot && m.Horizon != 0:
		return messages.Errorf(messages.Invalid, "horizon: only price %s uses this field; leave it out", PricePivot)
	case m.Price != PricePivot:
		return nil
	case m.Algorithm != "" && m.Algorithm != "HB":
		return messages.Errorf(messages.Invalid, "price: only algorithm HB can have price %s, not %s", PricePivot, m.Algorithm)
	case m.Capped:
		return messages.Errorf(messages.Invalid, "capped: with price %s a job does not pay for each second, so its bid cannot cap a price; leave the field capped out", PricePivot)
	case m.Preemption != "" && m.Preemption != PreemptSuspend:
		return messages.Errorf(messages.Invalid, "preemption: with price %s jobs lose no work; leave preemption out", PricePivot)
	case len(m.Classes) > 1:
		return messages.Errorf(messages.Invalid, "classes: a market with price %s has one class of slots, this market has %d; make a market for each class", PricePivot, len(m.Classes))
	}
	return nil
}

// MaxGranules is the largest number of granules in a cycle of reservations. With more granules, a decision takes too
// long.
const MaxGranules = 1 << 20

// validateCycle checks that a cycle consists of whole granules.
func (m *Market) validateCycle() error {
	cycle, granule := m.Cycle, m.Granule
	cycle = cmp.Or(cycle, messages.Duration(24*time.Hour))
	granule = cmp.Or(granule, messages.Duration(15*time.Minute))
	switch {
	case granule < messages.Duration(time.Millisecond):
		return messages.Errorf(messages.Invalid, "granule: %v must be at least a millisecond", granule)
	case cycle < granule || cycle%granule != 0:
		return messages.Errorf(messages.Invalid, "cycle: %v must be a multiple of the granule, %v; otherwise the cycle would end within a granule", cycle, granule)
	case cycle/granule > MaxGranules:
		return messages.Errorf(messages.Invalid, "granule: a cycle of %v has %d granules of %v, above the limit of %d: use longer granules", cycle, cycle/granule, granule, MaxGranules)
	}
	return nil
}

func (m *Market) validateBeliefs() error {
	if len(m.Prior) > MaxPrior || len(m.PriorJobs) > MaxPrior {
		return messages.Errorf(messages.TooLarge, "prior: %d types are more than the limit of %d", max(len(m.Prior), len(m.PriorJobs)), MaxPrior)
	}
	for i := range m.Prior {
		if err := m.Prior[i].Validate(); err != nil {
			return messages.InField(fmt.Sprintf("prior[%d]", i), err)
		}
	}
	for i := range m.PriorJobs {
		if err := m.PriorJobs[i].validate(); err != nil {
			return messages.InField(fmt.Sprintf("prior_jobs[%d]", i), err)
		}
	}
	for _, w := range m.Weights {
		if !messages.ValidFreeName(strings.TrimPrefix(w.Class, "@")) {
			return messages.BadFreeName("weights", w.Class)
		}
		if !(w.Weight > 0 && w.Weight <= math.MaxFloat64) {
			return messages.Errorf(messages.Invalid, "weights.%s: must be a finite number above 0, is %v", w.Class, w.Weight)
		}
	}
	return nil
}

func (t *QueuedType) validate() error {
	switch {
	case t.Value < 0 || t.Value > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "value: must be from 0 to %v credits, is %v", messages.MaxCredits, t.Value)
	case t.Delay < 0 || t.Delay > messages.MaxCredits:
		return messages.Errorf(messages.Invalid, "delay: must be from 0 to %v credits a second, is %v", messages.MaxCredits, t.Delay)
	case t.Length < 0:
		return messages.Errorf(messages.Invalid, "length: must not be negative, is %v", t.Length)
	case t.Width < 0 || t.Width > job.MaxTasks:
		return messages.Errorf(messages.Invalid, "width: must be from 1 to %d slots, is %d", job.MaxTasks, t.Width)
	case !(t.Weight >= 0 && t.Weight <= 1e9):
		return messages.Errorf(messages.Invalid, "weight: must be above 0 and at most 1e9, is %v", t.Weight)
	}
	return nil
}

// UnitOf returns the unit of a class of the market. A zero unit means that its slots have no sizes.
func (m *Market) UnitOf(class messages.Name) job.Resources {
	for i := range m.Units {
		if m.Units[i].Class == class {
			return m.Units[i].Unit
		}
	}
	return job.Resources{}
}

func (m *Market) validateUnits() error {
	for i := range m.Units {
		u, path := &m.Units[i], fmt.Sprintf("units[%d]", i)
		if !slices.Contains(m.Classes, u.Class) {
			return messages.Errorf(messages.Invalid, "%s.class: the market has no class %q; its classes are %s", path, messages.Clipped(u.Class), strings.Join(m.Classes, ", "))
		}
		if slices.ContainsFunc(m.Units[:i], func(o job.ClassUnit) bool { return o.Class == u.Class }) {
			return messages.Errorf(messages.Invalid, "%s.class: the unit of %q is given twice", path, u.Class)
		}
		if u.Unit == (job.Resources{}) {
			return messages.Errorf(messages.Invalid, "%s.unit: is empty; say what one slot of class %s is, such as {cpus: 1, memory: 4G}", path, u.Class)
		}
		if err := u.Unit.Validate(path + ".unit"); err != nil {
			return err
		}
	}
	return nil
}
