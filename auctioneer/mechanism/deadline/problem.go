package deadline

import (
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	"github.com/candor-grid/candor/messages"
)

// Limits of a problem. Within them no level overflows and what is kept by unit
// fits in memory.
const (
	Largest   = 1e18      // of a value
	MostUnits = 1 << 20   // from the first arrival to the last deadline
	mostTime  = 1 << 50   // of a unit's number, in magnitude
	mostSlots = 1<<31 - 1 // of a capacity
)

// Rule says how a task's standing changes with the work done on it.
type Rule uint8

// The rules.
const (
	Paper    Rule = iota // priority v/(l−λe); truthful at λ = 0 only
	Monotone             // level v/l that grows alike for all that are served; truthful
)

// Task wants Length units of Width slots at once among the units Arrival to Deadline,
// both inclusive, and is worth Value if it gets them all. A task longer than its
// time is allowed: it gets nothing, keeps nothing from others and owes nothing.
type Task struct {
	Arrival  int     `json:"a"`
	Deadline int     `json:"d"`
	Length   int     `json:"l"`
	Value    float64 `json:"v"`
	Width    int     `json:"w,omitempty"` // 0: 1
	// Of tasks that have ended on a live market, where not 0: the units it really
	// took, at most Length, and the unit from which it was withdrawn.
	Work  int `json:"-"`
	Until int `json:"-"`
}

// slots is how many slots the task has in a unit.
func (t *Task) slots() int { return max(t.Width, 1) }

// wide says whether some task has several slots.
func (p *Problem) wide() bool {
	return slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Width > 1 })
}

// work is how many units complete the task.
func (t *Task) work() int {
	if t.Work > 0 {
		return min(t.Work, t.Length)
	}
	return t.Length
}

// Problem is one pool of slots and the tasks that compete for it.
type Problem struct {
	Capacity int // slots
	// Capacities, where not nil, are the slots by unit from the first arrival on,
	// and the last of them holds for all later units; Capacity is then not used.
	Capacities []int
	Lambda     float64 // in [0, 1]: how much work done counts
	Rule       Rule
	// Scale is a typical length, of rule Monotone: a unit served raises a level by
	// λ/Scale of it. 0: learned from the tasks whose time is over.
	Scale float64
	Tasks []Task
	// Asked, where not nil, says of which tasks the outcomes are wanted. No unit after the
	// last of their deadlines is decided, and what the other tasks get may be left out.
	Asked func(task int) bool
	// Past is where the run begins; nil: at the beginning.
	Past *Past
}

// Check refuses a problem that breaks the model, naming the task and the field.
func (p *Problem) Check() error {
	if p.Capacity < 0 || p.Capacity > mostSlots {
		return casefile.Invalid("C", "must be from 0 to %d, is %d", mostSlots, p.Capacity)
	}
	if !(p.Lambda >= 0 && p.Lambda <= 1) {
		return casefile.Invalid("lambda", "must be from 0 to 1, is %v", p.Lambda)
	}
	if !(p.Scale == 0 || p.Scale >= 1 && p.Scale <= MostUnits) {
		return casefile.Invalid("scale", "must be a length in units from 1 to %d, or absent to have it learned, is %v", MostUnits, p.Scale)
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
		return casefile.Invalid("tasks", "of rule %q have one slot each: leave w out, or use rule %q", "paper", "monotone")
	}
	if first, end := p.span(); end-first > MostUnits {
		return messages.Errorf(messages.TooLarge, "tasks: the units from the first arrival to the last deadline are %d, the limit is %d: use a longer unit or split the document",
			end-first, MostUnits)
	}
	return nil
}

// Impossible says whether the task is longer than its time.
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

// span returns the units from the first arrival to the last deadline, half open.
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

// asked returns the units from the first arrival to the last deadline of the tasks whose
// outcomes are wanted, half open.
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

// capacityAt is the number of slots in the unit that many after the first.
func (p *Problem) capacityAt(after int) int {
	if len(p.Capacities) == 0 {
		return p.Capacity
	}
	return p.Capacities[min(after, len(p.Capacities)-1)]
}
