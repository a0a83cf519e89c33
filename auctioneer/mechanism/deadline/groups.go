package deadline

// Groups divides the slots into pools, and each task belongs to one pool. The mechanism runs in each pool independently
// of the other pools. A task may have to pay more than if all slots were one pool.
type Groups struct {
	Capacities []int // by group: the slots of the group
	Of         []int // by task: its group; the market's operator draws it, so that the task cannot choose it
}

// Grouped is the common outcome of several groups of tasks. The groups do not compete, because each has its own slots.
type Grouped struct {
	Completed  []bool
	Payments   []float64
	TotalValue float64
	of         []place
	outcomes   []*Outcome
}

// place says in which group a task is, and at which index of the group.
type place struct{ group, index int }

// RunGroups runs each group of a problem and computes the payments. It ignores p.Capacity.
func RunGroups(p *Problem, g *Groups) (*Grouped, error) {
	if err := g.check(len(p.Tasks)); err != nil {
		return nil, err
	}
	parts := make([]Problem, len(g.Capacities))
	out := &Grouped{Completed: make([]bool, len(p.Tasks)), Payments: make([]float64, len(p.Tasks)), of: make([]place, len(p.Tasks))}
	for k := range parts {
		parts[k] = Problem{Capacity: g.Capacities[k], Lambda: p.Lambda, Rule: p.Rule, Scale: p.Scale}
	}
	for i, k := range g.Of {
		out.of[i] = place{k, len(parts[k].Tasks)}
		parts[k].Tasks = append(parts[k].Tasks, p.Tasks[i])
	}
	payments := make([][]float64, len(parts))
	for k := range parts {
		o, err := Run(&parts[k])
		if err != nil {
			return nil, err
		}
		out.outcomes, payments[k] = append(out.outcomes, o), o.Payments()
		out.TotalValue += o.TotalValue
	}
	for i, at := range out.of {
		out.Completed[i] = out.outcomes[at.group].Completed[at.index]
		out.Payments[i] = payments[at.group][at.index]
	}
	return out, nil
}

// Units returns the units in which task i was served, ascending.
func (o *Grouped) Units(i int) []int { return o.outcomes[o.of[i].group].Units(o.of[i].index) }
