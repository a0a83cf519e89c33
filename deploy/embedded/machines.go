package embedded

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// machineOf is the part of this machine that a node's tasks divide: the nodes of a process have parts of their own, in
// their order. A node that says nothing of its resources divides nothing. discover finds what the machine has.
func machineOf(nodes []Node, name messages.Name, discover func() runner.Machine) (m runner.Machine, err error) {
	var found runner.Machine
	asked := false
	for i := range nodes {
		n := &nodes[i]
		r := n.Resources
		switch {
		case r == nil:
			m = runner.Machine{}
		case n.Declared:
			m = runner.Machine{Memory: r.Memory}
			for k := range r.GPUs {
				m.GPUs = append(m.GPUs, runner.GPU{Index: k, Type: r.GPUType})
			}
		default:
			if !asked {
				found, asked = discover(), true
			}
			if m, err = cut(&found, n); err != nil {
				return m, err
			}
		}
		if n.Name == name {
			return m, nil
		}
	}
	return runner.Machine{}, nil
}

// cut takes what a node has out of what is left of the machine.
func cut(left *runner.Machine, n *Node) (m runner.Machine, err error) {
	r := n.Resources
	more := func(what string, wanted, there any) error {
		return messages.Errorf(messages.Invalid, "node %s: resources.%s: %v, and this machine has %v left for the node: say less, or \"declared: true\" to stand for a larger machine", n.Name, what, wanted, there)
	}
	if r.CPUs > len(left.CPUs) {
		return m, more("cpus", r.CPUs, len(left.CPUs))
	}
	if r.Memory > left.Memory {
		return m, more("memory", messages.SizeText(r.Memory), messages.SizeText(left.Memory))
	}
	m.CPUs, left.CPUs = left.CPUs[:r.CPUs], left.CPUs[r.CPUs:]
	m.Memory = r.Memory
	left.Memory -= r.Memory
	var others []runner.GPU
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
