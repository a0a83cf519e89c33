package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Jobs returns the jobs that the command may end, or may keep from starting tasks: jobs that their owners cancel, hold
// or change, and jobs of failed tasks.
func (c *Command) Jobs() (ids []messages.JobID) {
	switch {
	case c.Cancel != nil:
		return []messages.JobID{c.Cancel.Job}
	case c.CancelJobs != nil:
		return c.CancelJobs.Jobs
	case c.CancelTasks != nil:
		return []messages.JobID{c.CancelTasks.Job}
	case c.Park != nil:
		return []messages.JobID{c.Park.Job}
	case c.Change != nil:
		return []messages.JobID{c.Change.Job}
	case c.Exchange != nil:
		for i := range c.Exchange.Finished {
			if f := &c.Exchange.Finished[i]; f.Reason() != job.NoReason {
				ids = append(ids, f.Attempt.Task.Job)
			}
		}
	}
	return ids
}

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

// payKeepers makes jobs pay for slots that the keepers of the command gathered, and that the jobs no longer want: their
// owners cancelled them or put them on hold. Without this, a user could submit and cancel jobs to keep nodes idle at no
// cost. The price is the price of this moment, as when a task starts.
func (c *claims) payKeepers() {
	for _, name := range c.keepers {
		_, n := c.nodes.find(name)
		if n == nil {
			continue
		}
		n.holdOn(c.clock.now)
		for i := range n.Gatherings {
			g := &n.Gatherings[i]
			if j := c.jobs.own(g.Job); j != nil && !j.Settled && !j.Gathers(int(g.Stage)) {
				j.Stages[g.Stage].Meter.count(g.Micros, c.meters.tariffs[j.Spec.Market], j.Spec, int(g.Stage))
				g.Micros = 0
			}
		}
	}
}

// payWaiting makes an ended job pay for the slots in which the tasks of its allocation waited for other nodes. Only
// slots of the command's keepers are counted.
func (c *claims) payWaiting(j *Job) {
	for i := range j.Stages {
		s := &j.Stages[i]
		for k := 0; j.Spec.Stages[i].Allocation && s.Gathering > 0 && k < len(s.Tasks); k++ {
			node, h, ok := c.claimOf(messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: s.Tasks[k].Attempt})
			if ok && h.Halt == Gathers && slices.Contains(c.keepers, c.nodes.inOrder[node].Name) {
				s.Meter.count(uint64(h.slots())*uint64(h.PausedBy(c.clock.now)/1000), c.meters.tariffs[j.Spec.Market], j.Spec, i)
			}
		}
	}
}
