package book

import (
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// A task of several slots rarely finds enough free slots on one node. So a node gathers slots for such a task: it keeps
// the free slots of the class, and gives them only to tasks that end before the task with several slots can start (see
// [Claim.Lent]). A node gathers for one task of a class at a time.
//
// The node gives up after GatherFor, and rests before it gathers again. Each rest is twice as long as the last rest,
// until a gathering succeeds. The reason is that most gatherings fail where tasks take many hours. When the task
// starts, its job pays for the slots that were idle, at the tariffs of that moment. If the node gives up, the job pays
// nothing.

const (
	// GatherFor is the longest time for which a node gathers slots for one task.
	GatherFor = messages.Duration(time.Hour)
	// firstRest is how long a node rests after the first failed gathering. The rest doubles at most mostDoublings
	// times. With the longest rest, a node gathers for less than a sixth of the time.
	firstRest     = messages.Duration(10 * time.Minute)
	mostDoublings = 5
)

// A gathering is a set of slots that a node keeps free for a task of several slots. For each gathering of the node,
// holdOn adds the slot time that was kept idle since the last call. The caller must call holdOn before more slots
// become free.
func (n *Node) holdOn(now messages.Time) {
	for i := range n.Gatherings {
		g := &n.Gatherings[i]
		if idle := min(n.freeSlots(g.Class), g.Width); idle > 0 && now > g.At {
			g.Micros += uint64(idle) * uint64(now-g.At)
		}
		g.At = now
	}
}

// open returns how many free slots of the node the claim could give to a new task of the stage now. Slots that are lent
// count too; see [Claim.Lent].
func (n *Node) open(c *Claim, of *job.Stage) int {
	at := slices.IndexFunc(n.Gatherings, func(g Gathering) bool { return g.Class == c.Class })
	if c.Lent == 0 || at < 0 || n.barred() {
		return n.Idle(c.Class)
	}
	if of.TimeLimit == 0 || of.TimeLimit > c.Lent || of.Gang || of.Allocation {
		return 0
	}
	return n.freeSlotsBeside(c.Class, slices.Delete(slices.Clone(n.Gatherings), at, at+1))
}

// Suits reports whether the node meets a stage's requirements on nodes.
func (n *Node) Suits(s *job.Stage) bool {
	switch {
	case len(s.Nodes) > 0 && !slices.Contains(s.Nodes, n.Name), slices.Contains(s.Exclude, n.Name):
		return false
	case s.GPUType != "" && n.Resources != nil && n.Resources.GPUType != s.GPUType:
		return false
	case s.Constraint == "":
		return true
	}
	c, err := job.ParseConstraint(s.Constraint)
	return err == nil && c.Satisfied(n.Labels)
}

// claimWide gives the node tasks of several slots each, until the slots that were asked for are used. The last task may
// use a few more. If too few slots are free for a task, the node gathers slots for it, unless the claim's field Fits is
// true.
func (x *exchanges) claimWide(on *Node, node uint32, j *Job, stage, want, most int, c *Claim, grants []agent.Grant) []agent.Grant {
	of := &j.Spec.Stages[stage]
	width := of.Slots()
	if of.Allocation {
		if !x.mayGather(on, node, j, stage) {
			return grants
		}
		want, most = min(want, 1), max(most, width) // one task on each node. It may use more than `most` slots, because the allocation starts as a whole
	}
	for ; want > 0 && most >= width; want, most = want-width, most-width {
		idle, open := on.open(c, of), x.licenses.claimable(j, stage)
		if idle >= width && !of.Allocation {
			open = x.licenses.startable(j, stage)
		}
		if open == 0 {
			break
		}
		if idle < width {
			if !c.Fits && (of.Allocation || x.licenses.permits(j, stage) > j.Stages[stage].Nodes) {
				x.gatherSlots(on, node, j, stage)
			}
			break
		}
		at, ok := x.health.next(j, stage, node)
		if !ok {
			break
		}
		grants = append(grants, x.grant(on, node, j, stage, at, false))
	}
	return grants
}

// mayGather reports whether a node may claim a task of an allocation. The tasks of a stage must be on different nodes.
// In each class, only one allocation may gather nodes at a time: if there were two, each could hold nodes that the
// other needs. A heterogeneous job may gather only if it may do so in all its classes.
func (x *exchanges) mayGather(on *Node, node uint32, j *Job, stage int) bool {
	first, end := j.gang(stage)
	own := gatherer{j.ID, first}
	for i := first; i < end; i++ {
		if by, taken := x.gathers[j.Spec.Stages[i].Class]; taken && by != own {
			if other := x.jobs.own(by.job); other != nil && other.Active() && other.assembles(by.stage) {
				return false
			}
		}
	}
	for k := range j.Stages[stage].Tasks {
		if t := &j.Stages[stage].Tasks[k]; t.Phase == Claimed && t.Node == node {
			return false
		}
	}
	if x.licenses.claimable(j, stage) == 0 || slices.ContainsFunc(on.Gatherings, func(g Gathering) bool { return g.Job == j.ID && g.Stage == uint32(stage) }) {
		return false
	}
	for i := first; i < end; i++ {
		x.gathers[j.Spec.Stages[i].Class] = own
	}
	return true
}

// An allocation (a job on several nodes) may be gathering nodes. recount is called after the book was restored. For
// each class in which an allocation of the job gathers nodes, recount records this allocation.
func (x *exchanges) recount(j *Job) {
	for i := range j.Stages {
		if of := &j.Spec.Stages[i]; of.Allocation && j.Active() && j.assembles(i) {
			first, _ := j.gang(i)
			x.gathers[of.Class] = gatherer{j.ID, first}
		}
	}
}

// gatherSlots makes a node gather slots for a task, if the node has enough slots in total.
func (x *exchanges) gatherSlots(n *Node, node uint32, j *Job, stage int) {
	of := &j.Spec.Stages[stage]
	i := n.class(of.Class)
	if i < 0 || n.Slots[i].Slots-j.holds(of.Class, node) < of.Slots() || n.barred() || n.Drain != 0 || n.Gathers(of.Class) || x.clock.now < n.Gathered || of.Gang && !of.Allocation {
		return
	}
	n.Gatherings = append(n.Gatherings, Gathering{Class: of.Class, Job: j.ID, Stage: uint32(stage), Width: of.Slots(), Since: x.clock.now, At: x.clock.now})
	j.Stages[stage].Nodes++
	x.watch.touch(j.ID)
	x.watch.touchNode(node)
}

// holds returns how many slots of a class on a node are kept for a heterogeneous job. The job's tasks there have their
// slots, and wait until its other tasks have slots too.
func (j *Job) holds(class messages.Name, node uint32) (slots int) {
	for i := 0; j.Spec.Together && i < len(j.Stages); i++ {
		for k := range j.Stages[i].Tasks {
			if t := &j.Stages[i].Tasks[k]; j.Spec.Stages[i].Class == class && t.Phase == Claimed && t.Node == node {
				slots += j.Spec.Stages[i].Slots()
			}
		}
	}
	return slots
}

// gathered grants the tasks for which a node has gathered enough slots. It ends gatherings that lasted too long, or
// whose task cannot start any more.
func (x *exchanges) gathered(n *Node, node uint32, grants []agent.Grant) []agent.Grant {
	if len(n.Gatherings) == 0 {
		return grants
	}
	x.watch.touchNode(node)
	all := n.Gatherings
	n.Gatherings = nil
	for _, g := range all {
		j := x.release(g)
		late := x.clock.now >= g.Since.Add(GatherFor)
		switch {
		case j == nil || x.licenses.claimable(j, int(g.Stage)) == 0 || n.barred() || n.Drain != 0 || !n.Admits(&j.Spec.Stages[g.Stage], x.clock.now):
			continue
		case n.freeSlots(g.Class) < g.Width && late:
			n.Gathered = x.clock.now.Add(firstRest << n.InVain)
			n.InVain = min(n.InVain+1, mostDoublings)
			continue
		case n.freeSlots(g.Class) < g.Width:
			n.Gatherings = append(n.Gatherings, g)
			j.Stages[g.Stage].Nodes++
			continue
		}
		if at, ok := x.health.next(j, int(g.Stage), node); ok {
			n.InVain = 0
			grant := x.grant(n, node, j, int(g.Stage), at, false)
			grant.Waited = messages.Duration(g.Micros) * 1000
			grants = append(grants, grant)
			j.Stages[g.Stage].Meter.count(g.Micros, x.meters.tariffs[j.Spec.Market], j.Spec, int(g.Stage))
		}
	}
	return grants
}

// A gathering is a task for which a node gathers slots. release removes the gathering from the counts of the task's
// stage. It returns the task's job, or nil if the job has ended.
func (x *exchanges) release(g Gathering) *Job {
	j := x.jobs.own(g.Job)
	if j == nil {
		return nil
	}
	j.Stages[g.Stage].Nodes--
	x.watch.touch(j.ID)
	if !j.Active() {
		return nil
	}
	return j
}

func (x *exchanges) giveUp(n *Node) {
	for _, g := range n.Gatherings {
		x.release(g)
	}
	n.Gatherings = nil
}
