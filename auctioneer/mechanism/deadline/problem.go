package deadline

import (
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages"
)

// These are the limits of a problem. Within them, no level overflows, and the data for each unit fit in memory.
const (
	Largest   = 1e18      // largest value
	MostUnits = 1 << 20   // number of units from the first arrival to the last deadline
	mostTime  = 1 << 50   // largest absolute number of a unit
	mostSlots = 1<<31 - 1 // largest number of slots
)

// Rule says how the rank of a task depends on the part of its work that is already done.
type Rule uint8

// These rules say how the rank of a task changes with the work done on it.
const (
	Paper    Rule = iota // priority v/(l−λe); truthful only at λ = 0
	Monotone             // level v/l, which grows by the same factor for all served tasks; truthful
)

// Task wants Length units of Width slots each, among the units Arrival to Deadline, both inclusive. It is worth Value
// if it gets all of them, otherwise nothing. If Length does not fit between Arrival and Deadline, the task gets
// nothing, takes nothing from others and owes nothing.
type Task struct {
	Arrival  int     `json:"a"`
	Deadline int     `json:"d"`
	Length   int     `json:"l"`
	Value    float64 `json:"v"`
	Width    int     `json:"w,omitempty"` // slots it takes at once; 0 counts as 1
	// These fields are for a task of a live market that has ended. Work is the number of units that the task really
	// ran, at most Length; 0 means that this is not known. Until is the unit at whose beginning the task was withdrawn;
	// 0 means that it was not.
	Work  int `json:"-"`
	Until int `json:"-"`
}

func (t *Task) slots() int { return max(t.Width, 1) }

func (p *Problem) wide() bool {
	return slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Width > 1 })
}

// work returns the number of units after which the task is completed.
func (t *Task) work() int {
	if t.Work > 0 {
		return min(t.Work, t.Length)
	}
	return t.Length
}

// Problem is one pool of slots and the tasks that compete for it.
type Problem struct {
	Capacity int // number of slots
	// Capacities has the number of slots of each unit, from the first arrival on. For units beyond the end of the list,
	// its last entry counts. If Capacities is not nil, Capacity is ignored.
	Capacities []int
	Lambda     float64 // λ, from 0 to 1: by how much the work done on a task raises its rank
	Rule       Rule
	// Scale is the typical length S of the rule Monotone. Under this rule, the level of a task is multiplied by 1 +
	// λ/Scale for each unit in which it is served. If Scale is 0, it is learned from the lengths of tasks whose
	// deadlines have passed.
	Scale float64
	Tasks []Task
	// Asked reports whether the caller wants the outcome of a task. Then the run ends with the last deadline of these
	// tasks, and the outcomes of other tasks may be missing. If Asked is nil, the caller wants all outcomes.
	Asked func(task int) bool
	// Past is an earlier run that this run continues, or nil to start at the first arrival.
	Past *Past
}

// Check returns an error about the task and the field if a problem is invalid.
func (p *Problem) Check() error {
	if p.Capacity < 0 || p.Capacity > mostSlots {
		return casefile.Invalid("C", "must be from 0 to %d, is %d", mostSlots, p.Capacity)
	}
	if !(p.Lambda >= 0 && p.Lambda <= 1) {
		return casefile.Invalid("lambda", "must be from 0 to 1, is %v", p.Lambda)
	}
	if !(p.Scale == 0 || p.Scale >= 1 && p.Scale <= MostUnits) {
		return casefile.Invalid("scale", "must be a length from 1 to %d units, is %v; if it is left out, the rule learns it", MostUnits, p.Scale)
	}
	if p.Rule > Monotone {
		return casefile.Invalid("rule", "must be %q or %q", "paper", "monotone")
	}
	for i, task := range p.Tasks {
		if err := task.check("tasks[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	if p.Rule == Paper && p.wide() {
		return casefile.Invalid("tasks", "rule %q has tasks of one slot: leave w out, or use rule %q", "paper", "monotone")
	}
	if first, end := p.span(); end-first > MostUnits {
		return messages.Errorf(messages.TooLarge, "tasks: the units from the first arrival to the last deadline are %d, the limit is %d: use a longer unit or split the document",
			end-first, MostUnits)
	}
	return nil
}

// Impossible reports whether the task is longer than the time between its arrival and its deadline.
func (t Task) Impossible() bool { return t.Length > t.Deadline-t.Arrival+1 }

func (t Task) check(place string) error {
	switch {
	case t.Arrival < -mostTime || t.Arrival > mostTime:
		return casefile.Invalid(place+".a", "must be from %d to %d, is %d", -mostTime, mostTime, t.Arrival)
	case t.Deadline < t.Arrival || t.Deadline > mostTime:
		return casefile.Invalid(place+".d", "must be a unit not before the arrival %d, at most %d, is %d", t.Arrival, mostTime, t.Deadline)
	case t.Length < 1 || t.Length > mostTime:
		return casefile.Invalid(place+".l", "must be at least 1 unit and at most %d, is %d", mostTime, t.Length)
	case t.Width < 0 || t.Width > mostSlots:
		return casefile.Invalid(place+".w", "must be from 0 to %d slots, is %d", mostSlots, t.Width)
	case !(t.Value >= 0 && t.Value <= Largest):
		return casefile.Invalid(place+".v", "must be from 0 to %g, is %v", Largest, t.Value)
	}
	return nil
}

// span returns the first arrival and the unit after the last deadline.
func (p *Problem) span() (first, end int) {
	if len(p.Tasks) == 0 {
		return 0, 0
	}
	first, end = math.MaxInt, math.MinInt
	for i := range p.Tasks {
		first = min(first, p.Tasks[i].Arrival)
		end = max(end, p.Tasks[i].Deadline+1)
	}
	return first, end
}

// asked returns two units of time: the first arrival and the unit after the last deadline. If the caller wants the
// outcomes of only some tasks, asked considers only these tasks.
func (p *Problem) asked() (first, end int) {
	if p.Asked == nil {
		return p.span()
	}
	q := Problem{}
	for i := range p.Tasks {
		if p.Asked(i) {
			q.Tasks = append(q.Tasks, p.Tasks[i])
		}
	}
	if len(q.Tasks) == 0 {
		_, end = p.span()
		return end, end
	}
	return q.span()
}

func (p *Problem) capacityAt(after int) int {
	if len(p.Capacities) == 0 {
		return p.Capacity
	}
	return p.Capacities[min(after, len(p.Capacities)-1)]
}
