package book

import (
	"cmp"
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// claims changes the tasks that nodes have claimed. A claimed task runs, gathers slots, is suspended, leaves its slot,
// or waits for a slot. A stage counts its claimed tasks in each of these states except the first.
type claims struct {
	licenses *licenses
	notices  *notices
	jobs     *jobs
	nodes    *nodes
	meters   *meters
	watch    *watch
	clock    *clock

	dependencies *dependencies
}

// PausedBy returns for how long a claim has not run, because it was suspended, gathered slots, or waited for a slot.
func (h *NodeClaim) PausedBy(now messages.Time) messages.Duration {
	if h.Halt == Goes {
		return h.Paused
	}
	return h.Paused + now.Sub(h.Since)
}

// uncount is called when a claim ends. It takes the claim off the counts of its stage and its owners, and frees its
// licences.
func (c *claims) uncount(r messages.TaskRef, h NodeClaim) {
	if h.Halt != Ahead {
		c.licenses.count(r, -1)
	}
	if j := c.jobs.own(r.Job); j != nil {
		c.meters.meter(j, int(r.Stage))
		j.Stages[r.Stage].tally(h, -1)
	}
}

// turn changes the state of a claim. Suspension frees the claim's slot; resumption takes a slot again.
func (c *claims) turn(node uint32, r messages.TaskRef, to NodeClaim) {
	n := c.nodes.inOrder[node]
	from := n.Claims[r]
	if j := c.jobs.own(r.Job); j != nil {
		c.meters.meter(j, int(r.Stage))
		j.Stages[r.Stage].tally(from, -1)
		j.Stages[r.Stage].tally(to, 1)
		c.watch.touch(j.ID)
	}
	if from.Halt != to.Halt {
		n.Version++
		to.Since, to.Paused = c.clock.now, from.PausedBy(c.clock.now)
	}
	if was, is := from.Halt == Suspended, to.Halt == Suspended; was != is {
		if is {
			n.use(to.Class, -to.slots())
		} else {
			n.use(to.Class, to.slots())
		}
	}
	n.set(r, to)
	c.watch.touchNode(node)
}

// begin gives a slot to a task that the agent claimed in advance. The time `at` is when the task got its slot.
func (c *claims) begin(n *Node, r messages.TaskRef, at messages.Time) NodeClaim {
	h := n.Claims[r]
	c.uncount(r, h)
	n.wait(h.Class, -1)
	n.use(h.Class, h.slots())
	h.Halt, h.Since = Goes, 0
	n.set(r, h)
	c.licenses.count(r, 1)
	if j := c.jobs.own(r.Job); j != nil {
		j.Stages[r.Stage].tally(h, 1)
		c.started(j, r, at)
		c.watch.touch(j.ID)
	}
	return h
}

// The method `started` stores the time at which a task got its slot. If it is the first task of its job that got a
// slot, the job starts too.
func (c *claims) started(j *Job, r messages.TaskRef, at messages.Time) {
	s := &j.Stages[r.Stage]
	s.Tasks[r.Index].Claimed = at
	s.Started = cmp.Or(s.Started, at)
	if j.State == job.Waiting {
		j.State, j.Started = job.Running, at
		c.dependencies.started(j.ID)
		if c.meters.tariffs[j.Spec.Market] != nil {
			c.meters.enlist(j)
		}
		c.notices.event(j, job.NotifyStart)
	}
}

func (c *claims) claimOf(a messages.Attempt) (node uint32, h NodeClaim, ok bool) {
	j := c.jobs.own(a.Task.Job)
	if j == nil || int(a.Task.Stage) >= len(j.Stages) || int(a.Task.Index) >= len(j.Stages[a.Task.Stage].Tasks) {
		return 0, h, false
	}
	t := &j.Stages[a.Task.Stage].Tasks[a.Task.Index]
	if t.Phase != Claimed || t.Attempt != a.Number {
		return 0, h, false
	}
	h, ok = c.nodes.inOrder[t.Node].Claims[a.Task]
	return t.Node, h, ok && h.Attempt == a.Number
}

func (c *claims) stop(a messages.Attempt) {
	if node, _, ok := c.claimOf(a); ok {
		c.nodes.inOrder[node].Stop = append(c.nodes.inOrder[node].Stop, a)
		c.watch.touchNode(node)
	}
}

// runs reports whether the task has a claim with a slot, and was not told to end. A suspended task counts too.
func (c *claims) runs(j *Job, r messages.TaskRef) bool {
	tasks := j.Stages[r.Stage].Tasks
	if int(r.Index) >= len(tasks) {
		return false
	}
	_, h, ok := c.claimOf(messages.Attempt{Task: r, Number: tasks[r.Index].Attempt})
	return ok && !h.Leaving && h.Halt != Ahead
}

// runs returns how many tasks of the job have a claim with a slot and were not told to end.
func (j *Job) runs() (n int) {
	for i := range j.Stages {
		s := &j.Stages[i]
		n += s.Running - s.Leaving - s.Ahead
	}
	return n
}

func (c *claims) running(j *Job) (out []messages.TaskRef) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			if r := (messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}); c.runs(j, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

type blame uint8

// The job, the site or the market can be the cause of a failed attempt.
const (
	// the program or the owner ended the attempt: the job pays, and the price counts the task as complete
	ofJob blame = iota
	// a node was lost or drained, or an executor failed: the job does not pay, and the task is not complete
	ofSite
	// ofMarket means that the attempt lost its slot to a better bid, and that the slot has a price. The job pays for
	// the time of the attempt. If it did not, a user could cheat: when the user's first job has printed its result, the
	// user's second job takes the slot, and the first job costs nothing.
	ofMarket
)

// excuse is called after a failed attempt. If the site caused the failure, excuse subtracts the time of the attempt
// from the time for which the job pays.
func (c *claims) excuse(r messages.TaskRef, h NodeClaim, by blame) {
	if by == ofSite {
		j := c.jobs.own(r.Job)
		c.meters.meter(j, int(r.Stage))
		c.meters.forgive(j, int(r.Stage), c.had(r, h))
	}
}

// owes returns the slot time that the job must pay for an attempt that ends now. If the claim has the mark Leaving, the
// result is 0, because its time was subtracted earlier.
func (c *claims) owes(r messages.TaskRef, h NodeClaim) messages.Duration {
	if h.Leaving {
		return 0
	}
	return c.had(r, h)
}

// The method had returns the slot time that a claim has used until now.
func (c *claims) had(r messages.TaskRef, h NodeClaim) messages.Duration {
	if h.Halt == Ahead {
		return 0
	}
	return messages.Duration(h.slots()) * max(0, cmp.Or(h.until, c.clock.now).Sub(c.jobs.own(r.Job).Stages[r.Stage].Tasks[r.Index].Claimed)-h.PausedBy(c.clock.now))
}

func (c *claims) again(j *Job, s *Stage, index uint32) {
	t := &s.Tasks[index]
	t.Phase, t.Ended = Pending, c.clock.now
	s.Running--
	s.Retried++
	s.Again = append(s.Again, index)
	s.Broken = s.Broken && s.Running > 0
	c.watch.touch(j.ID)
}

func (c *claims) stopAll(j *Job) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			if t := &j.Stages[i].Tasks[k]; t.Phase == Claimed {
				c.stop(messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: t.Attempt})
			}
		}
	}
}

