package book

import (
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
)

// A task of several slots finds them free together on one node only by chance. So a node on
// which such a task was drawn gathers: of its class, it gives no slot that is free, or
// becomes free, to any other task, until the task has all of its slots. One task gathers
// the slots of a class of a node at a time, and gives up after GatherFor; then the node gathers for
// nobody for GatherRest. What the slots that were idle meanwhile cost, at the tariffs of when the task
// starts, its job pays then; a task that gives up pays nothing.

// How long a task gathers at most, and how long a node rests after it gave up.
const (
	GatherFor  = messages.Duration(time.Hour)
	GatherRest = messages.Duration(10 * time.Minute)
)

// holdOn counts the slots that are idle for gatherings. It must be called before slots become free.
func (n *Node) holdOn(now messages.Time) {
	for i := range n.Gatherings {
		g := &n.Gatherings[i]
		if idle := min(n.room(g.Class), g.Width); idle > 0 && now > g.At {
			g.Micros += uint64(idle) * uint64(now-g.At)
		}
		g.At = now
	}
}

// Suits reports whether the node satisfies what a stage requires of nodes.
func (n *Node) Suits(s *messages.Stage) bool {
	switch {
	case len(s.Nodes) > 0 && !slices.Contains(s.Nodes, n.Name), slices.Contains(s.Exclude, n.Name):
		return false
	case s.GPUType != "" && n.Resources != nil && n.Resources.GPUType != s.GPUType:
		return false
	case s.Constraint == "":
		return true
	}
	c, err := messages.ParseConstraint(s.Constraint)
	return err == nil && c.Satisfied(n.Labels)
}

// claimWide grants tasks of several slots each as far as the node has the slots, for as many
// slots as are wanted or, with the last task, a few more. For a task that lacks slots it gathers.
func (x *exchanges) claimWide(on *Node, node uint32, j *Job, stage, want, most int, grants []messages.Grant) []messages.Grant {
	of := &j.Spec.Stages[stage]
	width, class := of.Slots(), of.Class
	if of.Allocation {
		if !x.mayGather(on, node, j, stage) {
			return grants
		}
		want, most = min(want, 1), max(most, width) // one on a node; shares are of slot time, and it starts as a whole
	}
	for ; want > 0 && most >= width && j.Claimable(stage) > 0; want, most = want-width, most-width {
		if on.Idle(class) < width {
			x.gatherSlots(on, node, j, stage)
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

// mayGather reports whether a node may claim a task of an allocation: each is on a node of its own. Of a class, one
// allocation gathers at a time, lest each of two has nodes that the other waits for.
func (x *exchanges) mayGather(on *Node, node uint32, j *Job, stage int) bool {
	class := j.Spec.Stages[stage].Class
	if by, taken := x.gathers[class]; taken && by != (gatherer{j.ID, stage}) {
		if other := x.jobs.own(by.job); other != nil && other.Active() && other.Stages[by.stage].assembles() {
			return false
		}
	}
	for k := range j.Stages[stage].Tasks {
		if t := &j.Stages[stage].Tasks[k]; t.Phase == Claimed && t.Node == node {
			return false
		}
	}
	if j.Claimable(stage) == 0 || slices.ContainsFunc(on.Gatherings, func(g Gathering) bool { return g.Job == j.ID && g.Stage == uint32(stage) }) {
		return false
	}
	x.gathers[class] = gatherer{j.ID, stage}
	return true
}

// recount finds the allocations that gather, in a book that was restored.
func (x *exchanges) recount(j *Job) {
	for i := range j.Stages {
		if of := &j.Spec.Stages[i]; of.Allocation && j.Active() && j.Stages[i].assembles() {
			x.gathers[of.Class] = gatherer{j.ID, i}
		}
	}
}

// gatherSlots has a node gather slots for a task, if it has enough of them in all.
func (x *exchanges) gatherSlots(n *Node, node uint32, j *Job, stage int) {
	of := &j.Spec.Stages[stage]
	i := n.class(of.Class)
	if i < 0 || n.Slots[i].Slots < of.Slots() || n.barred() || n.Drain != 0 || n.gathers(of.Class) || x.clock.now < n.Gathered || of.Gang && !of.Allocation {
		return
	}
	n.Gatherings = append(n.Gatherings, Gathering{Class: of.Class, Job: j.ID, Stage: uint32(stage), Width: of.Slots(), Since: x.clock.now, At: x.clock.now})
	j.Stages[stage].Nodes++
	x.watch.touch(j.ID)
	x.watch.touchNode(node)
}

// gathered grants the tasks for which a node has gathered enough slots, and ends the gatherings
// that have lasted too long, or whose task is to start no more.
func (x *exchanges) gathered(n *Node, node uint32, grants []messages.Grant) []messages.Grant {
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
		case j == nil || j.Claimable(int(g.Stage)) == 0 || n.barred() || n.Drain != 0:
			continue
		case n.room(g.Class) < g.Width && late:
			n.Gathered = x.clock.now.Add(GatherRest)
			continue
		case n.room(g.Class) < g.Width:
			n.Gatherings = append(n.Gatherings, g)
			j.Stages[g.Stage].Nodes++
			continue
		}
		if at, ok := x.health.next(j, int(g.Stage), node); ok {
			grants = append(grants, x.grant(n, node, j, int(g.Stage), at, false))
			j.Stages[g.Stage].Meter.add(g.Micros, price(x.meters.tariffs[j.Spec.Market], j.Spec, int(g.Stage)))
		}
	}
	return grants
}

// release takes a gathering off the count of its stage, and returns the job, nil if it has ended.
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

// giveUp ends all gatherings of a node.
func (x *exchanges) giveUp(n *Node) {
	for _, g := range n.Gatherings {
		x.release(g)
	}
	n.Gatherings = nil
}
