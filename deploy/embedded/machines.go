package embedded

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
)

// SellMachine makes the site sell the machine in its first market, on a single node. A slot of the class cpu is one
// processor with its part of the memory. If the machine has GPUs, a slot of the class gpu is one GPU with its part of
// the processors and the memory.
func (c *Config) SellMachine(m machine.Machine) {
	part := func(n int) int64 { return m.Memory / int64(n) >> 20 << 20 } // rounded down to whole MiB
	c.Markets, c.Nodes = c.Markets[:1:1], []Node{{Name: "node1"}}
	sold := &c.Markets[0]
	sold.Classes, sold.Units = []messages.Name{"cpu"}, []jobmsg.ClassUnit{{Class: "cpu", Unit: jobmsg.Resources{CPUs: 1, Memory: part(max(len(m.CPUs), 1))}}}
	if n := len(m.GPUs); n > 0 {
		sold.Classes = append(sold.Classes, "gpu")
		sold.Units = append(sold.Units, jobmsg.ClassUnit{Class: "gpu", Unit: jobmsg.Resources{GPUs: 1, CPUs: max(len(m.CPUs)/n, 1), Memory: part(n)}})
	}
}

// divide gives each node of this process its part of the machine, in the order of the nodes. It fills in missing
// resources and slots. A node with slots but without resources gets no part. A node with neither gets everything that
// is left. The function `discover` finds out the resources of the machine.
func divide(nodes []Node, markets []market.Market, discover func() (machine.Machine, error)) (full []Node, machines map[messages.Name]machine.Machine, err error) {
	full, machines = slices.Clone(nodes), map[messages.Name]machine.Machine{}
	var left machine.Machine
	asked := false
	for i := range full {
		n := &full[i]
		if n.Resources == nil && len(n.Slots) > 0 {
			continue
		}
		if !asked && !n.Declared {
			if left, err = discover(); err != nil {
				return nil, nil, err
			}
			asked = true
		}
		var m machine.Machine
		switch {
		case n.Resources == nil:
			m, left = left, machine.Machine{}
			n.Resources = resourcesOf(&m)
		case n.Declared:
			m = declared(n.Resources)
		default:
			if m, err = cut(&left, n); err != nil {
				return nil, nil, err
			}
		}
		machines[n.Name] = m
		if len(n.Slots) > 0 {
			continue
		}
		if n.Slots = n.sells(markets); len(n.Slots) == 0 {
			return nil, nil, messages.Errorf(messages.Invalid, "node %s: slots: are missing, and its resources, %v, are less than one slot of any class that is sold on the node; write the slots, or larger resources", n.Name, *n.Resources)
		}
	}
	return full, machines, nil
}

// declared returns a machine with the resources that a node declares.
func declared(r *jobmsg.Resources) machine.Machine {
	m := machine.Machine{Memory: r.Memory}
	for k := range r.GPUs {
		m.GPUs = append(m.GPUs, machine.GPU{Index: k, Type: r.GPUType})
	}
	return m
}

// resourcesOf returns the resources of a machine. If its GPUs have different types, the result has no type of GPUs.
func resourcesOf(m *machine.Machine) *jobmsg.Resources {
	r := &jobmsg.Resources{CPUs: len(m.CPUs), Memory: m.Memory, GPUs: len(m.GPUs)}
	for i := range m.GPUs {
		if r.GPUType = m.GPUs[i].Type; r.GPUType != m.GPUs[0].Type {
			r.GPUType = ""
			break
		}
	}
	return r
}

// offers returns the node's slots. If the slots are configured, it returns these. If only the node's resources are
// known, it returns as many slots as fit into the resources. If neither is known, it returns one slot for each class
// that has a unit and is sold on this node.
func (n *Node) offers(markets []market.Market) Slots {
	switch {
	case len(n.Slots) > 0:
		return n.Slots
	case n.Resources != nil:
		return n.sells(markets)
	}
	return n.sold(markets, func(jobmsg.Resources) int { return 1 })
}

// sells returns how many slots of each class fit into the node's resources. It returns only classes that a market sells
// and that have a unit. (The unit is the size of a slot.)
func (n *Node) sells(markets []market.Market) Slots { return n.sold(markets, n.Resources.Holds) }

// A market defines a unit for each class: the resources of one slot. sold returns, for each class that some market
// sells on this node, how many slots the node has. The function `holds` returns how many units fit on the node.
func (n *Node) sold(markets []market.Market, holds func(unit jobmsg.Resources) int) (slots Slots) {
	for i := range markets {
		m := &markets[i]
		if len(m.Nodes) > 0 && !slices.Contains(m.Nodes, n.Name) {
			continue
		}
		for _, u := range m.Units {
			count := min(holds(u.Unit), maxSlots)
			if count > 0 && !slices.ContainsFunc(slots, func(s jobmsg.ClassSlots) bool { return s.Class == u.Class }) {
				slots = append(slots, jobmsg.ClassSlots{Class: u.Class, Slots: count})
			}
		}
	}
	slices.SortFunc(slots, func(a, b jobmsg.ClassSlots) int { return cmp.Compare(a.Class, b.Class) })
	return slots
}

func cut(left *machine.Machine, n *Node) (m machine.Machine, err error) {
	r := n.Resources
	more := func(what string, wanted, there any) error {
		return messages.Errorf(messages.Invalid, "node %s: resources.%s: %v is more than the %v that this machine has left for the node: write less, or \"declared: true\" if the node stands for a larger machine", n.Name, what, wanted, there)
	}
	if r.CPUs > len(left.CPUs) {
		return m, more("cpus", r.CPUs, len(left.CPUs))
	}
	if r.Memory > left.Memory {
		return m, more("memory", jobmsg.SizeText(r.Memory), jobmsg.SizeText(left.Memory))
	}
	m.CPUs, left.CPUs = left.CPUs[:r.CPUs], left.CPUs[r.CPUs:]
	m.Memory = r.Memory
	left.Memory -= r.Memory
	var others []machine.GPU
	for _, g := range left.GPUs {
		if len(m.GPUs) < r.GPUs && (r.GPUType == "" || g.Type == r.GPUType) {
			m.GPUs = append(m.GPUs, g)
		} else {
			others = append(others, g)
		}
	}
	if len(m.GPUs) < r.GPUs {
		return m, more("gpus", r.GPUs, len(m.GPUs))
	}
	left.GPUs = others
	return m, nil
}