// maxCPU is the maximum processor time in nanoseconds that an agent can report for one attempt. It keeps sums from
// overflowing.
const maxCPU = messages.Duration(1e15)

// attemptEnded records how the latest attempt of a task ended. The argument `f` is nil if no agent reported the end.
func (c *claims) attemptEnded(r messages.TaskRef, h NodeClaim, why job.EndReason, f *agent.Finished) {
	j := c.jobs.own(r.Job)
	t := &j.Stages[r.Stage].Tasks[r.Index]
	paused := h.PausedBy(c.clock.now)
	t.Reason, t.Paused = why, ticks(paused)
	k := Kept{Stage: r.Stage, Index: r.Index, Attempt: t.Attempt, Node: t.Node, Reason: why, Claimed: t.Claimed, Ended: cmp.Or(h.until, c.clock.now), Paused: paused}
	if f != nil {
		k.Exit, k.CPU, k.MaxRSS, k.Detail = int32(f.ExitCode), min(max(f.CPU, 0), maxCPU), max(f.MaxRSS, 0), f.Detail
		t.CPU, t.Memory = ticks(k.CPU), uint32(min(k.MaxRSS>>10, math.MaxUint32))
	}
	if why != job.NoReason && why != job.EndCancelled && why != job.EndTaskCancelled && why != job.EndJobOver { // for the other reasons, the record of the task is enough
		j.Kept.add(k, max(1, MaxKept/len(j.Stages)))
	}
}

// complete records the first end of a task. From then on, the price counts the task as complete, and a later run of the
// task is a repetition. If the job has already ended, complete does nothing.
func (c *claims) complete(r messages.TaskRef, h NodeClaim, by Ender) {
	j := c.jobs.own(r.Job)
	s := &j.Stages[r.Stage]
	if t := &s.Tasks[r.Index]; t.Ender == NoEnder && h.Halt != Ahead && j.Active() {
		t.Ender = by
		s.Complete++
		s.CompleteAt = max(s.CompleteAt, cmp.Or(h.until, c.clock.now))
		s.Delivered += c.had(r, h)
	}
}

// completeAll is called when the owner or the program ends the job. It records the job's running tasks as complete, so
// that the price counts them as complete.
func (c *claims) completeAll(j *Job) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t, r := &j.Stages[i].Tasks[k], messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}
			if t.Phase != Claimed {
				continue
			}
			if _, h, ok := c.claimOf(messages.Attempt{Task: r, Number: t.Attempt}); ok && !h.Leaving {
				c.complete(r, h, ByOwner)
			}
		}
	}
}
