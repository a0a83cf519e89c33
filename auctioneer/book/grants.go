package book

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// exchanges carries out what agents ask for: it registers nodes, ends tasks, and claims new tasks.
type exchanges struct {
	licenses *licenses
	jobs     *jobs
	nodes    *nodes
	windows  *windows
	meters   *meters
	claims   *claims
	endings  *endings
	health   *health
	watch    *watch
	clock    *clock

	gathers map[messages.Name]gatherer // by class: the last allocation (a job on several nodes) for which nodes kept slots free
}

// grant claims a task for the node. The argument `at` is a position in the list of tasks to be claimed again, or −1 for
// a task that was never claimed. With `ahead`, the task waits on the node for a slot.
func (x *exchanges) grant(n *Node, node uint32, j *Job, stage, at int, ahead bool) agent.Grant {
	s, class := &j.Stages[stage], j.Spec.Stages[stage].Class
	x.meters.meter(j, stage)
	var index uint32
	switch {
	case at >= 0: // remove the position `at`; only few positions are before it
		index = s.Again[at]
		copy(s.Again[1:], s.Again[:at])
		s.Again = s.Again[1:]
	default:
		index = uint32(len(s.Tasks))
		s.Tasks = append(s.Tasks, Task{})
		s.pass(x.clock.now)
	}
	t := &s.Tasks[index]
	if t.Attempt > 0 && t.Claimed != 0 && j.Kept.past(uint32(stage), index, t.Attempt) == nil {
		j.Omitted++
	}
	*t = Task{Attempt: t.Attempt + 1, Tries: t.Tries, Ender: t.Ender, Phase: Claimed, Node: node}
	s.Running++
	ref := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: index}
	h := NodeClaim{Attempt: t.Attempt, Class: class, Width: j.Spec.Stages[stage].Width}
	if ahead {
		h.Halt, h.Since = Ahead, x.clock.now
		n.wait(class, 1)
		s.tally(h, 1)
	} else {
		n.use(class, h.slots())
		x.licenses.count(ref, 1)
		x.claims.started(j, ref, x.clock.now)
	}
	n.set(ref, h)
	if j.Spec.Stages[stage].Gang {
		x.claims.gather(j, stage, ref)
	}
	x.watch.touch(j.ID)
	x.watch.touchNode(node)
	of := &j.Spec.Stages[stage]
	g := agent.Grant{Attempt: messages.Attempt{Task: ref, Number: t.Attempt}, Array: of.Array.At(int64(index)), Ahead: ahead}
	if of.Repeats != nil {
		g.Position = 1 + uint32(of.Repeats.Positions.At(int64(index)))
	}
	return g
}
