package machine

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/nodeagent/runner/cell"
)

// Controllers returns the controllers that are needed to divide the machine.
func (m *Machine) Controllers() (list []string) {
	if len(m.CPUs) > 0 {
		list = append(list, cell.Set)
	}
	if slices.ContainsFunc(m.GPUs, func(g GPU) bool { return len(g.Files) > 0 }) {
		list = append(list, cell.Devices)
	}
	return list
}

// Bounds returns the processors of a portion, and the GPUs that a task with it may open and may not open, in the form
// of [cell.Limits].
func (m *Machine) Bounds(p *Portion) (cpus, gpus string) {
	for _, g := range m.GPUs {
		may := "-"
		if slices.ContainsFunc(p.gpus, func(o GPU) bool { return o.Index == g.Index }) {
			may = "+"
		}
		for _, file := range g.Files {
			var info unix.Stat_t
			if unix.Stat(file, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFCHR {
				gpus += fmt.Sprintf("c %d:%d %s ", unix.Major(info.Rdev), unix.Minor(info.Rdev), may)
			}
		}
	}
	return set(p.cpus), gpus
}

// Affinity returns a mask of the portion's processors for sched_setaffinity; nil means all processors.
func (p *Portion) Affinity() *unix.CPUSet {
	if p == nil || len(p.cpus) == 0 {
		return nil
	}
	mask := new(unix.CPUSet)
	for _, c := range p.cpus {
		mask.Set(c)
	}
	return mask
}
