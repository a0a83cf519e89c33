package book

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// claims are the tasks that nodes have claimed. A claim runs, gathers, is suspended,
// is leaving or waits for a slot; its stage counts the last four.
type claims struct {
	notices *notices
	jobs    *jobs
	nodes   *nodes
	meters  *meters
	watch   *watch
	clock   *clock
}

// tally adds a claim to the counts of its stage, or with by −1 takes it off.
func (s *Stage) tally(h NodeClaim, by int) {
	switch {
	case h.Halt == Ahead:
		s.Ahead += by
	case h.Leaving:
		s.Leaving += by
	case h.Halt == Suspended:
		s.Suspended += by
	case h.Halt == Gathers:
		s.Gathering += by
	}
}

// PausedBy is how long a claim has not run by now.
func (h *NodeClaim) PausedBy(now messages.Time) messages.Duration {
	if h.Halt == Goes {
		return h.Paused
	}
	return h.Paused + now.Sub(h.Since)
}

// uncount removes a claim that is about to end from the counts of its stage.
func (c *claims) uncount(r messages.TaskRef, h NodeClaim) {
	if j := c.jobs.own(r.Job); j != nil {
		c.meters.meter(j, int(r.Stage))
		j.Stages[r.Stage].tally(h, -1)
	}
}

// turn changes the state of a claim. A claim that is suspended frees its slot; one
// that is resumed uses a slot again.
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

// begin gives a claim that was made ahead the slot that it had from an instant on.
func (c *claims) begin(n *Node, r messages.TaskRef, at messages.Time) NodeClaim {
	h := n.Claims[r]
	c.uncount(r, h)
	n.wait(h.Class, -1)
	n.use(h.Class, h.slots())
	h.Halt, h.Since = Goes, 0
	n.set(r, h)
	if j := c.jobs.own(r.Job); j != nil {
		j.Stages[r.Stage].tally(h, 1)
		c.started(j, r, at)
		c.watch.touch(j.ID)
	}
	return h
}

// started notes from when on a task has its slot.
func (c *claims) started(j *Job, r messages.TaskRef, at messages.Time) {
	s := &j.Stages[r.Stage]
	s.Tasks[r.Index].Claimed = at
	s.Started = cmp.Or(s.Started, at)
	if j.State == messages.Waiting {
		j.State, j.Started = messages.Running, at
		if c.meters.tariffs[j.Spec.Market] != nil {
			c.meters.enlist(j)
		}
		c.notices.event(j, messages.NotifyStart)
	}
}

// putBack undoes a claim that was made ahead and has not begun: it is none of the
// attempts that came to nothing. Its number is not used again.
func (x *exchanges) putBack(n *Node, r messages.TaskRef, h NodeClaim) {
	x.claims.uncount(r, h)
	n.drop(r)
	n.wait(h.Class, -1)
	j := x.jobs.own(r.Job)
	if j == nil {
		return
	}
	s := &j.Stages[r.Stage]
	t := &s.Tasks[r.Index]
	x.watch.touch(j.ID)
	s.Running--
	if h.Why == messages.EndTaskCancelled && j.Active() {
		s.cancelled(t, x.clock.now)
		x.conclude(j, int(r.Stage))
		return
	}
	t.Phase = Pending
	s.Again = append(s.Again, r.Index)
}

// claimOf returns the valid claim of an attempt and where it is.
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

// stop tells the node of a claim to end it.
func (c *claims) stop(a messages.Attempt) {
	if node, _, ok := c.claimOf(a); ok {
		c.nodes.inOrder[node].Stop = append(c.nodes.inOrder[node].Stop, a)
		c.watch.touchNode(node)
	}
}

// requeue ends a claim of a job that has not ended: its task, with all of its gang,
// is to be claimed again. The blame says whether the job is to pay for the time it
// had. To requeue a claim twice changes nothing.
func (c *claims) requeue(a messages.Attempt, by blame, why messages.EndReason) {
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

// requeueAll ends tasks of a job, as its owner or an operator wants.
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
		if c.runs(j, ref) { // and was not requeued with its gang before
			j.Stages[ref.Stage].Requeued++
			c.requeue(messages.Attempt{Task: ref, Number: j.Stages[ref.Stage].Tasks[ref.Index].Attempt}, ofJob, messages.EndRequeued)
		}
	}
	return all - j.runs(), nil
}

// runs says whether a task of a job has a claim that is not about to end.
func (c *claims) runs(j *Job, r messages.TaskRef) bool {
	tasks := j.Stages[r.Stage].Tasks
	if int(r.Index) >= len(tasks) {
		return false
	}
	_, h, ok := c.claimOf(messages.Attempt{Task: r, Number: tasks[r.Index].Attempt})
	return ok && !h.Leaving && h.Halt != Ahead
}

// runs is how many tasks of a job have a claim that is not about to end.
func (j *Job) runs() (n int) {
	for i := range j.Stages {
		s := &j.Stages[i]
		n += s.Running - s.Leaving - s.Ahead
	}
	return n
}

// running are the tasks of a job that run.
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

