package intake

import (
	"cmp"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// shape computes how many slots a task of a stage takes. If the task asks for a whole node, [Place] computes this
// later.
func (r *Rules) shape(account messages.Name, spec *job.JobSpec, m *market.Market, i int) error {
	s := &spec.Stages[i]
	fits := func(o *market.Market) bool { return smallest(o, s) != "" }
	unit := m.UnitOf(s.Class)
	if s.Width = 0; unit == (job.Resources{}) {
		if s.Shaped() {
			return r.elsewhere(account, spec, messages.Errorf(messages.Invalid, "stages[%d]: asks for %s, but a slot of class %s in market %s has no size: the site's configuration gives the class no unit; ask for no resources, or choose another class", i, asked(s), s.Class, m.Name), fits)
		}
		return nil
	}
	needs := s.Needs()
	width, ok := unit.Width(needs)
	if !ok {
		advice := "no class of market " + m.Name + " has them"
		if s.Gang && !s.Allocation {
			advice = "a task of a gang has one slot, and no slot of market " + m.Name + " has them"
		}
		if class := smallest(m, s); class != "" {
			advice = "choose class " + class
		}
		return r.elsewhere(account, spec, messages.Errorf(messages.Invalid, "stages[%d]: asks for %v, but no number of slots of class %s has these resources: a slot has %v; %s", i, needs, s.Class, unit, advice), fits)
	}
	if s.Width = width; s.Slots() > 1 || s.TakesNode() {
		if err := widens(m, i, s); err != nil {
			return err
		}
	}
	return nil
}

// smallest returns the class with the smallest slots that fit a stage's resources. These are the slots with the fewest
// GPUs; among equals, with the fewest processors, and then with the least memory. A task of a gang that is no allocation
// must fit one slot. The result is "" if no class fits, or the stage asks for no resources.
func smallest(m *market.Market, s *job.Stage) (class messages.Name) {
	var least job.Resources
	for _, c := range m.Classes {
		unit := m.UnitOf(c)
		width, ok := unit.Width(s.Needs())
		if !ok || unit == (job.Resources{}) || !s.Shaped() || width > 1 && (!registry.Of(m).Wide || s.Gang && !s.Allocation) {
			continue
		}
		all := unit.Times(width)
		if class == "" || cmp.Or(cmp.Compare(all.GPUs, least.GPUs), cmp.Compare(all.CPUs, least.CPUs), cmp.Compare(all.Memory, least.Memory)) < 0 {
			class, least = c, all
		}
	}
	return class
}

// widens checks a stage whose tasks take several slots each. It returns an error if the market sells only single slots.
// It also returns an error if the tasks of the stage form a gang.
func widens(m *market.Market, i int, s *job.Stage) error {
	sold := m.Mechanism
	if m.Price == market.PricePivot {
		sold += ", price " + m.Price
	}
	switch {
	case !registry.Of(m).Wide:
		return messages.Errorf(messages.Invalid, "stages[%d]: a task would take %d slots of class %s, and market %s (%s) sells single slots; ask for less, or use a market of %s", i, s.Width, s.Class, m.Name, sold,
			spelling.List(registry.Names(func(t *mechanism.Traits) bool { return t.Wide })))
	case s.Gang && !s.Allocation:
		return messages.Errorf(messages.Invalid, "stages[%d].gang: each task would take %d slots of class %s, and a task of a gang has one slot; ask for less, or leave the field gang out", i, s.Width, s.Class)
	}
	return nil
}

// Place checks each stage of a job, as the function [Place]. If the job is too large for its market, and a node of another
// market can run it, the error names that market.
func (r *Rules) Place(b *book.Book, account messages.Name, spec *job.JobSpec, m *market.Market) error {
	err := Place(b, account, spec, m)
	if messages.KindOf(err) != messages.TooLarge {
		return err
	}
	return r.elsewhere(account, spec, err, func(o *market.Market) bool {
		there := *spec
		there.Market, there.Stages = o.Name, slices.Clone(spec.Stages)
		for i := range there.Stages {
			there.Stages[i].Class = ""
		}
		return o.Name != m.Name && !o.Closed && r.complete(account, &there, o) == nil && Place(b, account, &there, o) == nil
	})
}

// Place checks each stage of a job. If no node of the market can run the stage, even when all nodes are up, it returns
// an error. If the stage does not ask for some resource, Place sets it to the resource's amount for one slot,
// multiplied by the stage's number of slots. It looks at single nodes only for stages with requirements on nodes.
func Place(b *book.Book, account messages.Name, spec *job.JobSpec, m *market.Market) error {
	if err := checkLicenses(b.TotalLicenses(), spec, m); err != nil {
		return err
	}
	for i := range spec.Stages {
		s, unit := &spec.Stages[i], m.UnitOf(spec.Stages[i].Class)
		if s.Slots() == 1 && !s.Allocation && !s.TakesNode() && !s.NamesNodes() {
			fill(s, unit)
			continue
		}
		largest, most, suits, able, large := messages.Name(""), 0, 0, 0, 0
		alike := map[int][]*book.Node{} // nodes by their numbers of slots, for tasks that take whole nodes
		for _, n := range b.Nodes() {
			if n.Removed || !desk.Serves(m, n.Name) {
				continue
			}
			for _, c := range n.Slots {
				if c.Class != s.Class {
					continue
				}
				if !n.Suits(s) {
					continue
				}
				if c.Slots >= s.Slots() {
					able++
				}
				if s.TakesNode() {
					alike[c.Slots] = append(alike[c.Slots], n)
				}
				if suits++; c.Slots > most {
					largest, most, large = n.Name, c.Slots, 0
				}
				if c.Slots == most {
					large++
				}
			}
		}
		if !s.TakesNode() {
			large = able
		}
		if size := enough(alike, s); size > 0 && s.Tasks > large {
			most, large, s.Nodes = size, len(alike[size]), chosen(alike[size])
		}
		switch {
		case suits == 0:
			return messages.Errorf(messages.Invalid, "stages[%d]: no node of market %s with slots of class %s satisfies %s; `candor nodes` shows the nodes and their labels", i, m.Name, s.Class, required(s))
		case s.Slots() > most:
			return messages.Errorf(messages.TooLarge, "stages[%d]: no node of class %s has %v: the largest, %s, has %v; ask for less", i, s.Class, s.Needs(), largest, unit.Times(most))
		case s.Allocation && s.Tasks > large && s.TakesNode() && able >= s.Tasks:
			return messages.Errorf(messages.TooLarge, "stages[%d]: the job asks for %d whole nodes, and these must have the same size, but the nodes of class %s that can run its tasks are of several sizes; ask for fewer nodes, or for a number of processors on each node", i, s.Tasks, s.Class)
		case s.Allocation && s.Tasks > large:
			return messages.Errorf(messages.TooLarge, "stages[%d]: the job asks for %d nodes, but only %d nodes of class %s can run its tasks; ask for fewer nodes", i, s.Tasks, large, s.Class)
		case s.TakesNode():
			s.Width = most // only the largest nodes have this many slots
			s.Memory = max(s.Memory, 0)
		}
		if s.Exclusive { // the task gets everything that the node sells, not only what it needs
			all := unit.Times(s.Slots())
			s.CPUs, s.GPUs = max(s.CPUs, all.CPUs), max(s.GPUs, all.GPUs)
		}
		fill(s, unit)
	}
	return cmp.Or(even(spec, m), together(b, spec, m), checkBounds(account, spec, m), checkBudget(spec, m))
}

// chosen returns the names of the nodes, sorted. If there are more than a stage may name, it first leaves out nodes
// that take no tasks now.
func chosen(nodes []*book.Node) (names []messages.Name) {
	slices.SortFunc(nodes, func(a, b *book.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(nodes, func(a, b *book.Node) int { return cmp.Compare(shut(a), shut(b)) })
	for _, n := range nodes[:min(len(nodes), job.MaxChosen)] {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// shut returns 1 if the node takes no tasks now, and otherwise 0.
func shut(n *book.Node) int {
	if n.Up && n.Drain == 0 && n.Health.Quarantined == 0 {
		return 0
	}
	return 1
}

// An allocation takes whole nodes, which must all have the same number of slots. enough returns the largest such number
// for which the site has as many nodes as the stage takes. It returns 0 if there is none.
func enough(alike map[int][]*book.Node, s *job.Stage) (size int) {
	for slots, nodes := range alike {
		if s.Allocation && slots >= s.Slots() && len(nodes) >= s.Tasks {
			size = max(size, slots)
		}
	}
	return size
}

// together returns an error for a heterogeneous job that needs more slots of a class at once than the market has.
func together(b *book.Book, spec *job.JobSpec, m *market.Market) error {
	if !spec.Together {
		return nil
	}
	for _, class := range m.Classes {
		has, needs := 0, 0
		for _, n := range b.Nodes() {
			for _, c := range n.Slots {
				if !n.Removed && desk.Serves(m, n.Name) && c.Class == class {
					has += c.Slots
				}
			}
		}
		for i := range spec.Stages {
			if s := &spec.Stages[i]; s.Class == class {
				needs += s.TaskCount() * s.Slots()
			}
		}
		if needs > has {
			return messages.Errorf(messages.TooLarge, "stages: the parts of the job start together and take %d slots of class %s, and all nodes of market %s have %d; ask for less", needs, class, m.Name, has)
		}
	}
	return nil
}

// Some mechanisms need jobs whose tasks all take the same number of slots of a class. If the market has such a
// mechanism, the function `even` returns an error for any other job.
func even(spec *job.JobSpec, m *market.Market) error {
	for i := range spec.Stages {
		s := &spec.Stages[i]
		first := slices.IndexFunc(spec.Stages, func(o job.Stage) bool { return o.Class == s.Class })
		if o := &spec.Stages[first]; o.Slots() != s.Slots() && registry.Of(m).Even {
			return messages.Errorf(messages.Invalid, "stages[%d]: a task takes %d slots of class %s, and a task of stages[%d] takes %d: in market %s (%s) all tasks of a job must take the same number of slots; submit a job for each stage",
				i, s.Slots(), s.Class, first, o.Slots(), m.Name, m.Mechanism)
		}
	}
	return nil
}

// required lists what a stage requires of its nodes.
func required(s *job.Stage) string {
	var all []string
	some := func(names []messages.Name) string { return strings.Join(names[:min(len(names), 3)], ",") }
	if s.Constraint != "" {
		all = append(all, "constraint "+s.Constraint)
	}
	if len(s.Nodes) > 0 {
		all = append(all, "the list of nodes "+some(s.Nodes))
	}
	if s.GPUType != "" {
		all = append(all, "gpus of type "+s.GPUType)
	}
	if len(s.Exclude) > 0 {
		all = append(all, "exclude "+some(s.Exclude))
	}
	return strings.Join(all, " and ")
}

// fill sets the resources that a stage does not ask for: the task gets all resources of its slots.
func fill(s *job.Stage, unit job.Resources) {
	all := unit.Times(s.Slots())
	if s.CPUs == 0 {
		s.CPUs = all.CPUs
	}
	if s.Memory == 0 {
		s.Memory = all.Memory
	}
	if s.GPUs == 0 {
		s.GPUs, s.GPUType = all.GPUs, all.GPUType
	}
	if s.Disk == 0 {
		s.Disk = all.Disk
	}
}

// asked returns the name of a field in which the stage asks for a resource, such as "cpus". Only a class with a defined
// size of slots can give such a resource. It returns "" if there is no such field.
func asked(s *job.Stage) string {
	switch {
	case s.CPUs != 0:
		return "cpus"
	case s.GPUs != 0:
		return "gpus"
	case s.Disk != 0:
		return "disk"
	case s.Exclusive:
		return "a whole node (exclusive)"
	}
	return "all memory of a node"
}
