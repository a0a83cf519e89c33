package job

import (
	"cmp"
	"fmt"

	"github.com/candor-grid/candor/messages"
)

// MaxMembers bounds the number of tasks of an allocation, of all its stages together.
const MaxMembers = 1024

// validateAllocation returns an error for options that are impossible for a script that runs once for several nodes.
func (s *Stage) validateAllocation(path string) error {
	switch {
	case !s.Allocation:
		return nil
	case !s.Gang:
		return messages.Errorf(messages.Invalid, "%s.allocation: the tasks of an allocation start together; add the field gang, or leave the field allocation out", path)
	case s.Array != nil || s.Repeats != nil:
		return messages.Errorf(messages.Invalid, "%s.allocation: an array of allocations on several nodes is not possible; submit a job for each index, or ask for one node", path)
	case s.Tasks > MaxMembers:
		return messages.Errorf(messages.TooLarge, "%s.tasks: an allocation has at most %d nodes, not %d", path, MaxMembers, s.Tasks)
	}
	return nil
}

// validateTogether returns an error for allocations that are too small, and for stages that cannot start together.
func (s *JobSpec) validateTogether() error {
	all := 0
	for i := range s.Stages {
		of, path := &s.Stages[i], fmt.Sprintf("stages[%d]", i)
		switch all += of.TaskCount(); {
		case !s.Together && of.Allocation && of.TaskCount() < 2:
			return messages.Errorf(messages.Invalid, "%s.allocation: an allocation has at least two tasks; ask for more nodes, or leave the field allocation out", path)
		case !s.Together:
		case !of.Allocation:
			return messages.Errorf(messages.Invalid, "%s.allocation: is missing; the field together makes every stage of the job a part of one allocation", path)
		case len(of.After) > 0:
			return messages.Errorf(messages.Invalid, "%s.after: the field together starts all stages of the job at the same time; leave the field after out", path)
		case i > 0 && of.Interactive != nil:
			return messages.Errorf(messages.Invalid, "%s.interactive: only the first stage of an allocation can have a stream; leave the field interactive out", path)
		case all > MaxMembers:
			return messages.Errorf(messages.TooLarge, "%s.tasks: an allocation has at most %d nodes, and the job has %d up to this stage", path, MaxMembers, all)
		}
	}
	return nil
}

// GathersBefore reports whether stage a of a heterogeneous job must have all its nodes before stage b gets any. The
// stage with fewer possible nodes goes first. If these numbers are equal, the stage with wider tasks goes first.
// Otherwise a task that fits on every node could take the only node that another stage can use.
func (s *JobSpec) GathersBefore(a, b int) bool {
	x, y := &s.Stages[a], &s.Stages[b]
	return cmp.Or(cmp.Compare(y.choosy(), x.choosy()), cmp.Compare(y.Slots(), x.Slots()), cmp.Compare(a, b)) < 0
}

func (s *Stage) choosy() int {
	switch {
	case len(s.Nodes) > 0:
		return 2
	case s.Constraint != "" || s.GPUType != "":
		return 1
	}
	return 0
}
