package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// requeue ends an attempt of a job that has not ended. The task, or its whole gang, becomes pending again. The argument
// `by` decides whether the job pays for the attempt. If the attempt is already being ended, requeue changes nothing.
func (c *claims) requeue(a messages.Attempt, by blame, why job.EndReason) {
	node, h, ok := c.claimOf(a)
	if !ok || h.Leaving || !c.jobs.own(a.Task.Job).Active() {
		return
	}
	if by == ofJob {
		c.complete(a.Task, h, ByOwner)
	}
	h.Leaving, h.Why = true, why
	c.turn(node, a.Task, h)
	c.stop(a)
	c.excuse(a.Task, h, by)
	c.breakGang(c.jobs.own(a.Task.Job), int(a.Task.Stage), by)
}

// requeueAll ends running tasks of a job when its owner or an operator has requested this. The tasks then run again
// from their beginning.
func (c *claims) requeueAll(r *Requeue) (n int, err error) {
	j := c.jobs.own(r.Job)
	switch {
	case j == nil:
		return 0, messages.Errorf(messages.NotFound, "there is no job %d", r.Job)
	case !j.Active():
		return 0, messages.Errorf(messages.Ended, "job %d is %v already; `candor rerun %d` runs its failed tasks in a new job", j.ID, j.Outcome, j.ID)
	case j.Order != nil || j.Contract != nil:
		return 0, messages.Errorf(messages.Conflict, "job %d has reserved slots, and its tasks cannot begin again; cancel the job and submit it again", j.ID)
	}
	for _, ref := range r.Tasks {
		if ref.Job != j.ID || int(ref.Stage) >= len(j.Stages) || int(ref.Index) >= j.Stages[ref.Stage].Total {
			return 0, messages.Errorf(messages.NotFound, "there is no task %d of stage %d of job %d", ref.Index, ref.Stage, j.ID)
		}
		if !c.runs(j, ref) {
			return 0, messages.Errorf(messages.Conflict, "task %d of stage %s of job %d does not run", ref.Index, j.Spec.Stages[ref.Stage].Name, j.ID)
		}
	}
	all := j.runs()
	if all == 0 {
		return 0, messages.Errorf(messages.Conflict, "no task of job %d runs", j.ID)
	}
	tasks := r.Tasks
	if len(tasks) == 0 {
		tasks = slices.DeleteFunc(c.running(j), func(ref messages.TaskRef) bool { return r.Stage != nil && int(ref.Stage) != *r.Stage })
	}
	if len(tasks) == 0 {
		return 0, messages.Errorf(messages.Conflict, "no task of that stage of job %d runs", j.ID)
	}
	for _, ref := range tasks {
		if c.runs(j, ref) { // the task may have been requeued with its gang
			j.Stages[ref.Stage].Requeued++
			c.requeue(messages.Attempt{Task: ref, Number: j.Stages[ref.Stage].Tasks[ref.Index].Attempt}, ofJob, job.EndRequeued)
		}
	}
	return all - j.runs(), nil
}

// breakGang restarts a gang that has lost a member. All its tasks run again, even if they had ended well. They start
// when all running tasks have ended.
func (c *claims) breakGang(j *Job, stage int, by blame) {
	if !j.Spec.Stages[stage].Gang || !j.Active() {
		return
	}
	for i, end := j.gang(stage); i < end; i++ {
		c.breakStage(j, i, by)
	}
}

func (c *claims) breakStage(j *Job, stage int, by blame) {
	s := &j.Stages[stage]
	if s.Broken {
		return
	}
	s.Broken, s.Gathered = s.Running > 0, 0
	for k := range s.Tasks {
		r := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}
		switch t := &s.Tasks[k]; t.Phase {
		case Claimed:
			c.requeue(messages.Attempt{Task: r, Number: t.Attempt}, by, job.EndGang)
		case Done:
			s.Done--
			s.Running++ // the method `again` subtracts 1 from Running
			if by != ofJob {
				s.reopen(t, (t.Ended.Sub(t.Claimed)-t.PausedTime())*messages.Duration(j.Spec.Stages[stage].Slots()))
			}
			c.attemptEnded(r, NodeClaim{Paused: t.PausedTime()}, job.EndGang, nil)
			c.again(j, s, r.Index)
		}
	}
}

// gather makes a claim of a gang wait for the other claims of the gang. The last claim starts all of them.
func (c *claims) gather(j *Job, stage int, r messages.TaskRef) {
	s := &j.Stages[stage]
	if s.Gathering == 0 {
		s.Gathered = c.clock.now
	}
	c.halt(j, r, Gathers)
	first, end := j.gang(stage)
	for i := first; i < end; i++ {
		if j.Stages[i].Gathering < j.Stages[i].Total {
			return
		}
	}
	for i := first; i < end; i++ {
		if !c.admitted(j, i) { // the last task of the gang came too late: the gang would run into a maintenance window
			c.breakGang(j, stage, ofSite)
			return
		}
	}
	for i := first; i < end; i++ {
		c.startTogether(j, i)
	}
}

