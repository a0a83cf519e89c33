package deadline

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// input is the document of `candor solve deadline`. It describes either one pool of C slots, or several groups of
// slots. For groups, the key capacities has the slots of each group, and group_of has the group of each task.
type input struct {
	C          *int        `json:"C,omitempty"`
	Capacities *[]int      `json:"capacities,omitempty"`
	GroupOf    *[]int      `json:"group_of,omitempty"` // by task: its group
	Lambda     float64     `json:"lambda"`
	Rule       *string     `json:"rule,omitempty"`  // default: monotone
	Scale      *float64    `json:"scale,omitempty"` // for rule monotone; default: learned
	Tasks      []inputTask `json:"tasks"`
}

type inputTask struct {
	Task
	ID string `json:"id,omitempty"`
}

// output is the answer that `candor solve deadline` prints. Tasks are positions in the input.
type output struct {
	Rule         string    `json:"rule"`
	Allocation   [][2]any  `json:"allocation"` // [unit, [tasks, ascending]], from the first arrival to the last deadline
	Completed    []bool    `json:"completed"`
	Units        [][]int   `json:"units"`
	Payments     []float64 `json:"payments"`
	TotalValue   float64   `json:"total_value"`
	TotalPayment float64   `json:"total_payment"`
	Impossible   []int     `json:"impossible,omitempty"` // tasks whose length is larger than their time
}

var ruleNames = [...]string{Paper: "paper", Monotone: "monotone"}

// SolveDocument answers a JSON document: {"C" | "capacities" and "group_of",
// "lambda", "rule"?, "scale"?, "tasks": [{"a", "d", "l", "v", "w"?, "id"?}…]}.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	p, err := in.problem()
	if err != nil {
		return nil, err
	}
	groups, err := in.groups(p)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	o, err := RunGroups(p, groups)
	if err != nil {
		return nil, err
	}
	return present(p, o), nil
}

func (in *input) problem() (*Problem, error) {
	p := &Problem{Lambda: in.Lambda, Rule: Monotone}
	if in.Scale != nil {
		if p.Scale = *in.Scale; p.Scale == 0 {
			return nil, casefile.Invalid("scale", "must be at least 1; if it is left out, the rule learns it")
		}
	}
	if in.Rule != nil {
		switch *in.Rule {
		case ruleNames[Paper]:
			p.Rule = Paper
		case ruleNames[Monotone]:
		default:
			return nil, casefile.Invalid("rule", "must be %q or %q, is %.64q", ruleNames[Paper], ruleNames[Monotone], *in.Rule)
		}
	}
	seen := map[string]int{}
	for i, t := range in.Tasks {
		if other, twice := seen[t.ID]; twice && t.ID != "" {
			return nil, casefile.Invalid("tasks["+strconv.Itoa(i)+"].id", "%.64q is the id of task %d too: give each task its own id", t.ID, other)
		}
		seen[t.ID] = i
		p.Tasks = append(p.Tasks, t.Task)
	}
	return p, nil
}

// groups returns the groups of slots and the group of each task.
func (in *input) groups(p *Problem) (*Groups, error) {
	grouped := in.Capacities != nil || in.GroupOf != nil
	switch {
	case in.C == nil && !grouped:
		return nil, casefile.Invalid("C", "the key is missing: give C, or capacities and group_of")
	case in.C != nil && grouped:
		return nil, casefile.Invalid("C", "cannot be combined with groups: give C, or capacities and group_of")
	case in.C != nil:
		p.Capacity = *in.C
		return &Groups{Capacities: []int{*in.C}, Of: make([]int, len(p.Tasks))}, nil
	case in.Capacities == nil:
		return nil, casefile.Invalid("capacities", "the key is missing: group_of needs it")
	case in.GroupOf == nil:
		return nil, casefile.Invalid("group_of", "the key is missing: capacities needs it")
	}
	return &Groups{Capacities: *in.Capacities, Of: *in.GroupOf}, nil
}

func present(p *Problem, o *Grouped) *output {
	out := &output{Rule: ruleNames[p.Rule], Allocation: [][2]any{}, Completed: o.Completed, Payments: o.Payments,
		TotalValue: o.TotalValue, Units: make([][]int, len(p.Tasks))}
	first, end := p.span()
	served := make([][]int, end-first)
	for i := range p.Tasks {
		if p.Tasks[i].Impossible() {
			out.Impossible = append(out.Impossible, i)
		}
		out.Units[i] = o.Units(i)
		for _, t := range out.Units[i] {
			served[t-first] = append(served[t-first], i)
		}
	}
	for k, tasks := range served {
		out.Allocation = append(out.Allocation, [2]any{first + k, append([]int{}, tasks...)})
	}
	for _, x := range o.Payments {
		out.TotalPayment += x
	}
	return out
}

// check returns an error about the wrong field if the groups are invalid.
func (g *Groups) check(tasks int) error {
	for k, c := range g.Capacities {
		if c < 0 || c > mostSlots {
			return casefile.Invalid("capacities["+strconv.Itoa(k)+"]", "must be from 0 to %d, is %d", mostSlots, c)
		}
	}
	if len(g.Of) != tasks {
		return casefile.Invalid("group_of", "must name a group for each of the %d tasks, names %d", tasks, len(g.Of))
	}
	for i, k := range g.Of {
		if k < 0 || k >= len(g.Capacities) {
			return casefile.Invalid("group_of["+strconv.Itoa(i)+"]", "must be a position in capacities, from 0 to %d, is %d", len(g.Capacities)-1, k)
		}
	}
	return nil
}