// blame says whose doing it is that an attempt came to nothing.
type blame bool

// The kinds of blame.
const (
	ofJob  blame = false // the job's own: the time is paid for, and the task complete for prices
	ofSite blame = true  // a lost node, a drain, a preemption, a failed executor: neither
)

// suspend takes a claim's slot away until resume gives one back.
func (c *claims) suspend(a messages.Attempt) {
	if node, h, ok := c.claimOf(a); ok && h.Halt == Goes && !h.Leaving && c.jobs.own(a.Task.Job).Active() {
		h.Halt = Suspended
		c.turn(node, a.Task, h)
	}
}

// resume lets a suspended claim go on, if its node has a slot.
func (c *claims) resume(a messages.Attempt) {
	node, h, ok := c.claimOf(a)
	if !ok || h.Halt != Suspended || h.Leaving || !c.jobs.own(a.Task.Job).Active() || c.nodes.inOrder[node].room(h.Class) < h.slots() {
		return
	}
	h.Halt = Goes
	c.turn(node, a.Task, h)
}

// gather has a claim of a gang wait for the gang's other claims. The last one starts
// them all.
func (c *claims) gather(j *Job, stage int, r messages.TaskRef) {
	s := &j.Stages[stage]
	if s.Gathering == 0 {
		s.Gathered = c.clock.now
	}
	c.halt(j, r, Gathers)
	if s.Gathering < s.Total {
		return
	}
	s.Gathered = 0
	for k := range s.Tasks {
		c.halt(j, messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}, Goes)
	}
}

// halt has a claim run or not.
func (c *claims) halt(j *Job, r messages.TaskRef, halt Halt) {
	node := j.Stages[r.Stage].Tasks[r.Index].Node
	h := c.nodes.inOrder[node].Claims[r]
	h.Halt = halt
	c.turn(node, r, h)
}

// breakGang starts a gang again that has lost a member. All its tasks run again, also
// tasks that had ended well, when all its running tasks have ended.
func (c *claims) breakGang(j *Job, stage int, by blame) {
	s := &j.Stages[stage]
	if !j.Spec.Stages[stage].Gang || !j.Active() || s.Broken {
		return
	}
	s.Broken, s.Gathered = s.Running > 0, 0
	for k := range s.Tasks {
		r := messages.TaskRef{Job: j.ID, Stage: uint32(stage), Index: uint32(k)}
		switch t := &s.Tasks[k]; t.Phase {
		case Claimed:
			c.requeue(messages.Attempt{Task: r, Number: t.Attempt}, by, messages.EndGang)
		case Done:
			s.Done--
			s.Running++ // which again takes off
			if by == ofSite {
				s.reopen(t, (t.Ended.Sub(t.Claimed)-t.PausedTime())*messages.Duration(j.Spec.Stages[stage].Slots()))
			}
			c.attemptEnded(r, NodeClaim{Paused: t.PausedTime()}, messages.EndGang, nil)
			c.again(j, s, r.Index)
		}
	}
}

// disband gives back the tasks of a gang that gathers as it did at a time.
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

// giveBack makes a task pending again whose node lost the attempt, without counting it.
func (c *claims) giveBack(r messages.TaskRef, h NodeClaim, why messages.EndReason) {
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

// lose makes a task pending whose attempt came to nothing, with all of its gang.
func (c *claims) lose(r messages.TaskRef, h NodeClaim, by blame) {
	j := c.jobs.own(r.Job)
	if !h.Leaving {
		c.excuse(r, h, by)
	}
	c.again(j, &j.Stages[r.Stage], r.Index)
	c.breakGang(j, int(r.Stage), by)
}

// excuse takes the time of an attempt that came to nothing off what its job has had, if
// that is the site's doing.
func (c *claims) excuse(r messages.TaskRef, h NodeClaim, by blame) {
	if by == ofSite {
		j := c.jobs.own(r.Job)
		c.meters.meter(j, int(r.Stage))
		c.meters.forgive(j, int(r.Stage), c.had(r, h))
	}
}

// owes is the slot time of an attempt that ends now, 0 if that was taken off before.
func (c *claims) owes(r messages.TaskRef, h NodeClaim) messages.Duration {
	if h.Leaving {
		return 0
	}
	return c.had(r, h)
}

// had is the slot time of a claim up to now.
func (c *claims) had(r messages.TaskRef, h NodeClaim) messages.Duration {
	if h.Halt == Ahead {
		return 0
	}
	return messages.Duration(h.slots()) * max(0, cmp.Or(h.until, c.clock.now).Sub(c.jobs.own(r.Job).Stages[r.Stage].Tasks[r.Index].Claimed)-h.PausedBy(c.clock.now))
}

// again makes a task pending that has lost its claim.
func (c *claims) again(j *Job, s *Stage, index uint32) {
	t := &s.Tasks[index]
	t.Phase, t.Ended = Pending, c.clock.now
	s.Running--
	s.Retried++
	s.Again = append(s.Again, index)
	s.Broken = s.Broken && s.Running > 0
	c.watch.touch(j.ID)
}

// stopAll tells the nodes of a job's claims to end them.
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