func (c *claims) startTogether(j *Job, stage int) {
	s := &j.Stages[stage]
	s.Gathered = 0
	for k := range s.Tasks {
		r := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}
		if of := &j.Spec.Stages[stage]; of.Allocation { // the job pays for the time in which its slots waited
			h := c.nodes.inOrder[s.Tasks[k].Node].Claims[r]
			s.Meter.count(uint64(h.slots())*uint64(h.PausedBy(c.clock.now)/1000), c.meters.tariffs[j.Spec.Market], j.Spec, stage)
		}
		c.halt(j, r, Goes)
	}
}

// admitted looks at the tasks of a stage that have a node. A task must end before the next maintenance window of its
// node, if it starts now. admitted reports whether this is true of all these tasks.
func (c *claims) admitted(j *Job, stage int) bool {
	for _, t := range j.Stages[stage].Tasks {
		if t.Phase == Claimed && !c.nodes.inOrder[t.Node].Admits(&j.Spec.Stages[stage], c.clock.now) {
			return false
		}
	}
	return true
}

func (c *claims) halt(j *Job, r messages.TaskRef, halt Halt) {
	node := j.Stages[r.Stage].Tasks[r.Index].Node
	h := c.nodes.inOrder[node].Claims[r]
	h.Halt = halt
	c.turn(node, r, h)
}

// disband makes the tasks of a gang pending again. It does so only if the gang still waits for slots, and has waited
// since d.Since. Otherwise the command is late, and disband changes nothing.
func (c *claims) disband(d *Disband) error {
	j := c.jobs.own(d.Job)
	if j == nil || int(d.Stage) >= len(j.Stages) {
		return messages.Errorf(messages.NotFound, "there is no stage %d of job %d", d.Stage, d.Job)
	}
	if s := &j.Stages[d.Stage]; d.Since != 0 && s.Gathered == d.Since && s.Gathering > 0 {
		c.breakGang(j, int(d.Stage), ofSite)
	}
	return nil
}

// giveBack makes the task of a lost attempt pending again. The attempt does not count as failed.
func (c *claims) giveBack(r messages.TaskRef, h NodeClaim, why job.EndReason) {
	j := c.jobs.own(r.Job)
	if j == nil {
		return
	}
	s := &j.Stages[r.Stage]
	if t := &s.Tasks[r.Index]; t.Phase == Claimed && t.Attempt == h.Attempt {
		c.attemptEnded(r, h, why, nil)
		c.lose(r, h, ofSite)
	}
}

// lose is called when an attempt of a task has failed. It makes the task, and all other tasks of its gang, pending
// again.
func (c *claims) lose(r messages.TaskRef, h NodeClaim, by blame) {
	j := c.jobs.own(r.Job)
	if !h.Leaving {
		c.excuse(r, h, by)
	}
	c.again(j, &j.Stages[r.Stage], r.Index)
	c.breakGang(j, int(r.Stage), by)
}

// suspend takes away the slots of a claim and its gang.
func (c *claims) suspend(a messages.Attempt) { c.turnAll(a, Goes, Suspended) }

// resume gives a suspended claim and its gang their slots again. It does nothing if a node has too few free slots.
func (c *claims) resume(a messages.Attempt) { c.turnAll(a, Suspended, Goes) }

// The halt of a claim says whether its task may run and, if not, why. turnAll changes the halt of a claim, and of all
// claims of its gang, from the value `from` to the value `to`. It does nothing if one of the claims has another value.
func (c *claims) turnAll(a messages.Attempt, from, to Halt) {
	if _, _, ok := c.claimOf(a); !ok || !c.jobs.own(a.Task.Job).Active() {
		return
	}
	j, all := c.jobs.own(a.Task.Job), []messages.TaskRef{a.Task}
	if stage := int(a.Task.Stage); j.Spec.Stages[stage].Gang {
		all = all[:0]
		for i, end := j.gang(stage); i < end; i++ {
			for k := range j.Stages[i].Tasks {
				all = append(all, messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)})
			}
		}
	}
	for _, r := range all {
		node, h, ok := c.claimOf(messages.Attempt{Task: r, Number: j.Stages[r.Stage].Tasks[r.Index].Attempt})
		if !ok || h.Halt != from || h.Leaving || to == Goes && c.nodes.inOrder[node].freeSlots(h.Class) < h.slots() {
			return
		}
	}
	for _, r := range all {
		c.halt(j, r, to)
	}
}
