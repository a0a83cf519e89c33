package book

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// bounds limit how many tasks accounts and projects run at the same time in each market. A task counts from the time
// when it gets its slot until its claim ends. A suspended task counts, because it may continue at any time.
//
// A gang counts as a whole, from its first claim to the end of its last claim. Otherwise two gangs of an account could
// each get a part of the bound, and both would wait for the other part.
type bounds struct {
	byMarket map[messages.Name]market.AtOnce // only markets that have bounds
	used     map[Owner]market.Bound
	watch    *watch
}

// set replaces the bounds of all markets. If a bound becomes lower, tasks that run keep their slots.
func (b *bounds) set(all []MarketBounds) {
	b.byMarket = map[messages.Name]market.AtOnce{}
	for _, m := range all {
		b.byMarket[m.Market] = m.AtOnce
	}
	b.watch.changed.Bounds = true
}

// list returns the bounds of the markets, ordered by market name.
func (b *bounds) list() (out []MarketBounds) {
	for name, a := range b.byMarket {
		out = append(out, MarketBounds{name, a})
	}
	slices.SortFunc(out, MarketBounds.compare)
	return out
}

// Needs returns how many slots, GPUs and tasks one task of a stage uses. For a gang, it returns what all tasks of the
// gang use.
func Needs(spec *job.JobSpec, stage int) (all market.Bound) {
	for i := range spec.Stages {
		s, n := &spec.Stages[i], 1
		if s.Gang {
			n = s.TaskCount()
		}
		if i == stage || spec.Together {
			all = market.Bound{Slots: all.Slots + n*s.Slots(), GPUs: all.GPUs + n*s.GPUs, Tasks: all.Tasks + n}
		}
	}
	return all
}

// members returns the number of tasks of a stage's gang that nodes have claimed.
func (j *Job) members(stage int) (n int) {
	for i, end := j.gang(stage); i < end; i++ {
		n += j.Stages[i].Running
	}
	return n
}

// count adds a task that has just got its slot to the counts. If the argument `by` is -1, it subtracts a task whose
// claim ends.
func (b *bounds) count(j *Job, stage, by int) {
	of := &j.Spec.Stages[stage]
	if of.Gang && j.members(stage) > 1 { // the first claim and the last one count for the whole gang
		return
	}
	need := Needs(j.Spec, stage)
	for _, o := range ownersOf(j.Account, j.Spec) {
		u := b.used[o]
		u = market.Bound{Slots: u.Slots + by*need.Slots, GPUs: u.GPUs + by*need.GPUs, Tasks: u.Tasks + by*need.Tasks}
		if b.used[o] = u; u == (market.Bound{}) {
			delete(b.used, o)
		}
		if _, bound := b.byMarket[o.Market]; bound {
			b.watch.touchOwner(o)
		}
	}
}

func (b *bounds) recount(j *Job, n *Node, r messages.TaskRef) {
	if n.Claims[r].Halt == Ahead || j.Spec.Stages[r.Stage].Gang && place(r) != j.firstClaimed(int(r.Stage)) {
		return
	}
	need := Needs(j.Spec, int(r.Stage))
	for _, o := range ownersOf(j.Account, j.Spec) {
		u := b.used[o]
		b.used[o] = market.Bound{Slots: u.Slots + need.Slots, GPUs: u.GPUs + need.GPUs, Tasks: u.Tasks + need.Tasks}
	}
}

// firstClaimed returns the stage and index of the first claimed task of a gang.
func (j *Job) firstClaimed(stage int) [2]uint32 {
	for i, end := j.gang(stage); i < end; i++ {
		if k := slices.IndexFunc(j.Stages[i].Tasks, func(t Task) bool { return t.Phase == Claimed }); k >= 0 {
			return [2]uint32{uint32(i), uint32(k)}
		}
	}
	return [2]uint32{}
}

func (b *bounds) binds(j *Job) bool {
	_, ok := b.byMarket[j.Spec.Market]
	return ok
}

// permits returns how many more tasks of a stage may start within the bounds of the job's owners.
func (b *bounds) permits(j *Job, stage int) int {
	if !b.binds(j) {
		return math.MaxInt
	}
	of := &j.Spec.Stages[stage]
	if of.Gang && j.members(stage) > 0 {
		return math.MaxInt
	}
	n := b.room(j.Account, j.Spec, stage)
	if of.Gang && n > 0 {
		return math.MaxInt
	}
	return n
}

// A job counts against the bounds of its account and of its project. room returns how many more tasks of a stage, or
// how many gangs, these bounds allow.
func (b *bounds) room(account messages.Name, spec *job.JobSpec, stage int) int {
	a, n := b.byMarket[spec.Market], math.MaxInt
	for _, o := range ownersOf(account, spec) {
		for _, d := range dimensions(a.Find(o.Name, o.Project), b.used[o], Needs(spec, stage)) {
			if d.Most > 0 && d.Needs > 0 {
				n = min(n, max(0, d.Most-d.Used)/d.Needs)
			}
		}
	}
	return n
}

// Reached is a bound that keeps a task from starting. Example: alice uses 63 of 64 slots, and the task needs 2.
type Reached struct {
	Owner
	What              string // "slots", "gpus" or "tasks"
	Most, Used, Needs int
}

func dimensions(most, used, needs market.Bound) [3]Reached {
	return [...]Reached{{What: "slots", Most: most.Slots, Used: used.Slots, Needs: needs.Slots},
		{What: "gpus", Most: most.GPUs, Used: used.GPUs, Needs: needs.GPUs}, {What: "tasks", Most: most.Tasks, Used: used.Tasks, Needs: needs.Tasks}}
}

// reached returns the first bound that keeps a task of a stage from starting, or nil if there is none.
func (b *bounds) reached(j *Job, stage int) *Reached {
	if b.permits(j, stage) > 0 {
		return nil
	}
	a := b.byMarket[j.Spec.Market]
	for _, o := range ownersOf(j.Account, j.Spec) {
		for _, d := range dimensions(a.Find(o.Name, o.Project), b.used[o], Needs(j.Spec, stage)) {
			if d.Most > 0 && d.Needs > 0 && d.Used+d.Needs > d.Most {
				d.Owner = o
				return &d
			}
		}
	}
	return nil
}
