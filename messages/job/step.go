package job

import "github.com/candor-grid/candor/messages"

// MaxMembers bounds the number of tasks of an allocation.
const MaxMembers = 1024

// validateAllocation returns an error for options that are impossible for a script that runs once for several nodes.
func (s *Stage) validateAllocation(path string) error {
	switch {
	case !s.Allocation:
		return nil
	case !s.Gang || s.Tasks < 2:
		return messages.Errorf(messages.Invalid, "%s.allocation: an allocation is a gang of at least two tasks; ask for more nodes, or leave it out", path)
	case s.Array != nil || s.Repeats != nil:
		return messages.Errorf(messages.Invalid, "%s.allocation: an array of allocations on several nodes is not possible; submit a job for each index, or ask for one node", path)
	case s.Tasks > MaxMembers:
		return messages.Errorf(messages.TooLarge, "%s.tasks: an allocation has at most %d nodes, not %d", path, MaxMembers, s.Tasks)
	}
	return nil
}
